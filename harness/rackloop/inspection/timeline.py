"""Evidence from many clocks on one time base: how far each clock is from the run's, and lines with their moments.

A foreign clock is read between two stamps of the run's clock, so what it showed is known to lie
between them (Marzullo, Owicki: "Maintaining the Time in a Distributed System", 1983: intersect the intervals).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


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
class Gap:
    """So many ``lines`` of a source in a row, of these moments, are not in the timeline; None without a known clock."""

    from_ns: int | None
    until_ns: int | None
    lines: int


@dataclass(frozen=True)
class Source:
    """A source of evidence: its clock's ``offset``, why it, or its clock, could not be read, and what is left out."""

    name: str
    offset: ClockOffset | None = None
    unread: str | None = None
    gaps: tuple[Gap, ...] = ()

    @property
    def left_out(self) -> int:
        """The number of its lines that are not in the timeline."""
        return sum(gap.lines for gap in self.gaps)
