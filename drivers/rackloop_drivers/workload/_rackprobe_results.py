"""rackprobe's results: its JSON lines as frozen dataclasses."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, TypeVar

from rackloop.errors import ProtocolError
from rackloop.measurement import Distribution
from rackloop_drivers.host_clock import HostClock

Event = dict[str, Any]
_T = TypeVar("_T")


@dataclass(frozen=True)
class Expected:
    """The expected content of a read. Without a seed, any seed is right."""

    serial: str
    generation: int = 1
    seed: int | None = None

    def options(self) -> list[str]:
        """As options of the command line."""
        seed = [] if self.seed is None else [f"--seed={self.seed}"]
        return [f"--serial={self.serial}", f"--generation={self.generation}", *seed]

    def as_json(self) -> dict[str, str | int | None]:
        """As part of a command line in JSON."""
        return {"serial": self.serial, "generation": self.generation, "seed": self.seed}


@dataclass(frozen=True)
class Offender:
    """A sector that was not right: who it says it is, and None for what it does not say.

    ``torn_generations`` are the generations of the writes that a torn sector mixes, ascending.
    """

    lba: int
    verdict: str
    found_serial: str | None
    found_lba: int | None
    found_generation: int | None
    found_seed: int | None
    torn_generations: tuple[int, ...]


@dataclass(frozen=True)
class Unreadable:
    """A request whose read failed: the sectors it was for and the system's words for the error."""

    lba: int
    sectors: int
    error: str


@dataclass(frozen=True)
class Written:
    """An identified write that was done and flushed."""

    serial: str
    start_lba: int
    sectors: int
    generation: int
    seed: int
    bytes: int
    elapsed_ns: int


@dataclass(frozen=True)
class Verification:
    """The result of verifying a range of sectors: every verdict's count by its name, and the first offenders."""

    start_lba: int
    sectors: int
    verdicts: Mapping[str, int]
    offenders: tuple[Offender, ...]
    unreadable_sectors: int
    unreadable: tuple[Unreadable, ...]
    bytes: int
    elapsed_ns: int

    @property
    def is_right(self) -> bool:
        """Whether every sector was read and is the expected one."""
        return self.verdicts["right"] == self.sectors


@dataclass(frozen=True)
class VerifiedRead:
    """The first read after an arm that brought back the expected drive's sector. Stamps are the run's clock's.

    ``t_ns`` is its completion, ``submit_ns`` when that read was sent, ``first_try_submit_ns`` when the first of the
    arm's reads was; ``last_old_ns`` the completion of the last read that still came from another drive, ``gap_ns``
    the time from then to ``t_ns``; ``online_ns`` when the kernel announced the device, where uevents were asked for.
    ``waited_ns`` is how long the probe was ready and had no core while that read was away, None where the kernel keeps
    no account of it; ``idle_ns`` how long it had not asked: from the return of the read before to ``submit_ns``.
    ``mounted_ns`` is when the first file of its file system had been read, ``mount_waited_ns`` the probe's wait for a
    core since ``t_ns``, ``mount_error`` why it was not: all None where the target has none to mount.
    Each stamp may be off by ``clock_error_ns``, as is known of the host's clock; durations are the host's own.
    """

    id: int
    armed_ns: int
    t_ns: int
    first_try_submit_ns: int
    submit_ns: int
    reads: int
    wrong_drive: int
    errors: int
    verdicts: Mapping[str, int]
    last_old_ns: int | None
    gap_ns: int | None
    online_ns: int | None
    waited_ns: int | None
    idle_ns: int | None
    mounted_ns: int | None = None
    mount_waited_ns: int | None = None
    mount_error: str | None = None
    clock_error_ns: int = 0


@dataclass(frozen=True)
class GaveUp:
    """An arm whose drive did not answer in time, and what its reads brought back instead; stamps as of a read."""

    id: int
    armed_ns: int
    t_ns: int
    reason: str
    reads: int
    errors: int
    verdicts: Mapping[str, int]
    offenders: tuple[Offender, ...]
    last_old_ns: int | None
    clock_error_ns: int = 0


@dataclass(frozen=True)
class WatchInterval:
    """A part of a watch: what completed in it. ``max_*`` tell of its longest I/O; zero where nothing completed.

    Stamps are the run's clock's, each off by ``clock_error_ns`` at most, as is known of the host's clock.
    """

    t_ns: int
    completed: int
    in_flight: int
    errors: int
    last_error: str | None
    bytes: int
    max_us: float
    max_submit_ns: int
    max_complete_ns: int
    verdicts: Mapping[str, int]
    offenders: tuple[Offender, ...]
    clock_error_ns: int = 0


@dataclass(frozen=True)
class WatchResult:
    """A whole watch. ``lost`` I/Os were submitted and never completed; ``bins_ns`` are latencies with their counts.

    Stamps are as of an interval.
    """

    start_ns: int
    t_ns: int
    submitted: int
    completed: int
    lost: int
    errors: int
    last_error: str | None
    bytes: int
    max_us: float
    max_submit_ns: int
    max_complete_ns: int
    bins_ns: tuple[tuple[int, int], ...]
    verdicts: Mapping[str, int]
    offenders: tuple[Offender, ...]
    clock_error_ns: int = 0

    def latency_us(self) -> Distribution:
        """The latencies in microseconds. Raises ValueError when no I/O completed."""
        return Distribution.from_bins({value_ns / 1000: count for value_ns, count in self.bins_ns})


@dataclass(frozen=True)
class SwapRead:
    """One block read between two swaps. ``error`` is None, or the system's words where it failed.

    ``due_ns`` is when it should have begun, where it was to begin so long after the one before, else None.
    """

    n: int
    lba: int
    due_ns: int | None
    submit_ns: int
    t_ns: int
    error: str | None
    verdicts: Mapping[str, int]
    offenders: tuple[Offender, ...]

    @property
    def late_ns(self) -> int:
        """By how much it began too late; 0 where it was to begin at once."""
        return 0 if self.due_ns is None else self.submit_ns - self.due_ns


@dataclass(frozen=True)
class SwapResult:
    """All block reads of a swap session, the waiting between them included in ``elapsed_ns``."""

    reads: int
    errors: int
    bytes: int
    elapsed_ns: int
    verdicts: Mapping[str, int]
    offenders: tuple[Offender, ...]


STAMPS: Mapping[type, tuple[str, ...]] = {
    VerifiedRead: ("armed_ns", "t_ns", "first_try_submit_ns", "submit_ns", "last_old_ns", "online_ns", "mounted_ns"),
    GaveUp: ("armed_ns", "t_ns", "last_old_ns"),
    WatchInterval: ("t_ns", "max_submit_ns", "max_complete_ns"),
    WatchResult: ("start_ns", "t_ns", "max_submit_ns", "max_complete_ns"),
}
"""The fields of each result that are stamps of the host's clock. Nothing was stamped where one is zero or None."""


def on_clock(event: Event, stamps: Sequence[str], clock: HostClock) -> Event:
    """``event`` with its ``stamps`` on the run's clock, and the largest error of them as its ``clock_error_ns``.

    Raises ClockUnknown where the host's ``clock`` cannot be related to the run's.
    """
    moments = {name: clock.moment(event[name]) for name in stamps if event.get(name)}
    error_ns = max((moment.error_ns for moment in moments.values()), default=0)
    return {**event, **{name: moment.at_ns for name, moment in moments.items()}, "clock_error_ns": error_ns}


def parse_line(line: str) -> Event:
    """One line of rackprobe's output. Raises ProtocolError where it is no JSON object."""
    try:
        event = json.loads(line)
    except ValueError as error:
        raise ProtocolError(f"rackprobe printed {line[:200]!r}, which is no JSON") from error
    if not isinstance(event, dict):
        raise ProtocolError(f"rackprobe printed {line[:200]!r}, which is no JSON object")
    return event


def build(kind: type[_T], event: Event) -> _T:
    """The value that ``event`` describes. Raises ProtocolError where it lacks a field."""
    names = _names(kind)  # type: ignore[arg-type]
    missing = [name for name in names if name not in event]
    if missing:
        raise ProtocolError(
            f"rackprobe left {', '.join(missing)} out of {event}; are harness and probe of one version?"
        )
    return kind(**{name: _READERS[name](event[name]) if name in _READERS else event[name] for name in names})


@cache
def _names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


def _offenders(found: list[Event]) -> tuple[Offender, ...]:
    return tuple(build(Offender, offender) for offender in found)


def _unreadable(found: list[Event]) -> tuple[Unreadable, ...]:
    return tuple(build(Unreadable, part) for part in found)


def _bins(found: list[list[int]]) -> tuple[tuple[int, int], ...]:
    return tuple((value_ns, count) for value_ns, count in found)


_READERS: dict[str, Callable[[Any], Any]] = {
    "offenders": _offenders,
    "unreadable": _unreadable,
    "torn_generations": tuple,
    "devlinks": tuple,
    "bins_ns": _bins,
}
