"""The costs of updating a part of every group, by either method: Section 3.4, eq. 11 and Fig. 11 of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from rackloop.abilities import Executor
from rackloop.clock import Deadline
from rackloop.errors import BadInput, ProtocolError
from rackloop.lab import Profile
from rackloop.seed import stream
from rackloop_models.drives import Ask, DriveSim, Step, Steps, StepsResult
from rackloop_models.tail_latency._codes import SECTOR_BYTES
from rackloop_models.tail_latency._measured import Progress

DRIVE_BYTES = 16 << 30
ENCODE_BYTES_PER_S = 15e9
"""Over the redundancy sectors: 1.5 GB/s with ten of them, as the paper's library."""
_FLUSH = Step((Ask("flush"),))


class UpdateMethod(StrEnum):
    """The way to bring the redundancy of a group up to date."""

    NONE = "none"
    DIRECT = "direct"
    INDIRECT = "indirect"


@dataclass(frozen=True)
class Update:
    """``sectors`` consecutive sectors at a random place in each of ``groups`` groups of ``k`` + ``m``.

    Raises BadInput where they do not fit a group, or the groups the drive.
    """

    k: int
    m: int
    sectors: int
    groups: int

    def __post_init__(self) -> None:
        if not 1 <= self.sectors <= self.k:
            raise BadInput(f"an update has 1 to k = {self.k} sectors of a group, found {self.sectors}")
        most = DRIVE_BYTES // ((self.k + self.m) * SECTOR_BYTES)
        if not 1 <= self.groups <= most:
            raise BadInput(f"update 1 to {most:,} groups of {self.k + self.m} sectors, found {self.groups:,}")

    def reads(self, method: UpdateMethod) -> int:
        """Sectors that a group's update reads."""
        match method:
            case UpdateMethod.DIRECT:
                return self.k - self.sectors
            case UpdateMethod.INDIRECT:
                return self.sectors + self.m
            case _:
                return 0

    def steps(self, method: UpdateMethod, seed: int, encode_bytes_per_s: float = ENCODE_BYTES_PER_S) -> Steps:
        """Group after group: read what the method needs, encode, write; in the end everything is flushed.

        Without a method only the data are written, in groups that have no redundancy. The places are the same for all.
        """
        chance = stream(seed, "update", str(self.sectors))
        redundancy = 0 if method is UpdateMethod.NONE else self.m
        steps: list[Step] = []
        for group in range(self.groups):
            start = group * (self.k + redundancy)
            first = start + chance.randint(0, self.k - self.sectors)
            data, end = (first, self.sectors), first + self.sectors
            check = (start + self.k, self.m)
            match method:
                case UpdateMethod.DIRECT:
                    read, encoded = [(start, first - start), (end, start + self.k - end)], self.k
                case UpdateMethod.INDIRECT:
                    read, encoded = [data, check], 2 * self.sectors
                case _:
                    read, encoded = [], 0
            if any(count for _, count in read):
                steps.append(Step(_asks("read", read)))
            written = [data] if method is UpdateMethod.NONE else [data, check]
            work_us = encoded * SECTOR_BYTES * self.m / encode_bytes_per_s * 1e6
            steps.append(Step(_asks("write", written), work_us))
        return Steps(name=str(method), steps=(*steps, _FLUSH))


@dataclass(frozen=True)
class UpdateCost:
    """The time of an update of all groups by a method, and the multiple of the time without a code."""

    update: Update
    method: UpdateMethod
    seconds: float
    over_baseline: float


def update_costs(
    updates: Sequence[Update],
    profile: Profile,
    executor: Executor,
    deadline: Deadline,
    *,
    seed: int,
    progress: Progress,
) -> tuple[UpdateCost, ...]:
    """Each update without a code, then by both methods, each on a new drive. Raises as :meth:`DriveSim.run` does."""
    found = []
    for update in updates:
        seconds = {}
        for method in UpdateMethod:
            sim = DriveSim(executor, profile, size_bytes=DRIVE_BYTES, seed=seed)
            (result,) = sim.run([update.steps(method, seed)], deadline)
            if not isinstance(result, StepsResult):
                raise ProtocolError(f"drivesim answered steps with {result.kind}")
            seconds[method] = result.seconds
            found.append(UpdateCost(update, method, result.seconds, result.seconds / seconds[UpdateMethod.NONE]))
            progress(len(found), len(updates) * len(UpdateMethod))
    return tuple(found)


def _asks(operation: str, pieces: Sequence[tuple[int, int]]) -> tuple[Ask, ...]:
    return tuple(
        Ask("read" if operation == "read" else "write", first * SECTOR_BYTES, count * SECTOR_BYTES)
        for first, count in pieces
        if count
    )
