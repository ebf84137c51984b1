"""The rate limit of a rebuild beside tenants: a token bucket whose rate falls when they have to wait.

No library fits: those there are for Python limit calls to a fixed rate on a clock of their own.
"""

from __future__ import annotations

from threading import Lock

from rackloop.clock import Clock
from rackloop.errors import BadInput

_WINDOW_S = 0.25
_UP = 0.1
_DOWN = 0.5


class Throttle:
    """Lets so many bytes a second through, fewer while tenants wait longer than ``latency_target_s``. Threads share it.

    In each quarter of a second in which a request took longer than the target, the rate halves, down to
    ``floor_bytes_per_s`` (a hundredth by default); after each in which none did it grows again by a tenth of
    ``bytes_per_s``, up to it. Up to ``burst_bytes`` go at once after a pause, a tenth of a second's worth by default.

    Raises BadInput: rates, target or burst that are not above 0, or a floor above the rate.
    """

    def __init__(
        self,
        bytes_per_s: float,
        clock: Clock,
        *,
        latency_target_s: float | None = None,
        floor_bytes_per_s: float | None = None,
        burst_bytes: float | None = None,
    ) -> None:
        floor = bytes_per_s / 100 if floor_bytes_per_s is None else floor_bytes_per_s
        burst = bytes_per_s / 10 if burst_bytes is None else burst_bytes
        if min(bytes_per_s, floor, burst) <= 0 or (latency_target_s is not None and latency_target_s <= 0):
            raise BadInput(
                f"a throttle wants bytes/s, floor, burst and latency target above 0, found {bytes_per_s:g}, {floor:g}, "
                f"{burst:g} and {latency_target_s}"
            )
        if floor > bytes_per_s:
            raise BadInput(f"a throttle's floor of {floor:g} bytes/s is above its rate of {bytes_per_s:g}")
        self.bytes_per_s = bytes_per_s
        self.latency_target_s = latency_target_s
        self.floor_bytes_per_s = floor
        self._clock = clock
        self._burst = burst
        self._lock = Lock()
        self._rate = bytes_per_s
        self._tokens = burst
        self._filled_ns = clock.now_ns()
        self._window_ends_ns = self._filled_ns + round(_WINDOW_S * 1e9)
        self._is_slow = False
        self.backoffs = 0
        self.waited_s = 0.0

    @property
    def rate_bytes_per_s(self) -> float:
        """The bytes a second that go through now."""
        with self._lock:
            self._roll()
            return self._rate

    def saw(self, latency_s: float) -> None:
        """A tenant's request took so long."""
        if self.latency_target_s is None:
            return
        with self._lock:
            self._roll()
            if latency_s > self.latency_target_s and not self._is_slow:
                # At once, not when the window ends: whoever waits, waits now.
                self._is_slow = True
                self._fill()
                self._rate = max(self.floor_bytes_per_s, self._rate * _DOWN)
                self._tokens = min(self._tokens, 0.0)
                self.backoffs += 1

    def take(self, count: int) -> None:
        """Return when ``count`` bytes may go. More than a burst is let go as a debt that later ones wait for."""
        began_ns = self._clock.now_ns()
        while (wait_s := self._taken_or_wait(count)) > 0:
            self._clock.sleep_until_ns(self._clock.now_ns() + max(1, round(wait_s * 1e9)))
        with self._lock:
            self.waited_s += (self._clock.now_ns() - began_ns) / 1e9

    def _taken_or_wait(self, count: int) -> float:
        """0 when the bytes were taken, else how long to wait before asking again."""
        with self._lock:
            self._roll()
            self._fill()
            wanted = min(float(count), self._burst)
            if self._tokens >= wanted - 1e-6:
                self._tokens -= count
                return 0.0
            # Never past the end of a window, at which the rate may change.
            return min((wanted - self._tokens) / self._rate, _WINDOW_S)

    def _fill(self) -> None:
        now_ns = self._clock.now_ns()
        self._tokens = min(self._burst, self._tokens + self._rate * (now_ns - self._filled_ns) / 1e9)
        self._filled_ns = now_ns

    def _roll(self) -> None:
        """End the windows that are over."""
        now_ns = self._clock.now_ns()
        if now_ns < self._window_ends_ns:
            return
        self._fill()
        over = 1 + int((now_ns - self._window_ends_ns) / (_WINDOW_S * 1e9))
        quiet = over - self._is_slow
        self._rate = min(self.bytes_per_s, self._rate + quiet * _UP * self.bytes_per_s)
        self._is_slow = False
        self._window_ends_ns += round(over * _WINDOW_S * 1e9)
