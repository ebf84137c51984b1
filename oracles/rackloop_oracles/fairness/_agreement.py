"""The agreement of f-Util in virtual and in real time, as far as the machine let the real one be measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rackloop.measurement import MachineLoad, Verdict

TOLERANCE = 0.05
"""The largest difference that counts as agreement, and the largest share of the time that a machine may have taken."""


@dataclass(frozen=True)
class Lateness:
    """Lateness of a drive model's completions behind the model's own times, in nanoseconds."""

    p50_ns: float
    p99_ns: float
    max_ns: float

    @property
    def mean_ns(self) -> float:
        """The largest mean that these quantiles allow."""
        return 0.5 * self.p50_ns + 0.49 * self.p99_ns + 0.01 * self.max_ns


@dataclass(frozen=True)
class RealRun:
    """A run in real time, named: the lateness of the drive, the mean latency of its requests, the machine's load."""

    name: str
    lateness: Lateness
    latency_ns: float
    load: MachineLoad

    @property
    def taken(self) -> float:
        """The share of the time that the machine may have taken from the tenants.

        The larger of two: of the mean latency the part by which completions were late, and the share of the time for
        which work waited for a core.
        """
        return max(self.lateness.mean_ns / self.latency_ns, self.load.starved)

    def __str__(self) -> str:
        late = f"completions were late by {self.lateness.mean_ns / self.latency_ns:.1%} of the mean latency at most"
        return f"{self.name}: {late}; {self.load}"


@dataclass(frozen=True)
class Agreement:
    """The verdict: pass where every tenant's f-Util in real time is within the tolerance of that in virtual time.

    ``differences`` are relative to virtual time, by tenant; there are none where the verdict is unknown, for what was
    measured is then of the machine, and no figure. ``reason`` says why a verdict is no pass.
    """

    verdict: Verdict
    differences: Mapping[str, float]
    reason: str | None


def agreement(virtual: Mapping[str, float], real: Mapping[str, float], runs: Sequence[RealRun]) -> Agreement:
    """Compare f-Utils by tenant; ``runs`` are those that the real ones were taken from.

    Unknown where there was no run, or where in one of them the machine took more of the time than the tolerance. Raises
    ValueError where the two have other tenants, or none, or a tenant has no share in virtual time.
    """
    if not virtual or virtual.keys() != real.keys():
        raise ValueError(f"tenants in virtual time are {sorted(virtual)}, in real time {sorted(real)}")
    if idle := [name for name, share in virtual.items() if share <= 0]:
        raise ValueError(f"tenants without a share in virtual time: {', '.join(idle)}")
    late = [run for run in runs if not run.taken <= TOLERANCE]
    if late or not runs:
        told = "; ".join(map(str, late)) or "nothing was run"
        return Agreement(Verdict.UNKNOWN, {}, f"the machine did not keep up: {told}")
    differences = {name: real[name] / share - 1 for name, share in virtual.items()}
    apart = [f"{name} {value:+.1%}" for name, value in differences.items() if not abs(value) <= TOLERANCE]
    if apart:
        reason = f"f-Util in real time is more than {TOLERANCE:.0%} from that in virtual time: {', '.join(apart)}"
        return Agreement(Verdict.FAIL, differences, reason)
    return Agreement(Verdict.PASS, differences, None)
