"""The load of the measuring machine, seen apart from what is measured.

A thread that sleeps to known moments and notes how late it wakes says how long a ready thread of this machine, and of
this process, waits before it runs. The kernel says for which share of the time some task waited for a core
(/proc/pressure/cpu, Documentation/accounting/psi.rst) and for which the hypervisor ran another machine instead (the
eighth figure of /proc/stat, proc_stat(5)).
"""

from __future__ import annotations

import math
import os
from bisect import bisect_right
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from operator import itemgetter
from pathlib import Path
from threading import Lock, Thread

from rackloop.clock import Clock
from rackloop.errors import LabError

# Half a per cent of a core on a busy machine of two. A shorter wait may be missed, a longer one is seen but for this.
PERIOD_S = 0.02
# How often the kernel is asked for how long tasks were kept waiting, and the stretches of time that this is kept for.
_ASK_NS = 100_000_000
_STRETCHES_S = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
_KEPT_ANSWERS = 2000
# A stretch begins and ends with an answer: what is longer than this before its end may not be in it whole.
_SLACK_S = 2 * _ASK_NS / 1e9


@dataclass(frozen=True)
class MachineLoad:
    """The longest wait of a ready thread for a core in one stretch of time; shares of the time are from 0 to 1.

    ``late_share`` is for which share of the stretch the sampler itself waited. ``pressure`` and ``steal`` are None
    where the kernel does not say; ``rackd_s`` is how late the simulated rack was, None where it was not later than ever
    before, was not used, or there is none. ``kept_s`` is for how long at most tasks were kept waiting for a core or for
    the disk in any half second, second, 2, 4, 8, 16, 32 and 64 seconds; it is empty where the kernel does not say.
    """

    wall_s: float
    wait_s: float
    late_share: float
    pressure: float | None = None
    steal: float | None = None
    rackd_s: float | None = None
    kept_s: tuple[float, ...] = ()

    @property
    def late_s(self) -> float:
        """The longest that one ready thread was kept waiting."""
        return max(self.wait_s, self.rackd_s or 0.0)

    def late_with(self, seconds: float) -> float:
        """The most that this machine may have added to a time of ``seconds`` that was taken on it.

        Several threads may have been kept waiting one after the other, for a core or for the disk: together no longer
        than the kernel says of the stretch of time that has those seconds in it.
        """
        if not self.kept_s:
            return self.late_s
        needed_s = seconds + _SLACK_S
        fits = [kept_s for of_s, kept_s in zip(_STRETCHES_S, self.kept_s, strict=True) if needed_s <= of_s]
        kept_s = fits[0] if fits else self.kept_s[-1] * math.ceil(needed_s / _STRETCHES_S[-1])
        return max(self.late_s, min(seconds, kept_s))

    @property
    def starved(self) -> float:
        """The share of the time for which work was kept waiting, at most."""
        return max(self.late_share, self.pressure or 0.0, self.steal or 0.0)

    def __str__(self) -> str:
        shares = {"some task waited for one": self.pressure, "the hypervisor had it": self.steal}
        said = [f"for {share:.1%} of the time {what}" for what, share in shares.items() if share is not None]
        said += [f"the simulated rack was late by up to {self.rackd_s * 1e3:.3g} ms"] if self.rackd_s else []
        return "; ".join((f"a ready thread waited up to {self.wait_s * 1e3:.3g} ms for a core", *said))


@dataclass(frozen=True)
class _Counts:
    """Counts of the kernel since it started, in its own units; None where it counts no such thing."""

    pressure_us: int | None
    stolen: int | None
    ticks: int


class LoadWitness:
    """Watches the machine from :meth:`begin` on. ``proc`` is where the kernel's file system of that name is.

    Its thread runs from :meth:`start` to :meth:`stop`; without it only what the kernel counts is seen.
    """

    def __init__(self, clock: Clock, proc: Path = Path("/proc")) -> None:
        self._clock = clock
        self._stat = proc / "stat"
        self._pressure = {what: proc / "pressure" / what for what in ("cpu", "io")}
        self._lock = Lock()
        self._thread: Thread | None = None
        self._is_stopped = False
        self._due_ns = 0
        self._worst_ns = 0
        self._late_ns = 0
        self._began_ns = 0
        self._counts = _Counts(None, None, 0)
        self._kept: list[tuple[int, int]] = []
        self._most_us: list[int] = []
        self._ask_rack: Callable[[], float | None] = lambda: None
        self._rack_s: float | None = None
        self._rack_then_s: float | None = None
        self.begin()

    def start(self) -> None:
        """Begin to sample, where that was not begun yet."""
        if self._thread is None:
            self._due_ns = self._clock.now_ns()
            self._thread = Thread(target=self._sample, name="load-witness", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Sample no more."""
        self._is_stopped = True
        if self._thread is not None:
            self._thread.join()

    def attend(self, ask: Callable[[], float | None]) -> None:
        """Have ``ask`` say how late the simulated rack was at most since it came up; None where that is not known."""
        self._ask_rack = ask
        self._rack_then_s = self._asked_rack_s()

    def begin(self) -> None:
        """Forget what was seen: what is asked next is about the time from now on."""
        with self._lock:
            self._began_ns = self._clock.now_ns()
            self._worst_ns = self._late_ns = 0
            self._kept, self._most_us = [], [0] * len(_STRETCHES_S)
        self._counts = self._counted()
        self._rack_then_s = self._rack_s

    def so_far(self) -> MachineLoad:
        """The load since :meth:`begin`."""
        counts, rack_s = self._counted(), self._asked_rack_s()
        now_ns = self._clock.now_ns()
        with self._lock:
            self._note_kept(now_ns, counts.pressure_us)
            wall_ns = max(1, now_ns - self._began_ns)
            # A sampler that waits right now has waited for as long at least.
            waiting_ns = max(0, now_ns - self._due_ns) if self._thread is not None else 0
            worst_ns, late_ns = max(self._worst_ns, waiting_ns), self._late_ns + waiting_ns
        return MachineLoad(
            wall_s=wall_ns / 1e9,
            wait_s=worst_ns / 1e9,
            late_share=min(1.0, late_ns / wall_ns),
            pressure=_share(self._counts.pressure_us, counts.pressure_us, wall_ns / 1e3),
            steal=_share(self._counts.stolen, counts.stolen, counts.ticks - self._counts.ticks),
            rackd_s=rack_s if rack_s is not None and rack_s > (self._rack_then_s or 0.0) else None,
            kept_s=tuple(most_us / 1e6 for most_us in self._most_us),
        )

    def sample(self) -> None:
        """Sleep to the next known moment, and note how late it became."""
        self._clock.sleep_until_ns(self._due_ns)
        now_ns = self._clock.now_ns()
        with self._lock:
            late_ns = max(0, now_ns - max(self._due_ns, self._began_ns))
            self._worst_ns = max(self._worst_ns, late_ns)
            self._late_ns += late_ns
            self._due_ns = now_ns + round(PERIOD_S * 1e9)
            if not self._kept or now_ns - self._kept[-1][0] >= _ASK_NS:
                self._note_kept(now_ns, self._pressure_us("cpu"))

    def _note_kept(self, now_ns: int, cpu_us: int | None) -> None:
        """Ask the kernel, and compare with what it said at the beginning of each stretch that ends now."""
        kept_us = (cpu_us or 0) + (self._pressure_us("io") or 0)
        self._kept.append((now_ns, kept_us))
        if len(self._kept) > _KEPT_ANSWERS:
            # The longest stretch is long over.
            del self._kept[: _KEPT_ANSWERS // 2]
        for index, of_s in enumerate(_STRETCHES_S):
            first = bisect_right(self._kept, now_ns - round(of_s * 1e9), key=itemgetter(0))
            _, told_us = self._kept[max(0, first - 1)]
            self._most_us[index] = max(self._most_us[index], kept_us - told_us)

    def _sample(self) -> None:
        while not self._is_stopped:
            self.sample()

    def _asked_rack_s(self) -> float | None:
        with suppress(LabError):
            self._rack_s = self._ask_rack()
        return self._rack_s

    def _counted(self) -> _Counts:
        stolen, ticks = None, 0
        # cpu  user nice system idle iowait irq softirq steal guest guest_nice, the guests' being among the users'
        with suppress(OSError, ValueError, IndexError):
            figures = [int(figure) for figure in _head(self._stat).split("\n")[0].split()[1:9]]
            stolen, ticks = figures[7], sum(figures)
        return _Counts(self._pressure_us("cpu"), stolen, ticks)

    def _pressure_us(self, what: str) -> int | None:
        """For how long some task has waited for ``cpu`` or ``io``; None where the kernel does not say."""
        # some avg10=0.00 avg60=0.00 avg300=0.00 total=386068850
        with suppress(OSError, ValueError, IndexError):
            return int(_head(self._pressure[what]).split()[4].removeprefix("total="))
        return None


def _head(path: Path) -> str:
    """The first lines of a file of the kernel's, all that is needed of it."""
    return os.pread(_opened(path), 256, 0).decode()


@cache
def _opened(path: Path) -> int:
    """A descriptor of the file, which is asked around every test: it stays open as long as this process lives."""
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC)


def _share(before: int | None, after: int | None, of: float) -> float | None:
    if before is None or after is None or of <= 0:
        return None
    return min(1.0, max(0, after - before) / of)
