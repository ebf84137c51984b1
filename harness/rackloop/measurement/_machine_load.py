"""The load of the measuring machine, seen apart from what is measured."""

from __future__ import annotations

import math
from dataclasses import dataclass

# The stretches of time of which it is kept for how long tasks waited in the worst of them, and how often that is asked.
STRETCHES_S = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
ANSWERS_S = 0.1
# A stretch begins and ends with an answer: what is longer than this before its end may not be in it whole.
_SLACK_S = 2 * ANSWERS_S


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
        return max(self.late_s, min(seconds, self._kept_within(seconds)))

    @property
    def starved(self) -> float:
        """The share of the time for which work was kept waiting, at most."""
        return max(self.late_share, self.pressure or 0.0, self.steal or 0.0)

    def starved_within(self, seconds: float | None) -> float:
        """The share of any stretch of so many ``seconds``, None for half of one, for which work was kept waiting."""
        if seconds is None:
            share = self.kept_s[0] / STRETCHES_S[0] if self.kept_s else 0.0
        else:
            share = self._kept_within(seconds) / seconds
        return max(self.starved, min(1.0, share))

    def _kept_within(self, seconds: float) -> float:
        """For how long tasks were kept waiting in a stretch of ``seconds`` at most; 0 where the kernel does not say."""
        if not self.kept_s:
            return 0.0
        needed_s = seconds + _SLACK_S
        fits = [kept_s for of_s, kept_s in zip(STRETCHES_S, self.kept_s, strict=True) if needed_s <= of_s]
        return fits[0] if fits else self.kept_s[-1] * math.ceil(needed_s / STRETCHES_S[-1])

    def __str__(self) -> str:
        shares = {"some task waited for one": self.pressure, "the hypervisor had it": self.steal}
        said = [f"for {share:.1%} of the time {what}" for what, share in shares.items() if share is not None]
        said += [f"the simulated rack was late by up to {self.rackd_s * 1e3:.3g} ms"] if self.rackd_s else []
        return "; ".join((f"a ready thread waited up to {self.wait_s * 1e3:.3g} ms for a core", *said))
