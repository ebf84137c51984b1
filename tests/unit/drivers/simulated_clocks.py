"""A simulated clock of a host, and how it stands to the run's by exchanges."""

from __future__ import annotations

from collections.abc import Sequence

from rackloop_drivers.clock_rate import Exchange
from rackloop_drivers.host_clock import HostClock

MS = 1_000_000
S = 1_000_000_000


class Simulated:
    """A clock that is ``ahead_ns`` of the run's at its zero and runs at a rate that changes every second."""

    def __init__(self, ahead_ns: int, ppm: Sequence[float]) -> None:
        self._ahead_ns = ahead_ns
        self._ppm = ppm
        self.jumps: list[tuple[int, int]] = []

    def at(self, run_ns: int) -> int:
        """What it shows at a moment of the run's clock."""
        whole, rest_ns = divmod(run_ns, S)
        passed_ns = sum(self.rate(second) * S for second in range(whole)) + self.rate(whole) * rest_ns
        return self._ahead_ns + round(passed_ns) + sum(by for when, by in self.jumps if when <= run_ns)

    def exchange(self, sent_ns: int, there_ns: int, back_ns: int) -> Exchange:
        """An exchange of which the ways there and back take so long."""
        return Exchange(sent_ns, self.at(sent_ns + there_ns), sent_ns + there_ns + back_ns, "b1", "b1 c")

    def rate(self, second: int) -> float:
        """By how much faster than the run's it runs in a second of the run's clock."""
        return 1 + self._ppm[second % len(self._ppm)] / 1e6


def related(exchanges: Sequence[Exchange], own: str | None = None) -> HostClock:
    """The clock by these exchanges."""
    clock = HostClock("srv1", own)
    for exchange in exchanges:
        clock.add(exchange)
    return clock
