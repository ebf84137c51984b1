"""The curves of storage boxes: IOPS by the number of cores, and unloaded latency by the size of a request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rackloop.abilities import Executor
from rackloop.clock import Deadline
from rackloop.lab import load_profile
from rackloop_models.drives._box import Box
from rackloop_models.drives._box_figures import (
    IOPS,
    LATENCY,
    OPERATION_OF,
    SIZES_KIB,
    all_unloaded,
    on_filled_drives,
    phases_of,
    saturated,
)
from rackloop_models.drives._box_profile import BoxProfile
from rackloop_models.drives._curves import Points
from rackloop_models.drives._shapes import Operation
from rackloop_models.drives._simulation import DriveSim
from rackloop_models.drives._trials import KIB, iops

# Those by which the tenants of a saturated box can be divided.
_CORES = (1, 2, 3, 4, 6, 8)
_OPERATIONS: dict[Operation, str] = {"read": "random reads", "write": "sequential writes"}
_ALONE = "alone"
_SATURATED: tuple[tuple[Operation, int], ...] = (("read", 4), ("write", 4), ("read", 128))


@dataclass(frozen=True)
class BoxCurves:
    """The curves of a box, a line for each kind of request, and the published points of the same.

    ``iops`` is in requests a second by the number of cores, ``latency`` the mean in seconds by the size in KiB.
    """

    name: str
    like: str
    iops: Mapping[str, Points]
    latency: Mapping[str, Points]
    published_iops: Mapping[str, Points]
    published_latency: Mapping[str, Points]


def box_curves(
    executor: Executor,
    profiles: Sequence[BoxProfile],
    deadline: Deadline,
    *,
    size_bytes: int,
    seed: int,
) -> tuple[BoxCurves, ...]:
    """The curves of each box, whose drives are filled once. Raises as :func:`box_checks`."""
    return tuple(_curves(executor, profile, deadline, size_bytes, seed) for profile in profiles)


def _curves(executor: Executor, profile: BoxProfile, deadline: Deadline, size_bytes: int, seed: int) -> BoxCurves:
    sim = DriveSim(executor, load_profile(profile.drive), size_bytes=size_bytes, seed=seed, drives=profile.drives)
    boxes = [*all_unloaded(_ALONE, profile.hardware()), *_saturated(profile, size_bytes)]
    found = on_filled_drives(sim, boxes, deadline)
    return BoxCurves(
        profile.name,
        profile.like,
        {
            f"{_OPERATIONS[operation]} of {kib} KiB": tuple(
                (float(cores), iops(found[_at_cores(operation, kib, cores)])) for cores in _cores(profile)
            )
            for operation, kib in _SATURATED
        },
        {
            word: tuple(
                (float(kib), phases_of(found[f"{_ALONE}.{operation}.{kib}"], operation).total / 1e9)
                for kib in SIZES_KIB
            )
            for operation, word in _OPERATIONS.items()
        },
        _published_iops(profile),
        _published_latency(profile),
    )


def _saturated(profile: BoxProfile, size_bytes: int) -> Iterator[Box]:
    for operation, kib in _SATURATED:
        for cores in _cores(profile):
            yield saturated(
                _at_cores(operation, kib, cores),
                profile.hardware(cores=cores),
                operation,
                kib * KIB,
                size_bytes=size_bytes,
                drives=profile.drives,
            )


def _cores(profile: BoxProfile) -> list[int]:
    """The numbers of cores up to those that the box has."""
    return [count for count in _CORES if count <= profile.cores.count]


def _at_cores(operation: Operation, kib: int, cores: int) -> str:
    return f"saturated.{operation}.{kib}.{cores}"


def _published_iops(profile: BoxProfile) -> dict[str, Points]:
    found: dict[str, Points] = {}
    for entry in profile.published:
        if named := IOPS.fullmatch(entry.figure):
            what = f"{_OPERATIONS[OPERATION_OF[named['kind']]]} of {named['kib']} KiB"
            found[what] = (*found.get(what, ()), (float(named["cores"]), entry.value))
    return found


def _published_latency(profile: BoxProfile) -> dict[str, Points]:
    points = [
        (float(named["kib"]), entry.value)
        for entry in profile.published
        if (named := LATENCY.fullmatch(entry.figure)) is not None
    ]
    return {_OPERATIONS["read"]: tuple(points)} if points else {}
