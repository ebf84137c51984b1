"""Evidence from many clocks on one time base: how far each clock is from the run's, and one sorted timeline.

A foreign clock is read between two stamps of the run's clock, so what it showed is known to lie
between them (Marzullo, Owicki: "Maintaining the Time in a Distributed System", 1983: intersect the intervals).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from rackloop.units import counted


@dataclass(frozen=True)
class ClockReading:
    """A clock that showed ``theirs_ns`` at some moment between ``before_ns`` and ``after_ns`` of the run's clock.

    It shows its time cut off to ``resolution_ns``.
    """

    before_ns: int
    theirs_ns: int
    after_ns: int
    resolution_ns: int = 0


@dataclass(frozen=True)
class ClockOffset:
    """The offset of another clock from the run's, give or take ``error_ns``."""

    offset_ns: int
    error_ns: int

    def run_ns(self, theirs_ns: int) -> int:
        """The moment on the run's clock at which the other showed ``theirs_ns``."""
        return theirs_ns - self.offset_ns


def offset_of(readings: Sequence[ClockReading]) -> ClockOffset:
    """The offset that all readings allow; that of the narrowest where they contradict one another, as after a step.

    Raises ValueError without readings.
    """
    if not readings:
        raise ValueError("no reading of the clock")
    low = max(reading.theirs_ns - reading.after_ns for reading in readings)
    high = min(reading.theirs_ns + reading.resolution_ns - reading.before_ns for reading in readings)
    if low > high:
        narrowest = min(readings, key=lambda reading: reading.after_ns - reading.before_ns + reading.resolution_ns)
        return offset_of([narrowest])
    offset_ns = (low + high) // 2
    return ClockOffset(offset_ns, max(high - offset_ns, offset_ns - low))


@dataclass(frozen=True)
class EvidenceLine:
    """A line of a source with its time: ``own_stamp`` as it wrote it, ``at_ns`` on the run's clock.

    The moment is right to ``error_ns``; ``at_ns`` is None where the source's clock could not be related to the run's.
    """

    source: str
    own_stamp: str
    at_ns: int | None
    error_ns: int
    text: str


@dataclass(frozen=True)
class Source:
    """A source of evidence: its clock's ``offset``, and why it, or its clock, could not be read.

    ``left_out`` is how many of its first lines are not in the timeline.
    """

    name: str
    offset: ClockOffset | None = None
    unread: str | None = None
    left_out: int = 0


@dataclass(frozen=True)
class Timeline:
    """The evidence on ``test``, from ``began_ns`` to ``ended_ns`` of the run's clock.

    ``lab`` is the lab's name for people. Lines are sorted by time, those of one moment in the order they were given;
    lines without a time stand last.
    """

    test: str
    lab: str
    began_ns: int
    ended_ns: int
    lines: tuple[EvidenceLine, ...]
    sources: tuple[Source, ...]

    def __str__(self) -> str:
        width = max((len(line.source) for line in self.lines), default=0)
        stamps = max((len(line.own_stamp) for line in self.lines), default=0)
        return "\n".join(
            [
                f"# Evidence on {self.test}, lab {self.lab}, on one time base",
                "# seconds since the test began, error bound, source, its own stamp, text",
                *(f"# {_about(source)}" for source in self.sources),
                *(self._rendered(line, width, stamps) for line in self.lines),
                "",
            ]
        )

    def _rendered(self, line: EvidenceLine, width: int, stamps: int) -> str:
        if line.at_ns is None:
            when = f"{'?':>13} {'':>10}"
        else:
            when = f"{(line.at_ns - self.began_ns) / 1e9:13.6f} ±{line.error_ns / 1e9:.6f}"
        return f"{when}  {line.source:<{width}}  {line.own_stamp:<{stamps}}  {line.text}".rstrip()


def merge(
    test: str,
    lab: str,
    began_ns: int,
    ended_ns: int,
    lines: Iterable[EvidenceLine],
    sources: Iterable[Source],
    *,
    most_of_each: int,
) -> Timeline:
    """One timeline of the last ``most_of_each`` lines of each source.

    What was certainly over before the test began is not about it, and is not counted as left out.
    """
    kept = [line for line in lines if line.at_ns is None or line.at_ns + line.error_ns >= began_ns]
    kept.sort(key=lambda line: (line.at_ns is None, line.at_ns or 0))
    surplus = {name: number - most_of_each for name, number in Counter(line.source for line in kept).items()}
    passed = Counter[str]()
    last = []
    for line in kept:
        passed[line.source] += 1
        if passed[line.source] > surplus[line.source]:
            last.append(line)
    known = [replace(source, left_out=source.left_out + max(0, surplus.get(source.name, 0))) for source in sources]
    return Timeline(test, lab, began_ns, ended_ns, tuple(last), tuple(known))


def _about(source: Source) -> str:
    if source.unread is not None:
        known = " ".join(source.unread.split())
    elif source.offset is None:
        known = "on the run's clock"
    else:
        known = f"its clock is known to {source.offset.error_ns / 1e6:.3f} ms"
    left_out = f"; its first {counted(source.left_out, 'line')} left out" if source.left_out else ""
    return f"{source.name}: {known}{left_out}"
