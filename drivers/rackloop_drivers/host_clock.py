"""The relation of a host's clock to the run's: how far one is from the other, and how well that is known.

In an exchange the host shows its clock between two stamps of the run's. Each bounds the offset, and together, with how
fast the two clocks drift apart, the moment of any stamp of the host's. Nothing is assumed of how long either way takes.
The drift between exchanges at which both kernels steered their clocks alike is what these say; elsewhere it is the most
that kernels steer.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from threading import Lock

from rackloop.errors import RackloopError
from rackloop.inspection.timeline import ClockOffset
from rackloop_drivers.clock_rate import ANY_RATE, DRIFT_PPM, Exchange, Rate, UnsteeredInterval

_RESOLUTION_NS = 1
# A clock that has not been looked at for so long may have jumped and come back.
_KNOWN_FOR_NS = 60_000_000_000
# Those before and behind a stamp: any that are further away allow more than these do.
_NEIGHBOURS = 64
_ENDS = 8
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_TIME_NAMESPACE = Path("/proc/self/ns/time")


class ClockUnknown(RackloopError):
    """A host's stamps cannot be compared with others: how its clock stands to the run's is not known."""


@dataclass(frozen=True)
class Moment:
    """A moment on the run's clock: ``at_ns``, give or take ``error_ns``."""

    at_ns: int
    error_ns: int


@dataclass(frozen=True)
class Drift:
    """By how much a host's clock is faster than the run's, in parts per million, give or take ``error_ppm``."""

    ppm: float
    error_ppm: float


def own_boot_id() -> str | None:
    """The boot of this machine's kernel; None where the system does not say."""
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return None


def own_clock_id() -> str | None:
    """The clock that this process reads, as an exchange's ``clock_id`` names it; None where the system does not say."""
    boot = own_boot_id()
    namespace = str(_TIME_NAMESPACE.readlink()) if _TIME_NAMESPACE.is_symlink() else ""
    return None if boot is None else f"{boot} {namespace}"


class HostClock:
    """The clock of ``host``, by the exchanges that were added. Several threads may use it.

    It is unknown without an exchange, more than a minute from the nearest, and for good once two exchanges contradict
    each other: the clock jumped, or the host has booted since. Where ``own`` names the same clock as the exchanges do,
    stamps are the run's own; the exchanges must still allow that.
    """

    def __init__(self, host: str, own: str | None = None) -> None:
        self._host = host
        self._own = own
        self._exchanges: list[Exchange] = []
        self._shown: list[int] = []
        self._spells: list[UnsteeredInterval] = []
        self._last_ns: int | None = None
        self._broken: str | None = None
        self._lock = Lock()

    @property
    def is_own(self) -> bool:
        """Whether it is the run's own clock."""
        with self._lock:
            return self._is_own

    @property
    def _is_own(self) -> bool:
        return self._own is not None and bool(self._exchanges) and self._exchanges[0].clock_id == self._own

    def is_of(self, boot_id: str | None, clock_id: str | None) -> bool:
        """Whether exchanges with these may be added: it is still known, and theirs."""
        with self._lock:
            first = self._exchanges[0] if self._exchanges else None
            return self._broken is None and first is not None and (first.boot_id, first.clock_id) == (boot_id, clock_id)

    def add(self, exchange: Exchange) -> None:
        """Take in one exchange more."""
        with self._lock:
            if self._broken is None and (why := self._contradiction(exchange)) is not None:
                self._broken = why
            place = bisect(self._shown, exchange.theirs_ns)
            spell = self._spell_at(place, exchange.steering)
            spell.add(exchange)
            self._exchanges.insert(place, exchange)
            self._shown.insert(place, exchange.theirs_ns)
            self._spells.insert(place, spell)
            self._last_ns = max(exchange.received_ns, self._last_ns or exchange.received_ns)

    def _spell_at(self, place: int, steering: str | None) -> UnsteeredInterval:
        """The spell of an exchange that comes to this place: that of a neighbour steered alike, or one of its own."""
        for neighbour in self._spells[max(0, place - 1) : place + 1]:
            if neighbour.steering == steering:
                return neighbour
        return UnsteeredInterval(steering)

    def moment(self, theirs_ns: int) -> Moment:
        """The moment at which the host's clock showed this. Raises ClockUnknown where it is unknown."""
        with self._lock:
            self._require()
            if self._is_own:
                # Each exchange showed its stamp between its own two, so that their bounds have every stamp in them.
                self._nearest(theirs_ns, 1)
                return Moment(theirs_ns, 0)
            low_ns, high_ns = self._bounds(theirs_ns)
            at_ns = (low_ns + high_ns) // 2
            return Moment(at_ns, max(at_ns - low_ns, high_ns - at_ns))

    def offset(self) -> ClockOffset:
        """Its offset from the run's clock at the last exchange, by the exchanges and nothing else.

        Raises ClockUnknown where it is unknown.
        """
        with self._lock:
            self._require()
            theirs_ns = self._shown[-1]
            low_ns, high_ns = self._bounds(theirs_ns)
            at_ns = (low_ns + high_ns) // 2
            return ClockOffset(theirs_ns - at_ns, max(at_ns - low_ns, high_ns - at_ns))

    def drift(self) -> Drift:
        """Its drift between the first exchanges and the last. Raises ClockUnknown where it is unknown."""
        with self._lock:
            self._require()
            pairs = product(self._exchanges[:_ENDS], self._exchanges[-_ENDS:])
            known = [_drift(*pair) for pair in pairs if pair[0].received_ns < pair[1].sent_ns]
            if not known:
                raise ClockUnknown(f"the clock of {self._host} was looked at once: its drift is not known")
            return min(known, key=lambda drift: drift.error_ppm)

    def is_fresh(self, now_ns: int, within_ns: int) -> bool:
        """Whether it was last looked at within so long of this moment of the run's clock."""
        with self._lock:
            return self._last_ns is not None and now_ns - self._last_ns <= within_ns

    def _require(self) -> None:
        if self._broken is not None:
            raise ClockUnknown(f"{self._broken}: its stamps cannot be compared with others; measure anew")
        if not self._exchanges:
            raise ClockUnknown(f"the clock of {self._host} was never looked at: its stamps cannot be compared")

    def _bounds(self, theirs_ns: int) -> tuple[int, int]:
        """The earliest and the latest moment of a stamp."""
        near = self._nearest(theirs_ns, _NEIGHBOURS)
        if (spell := self._spell_around(theirs_ns)) is not None:
            alike = [self._exchanges[place] for place in near if self._spells[place] is spell]
            low_ns, high_ns = _allowed(alike, theirs_ns, spell.rate)
            if low_ns <= high_ns:
                return low_ns, high_ns
            spell.give_up()
        low_ns, high_ns = _allowed([self._exchanges[place] for place in near], theirs_ns, ANY_RATE)
        if low_ns > high_ns:
            raise ClockUnknown(f"{_jumped(self._host, low_ns - high_ns)}: its stamps cannot be compared with others")
        return low_ns, high_ns

    def _spell_around(self, theirs_ns: int) -> UnsteeredInterval | None:
        """The spell of the exchanges before and behind a stamp; None where it is not one and the same."""
        place = bisect(self._shown, theirs_ns)
        before = self._spells[place - 1] if place else None
        if place and self._shown[place - 1] == theirs_ns:
            return before
        return before if place < len(self._spells) and self._spells[place] is before else None

    def _nearest(self, theirs_ns: int, most: int) -> range:
        """The places of at most so many exchanges before a stamp, and so many behind it.

        Raises ClockUnknown where all are far.
        """
        place = bisect(self._shown, theirs_ns)
        near = range(max(0, place - most), min(place + most, len(self._shown)))
        nearest_ns = min(abs(theirs_ns - self._shown[one]) for one in near)
        if nearest_ns > _KNOWN_FOR_NS:
            raise ClockUnknown(
                f"the clock of {self._host} was last looked at {nearest_ns / 1e9:.0f} s from a stamp of its: it cannot "
                "be compared with others"
            )
        return near

    def _contradiction(self, exchange: Exchange) -> str | None:
        """The reason for which an exchange and those before it are not of one clock that runs; None where they are."""
        if not self._exchanges:
            return self._not_own(exchange)
        first = self._exchanges[0]
        if exchange.boot_id != first.boot_id or exchange.clock_id != first.clock_id:
            return f"{self._host} has booted since its clock was first looked at"
        place = bisect(self._shown, exchange.theirs_ns)
        near = self._exchanges[max(0, place - _NEIGHBOURS) : place + _NEIGHBOURS]
        low_ns, high_ns = _allowed(near, exchange.theirs_ns, ANY_RATE)
        if (jumped_ns := max(low_ns - exchange.received_ns, exchange.sent_ns - high_ns)) > 0:
            return _jumped(self._host, jumped_ns)
        return self._not_own(exchange)

    def _not_own(self, exchange: Exchange) -> str | None:
        is_ours = self._own is not None and exchange.clock_id == self._own
        if is_ours and not exchange.sent_ns <= exchange.theirs_ns <= exchange.received_ns:
            return f"{self._host} says that its clock is this machine's, and shows another time"
        return None


def _drift(first: Exchange, last: Exchange) -> Drift:
    passed_ns = (last.sent_ns + last.received_ns - first.sent_ns - first.received_ns) / 2
    faster_ns = last.theirs_ns - first.theirs_ns - passed_ns
    return Drift(faster_ns / passed_ns * 1e6, (first.width_ns + last.width_ns) / 2 / passed_ns * 1e6)


def _allowed(exchanges: Iterable[Exchange], theirs_ns: int, rate: Rate) -> tuple[int, int]:
    """The earliest and the latest moment of a stamp that each of these allows."""
    lows, highs = [], []
    for exchange in exchanges:
        least_ns, most_ns = rate.passed_ns(theirs_ns - exchange.theirs_ns)
        lows.append(exchange.sent_ns + least_ns - _RESOLUTION_NS)
        highs.append(exchange.received_ns + most_ns + _RESOLUTION_NS)
    return max(lows), min(highs)


def _jumped(host: str, by_ns: int) -> str:
    return f"the clock of {host} jumped, or runs off faster than by {DRIFT_PPM} ppm: by {by_ns / 1e6:.3f} ms at least"
