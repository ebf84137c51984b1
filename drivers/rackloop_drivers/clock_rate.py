"""The rate of a host's clock beside the run's, as far as exchanges between which neither was steered bound it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

DRIFT_PPM = 500
"""The largest drift between two clocks: kernels steer theirs by no more."""

WANDER_PPM = 20
"""The largest change of the rate between two clocks that are not steered, over some minutes.

A quartz changes by a part per million a degree at most, and a server's has some ten degrees more under load.
"""

# Rates are taken from one exchange of each five seconds, the quickest, of the last ten minutes.
_ANCHOR_EVERY_NS = 5_000_000_000
_ANCHORS = 120
_ADJUSTED = 0xA001  # ADJ_OFFSET_SS_READ


class _Timex(ctypes.Structure):
    """The struct timex of adjtimex(2)."""

    _fields_ = (
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("freq", ctypes.c_long),
        ("maxerror", ctypes.c_long),
        ("esterror", ctypes.c_long),
        ("status", ctypes.c_int),
        ("constant", ctypes.c_long),
        ("precision", ctypes.c_long),
        ("tolerance", ctypes.c_long),
        ("time", ctypes.c_long * 2),
        ("tick", ctypes.c_long),
        ("unused", ctypes.c_long * 32),
    )


def own_steering() -> str | None:
    """The steering of this machine's monotonic clock by its kernel: frequency and tick, as rackprobe says them.

    None while it slews an offset away besides, or where the system does not say.
    """
    adjtimex = _adjtimex()
    said, adjusted = _Timex(), _Timex(modes=_ADJUSTED)
    if adjtimex is None or adjtimex(ctypes.byref(said)) < 0 or adjtimex(ctypes.byref(adjusted)) < 0:
        return None
    return None if said.offset or adjusted.offset else f"{said.freq} {said.tick}"


@cache
def _adjtimex() -> Callable[..., int] | None:
    """The C library's adjtimex, looked up once: exchanges come many a second."""
    try:
        return ctypes.CDLL(None).adjtimex
    except (OSError, AttributeError):
        return None


@dataclass(frozen=True)
class Exchange:
    """The host's clock showed ``theirs_ns`` between two stamps of the run's clock.

    ``boot_id`` is that of the host; ``clock_id`` is equal for all that read the same clock of the same kernel.
    ``steering`` is equal for those between which neither kernel steered its clock; None where that is not known.
    """

    sent_ns: int
    theirs_ns: int
    received_ns: int
    boot_id: str | None = None
    clock_id: str | None = None
    steering: str | None = None

    @property
    def width_ns(self) -> int:
        """The time that both ways took together."""
        return self.received_ns - self.sent_ns


@dataclass(frozen=True)
class Rate:
    """A host's clock is faster than the run's by between two figures, in parts per million."""

    least_ppm: float = -DRIFT_PPM
    most_ppm: float = DRIFT_PPM

    def passed_ns(self, theirs_ns: int) -> tuple[int, int]:
        """The least and the most that may pass on the run's clock while so much passes on the host's."""
        ends = [round(theirs_ns / (1 + ppm / 1e6)) for ppm in (self.least_ppm, self.most_ppm)]
        return min(ends), max(ends)

    def within(self, other: Rate) -> Rate:
        """The rates that both allow."""
        return Rate(max(self.least_ppm, other.least_ppm), min(self.most_ppm, other.most_ppm))


ANY_RATE = Rate()
"""The rate of a clock of which nothing else is known."""


def rate_between(first: Exchange, last: Exchange) -> Rate:
    """The mean rate from one exchange to a later one."""
    theirs_ns = last.theirs_ns - first.theirs_ns
    most_ns, least_ns = last.received_ns - first.sent_ns, last.sent_ns - first.received_ns
    if least_ns <= 0:
        return ANY_RATE
    return Rate((theirs_ns / most_ns - 1) * 1e6, (theirs_ns / least_ns - 1) * 1e6)


class UnsteeredInterval:
    """The interval in which neither clock was steered, by its exchanges."""

    def __init__(self, steering: str | None) -> None:
        self.steering = steering
        self._anchors: list[tuple[Exchange, Rate]] = []
        self._wanders = steering is None

    @property
    def rate(self) -> Rate:
        """The rate between any two moments of it."""
        if self._wanders:
            return ANY_RATE
        known = ANY_RATE
        for _, rate in self._anchors:
            known = known.within(rate)
        return ANY_RATE.within(Rate(known.least_ppm - WANDER_PPM, known.most_ppm + WANDER_PPM))

    def add(self, exchange: Exchange) -> None:
        """Take in one exchange more."""
        if self._wanders:
            return
        known = []
        for anchor, rate in self._anchors[-_ANCHORS:]:
            first, last = sorted((anchor, exchange), key=lambda one: one.theirs_ns)
            known.append((anchor, rate.within(rate_between(first, last))))
        self._anchors = known
        if self.rate.least_ppm > self.rate.most_ppm:
            self.give_up()
        elif not known or exchange.sent_ns - known[-1][0].sent_ns > _ANCHOR_EVERY_NS:
            self._anchors.append((exchange, ANY_RATE))
        elif exchange.width_ns < known[-1][0].width_ns:
            self._anchors[-1] = (exchange, ANY_RATE)

    def give_up(self) -> None:
        """Discard the rate: it changed by more than that of clocks that are not steered."""
        self._wanders = True
        self._anchors = []
