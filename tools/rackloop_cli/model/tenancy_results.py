"""The request and the results of `rackloop model tenancy`, and the rows that files and JSON have of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rackloop_models.drives import QUANTILES

if TYPE_CHECKING:
    from rackloop_models.drives import BoxCurves
    from rackloop_models.tenancy import (
        BehindBox,
        BoxInterference,
        Claim,
        Figure,
        Interference,
        Outcome,
        Sweep,
        TimeLine,
    )


@dataclass(frozen=True, kw_only=True)
class TenancyRequest:
    """The selection to run; empty lists are all there is."""

    file: Path | None
    scenarios: Sequence[str]
    conditions: Sequence[str]
    schedulers: Sequence[str]
    counts: Sequence[int]
    seconds: float
    warm_up_s: float
    profile: str
    size: str
    seed: int
    seeds: int
    with_sweeps: bool
    out: Path | None
    as_json: bool


@dataclass(frozen=True, kw_only=True)
class Series:
    """The experiments beside the scenarios that are drawn; none without files."""

    interference: Sequence[Interference] = ()
    time_lines: Sequence[TimeLine] = ()


@dataclass(frozen=True, kw_only=True)
class Sweeps:
    """The results that ``--sweeps`` adds: by one parameter after the other, and of boxes."""

    parameters: Sequence[Sweep] = ()
    behind_box: BehindBox | None = None
    boxes: Sequence[BoxCurves] = ()
    box_interference: Sequence[BoxInterference] = ()


@dataclass(frozen=True, kw_only=True)
class TenancyResults:
    """All results of a request."""

    profile: str
    like: str
    size_bytes: int
    request: TenancyRequest
    outcomes: Sequence[Outcome]
    claims: Sequence[Claim]
    series: Series
    sweeps: Sweeps

    def settings(self) -> dict[str, Any]:
        """The subject of the results."""
        return {
            "simulated": True,
            "profile": self.profile,
            "like": self.like,
            "bytes": self.size_bytes,
            "seed": self.request.seed,
            "seeds": self.request.seeds,
            "warm_up_s": self.request.warm_up_s,
            "seconds": self.request.seconds,
        }


def rows(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """A row for each kind of tenants in each outcome, with the figures of all tenants in each."""
    found = []
    for outcome in outcomes:
        for kind in outcome.scenario.kinds:
            tenants = outcome.of_kind(kind.name)
            f_utils = [tenant.f_util for tenant in tenants]
            found.append(
                {
                    "condition": outcome.scenario.condition,
                    "scenario": outcome.scenario.name,
                    "tenants": outcome.count,
                    "scheduler": outcome.scheduler,
                    **_figure("utilisation", outcome.utilisation),
                    **_figure("jain", outcome.jain),
                    **_figure("min_max_share", outcome.min_max),
                    "bytes_per_s": outcome.bytes_per_s,
                    "kind": kind.name,
                    "kind_tenants": len(tenants),
                    "kind_bytes_per_s": sum(tenant.bytes_per_s for tenant in tenants),
                    "kind_alone_bytes_per_s": tenants[0].alone_bytes_per_s,
                    **_figure("kind_f_util_mean", outcome.kinds[kind.name]),
                    "kind_f_util_min": min(f_utils),
                    "kind_f_util_max": max(f_utils),
                    **{f"kind_worst_{name}_ns": outcome.worst_ns(name, kind.name) for name in QUANTILES},
                }
            )
    return found


def _figure(name: str, figure: Figure) -> dict[str, float | None]:
    low, high = figure.ci95
    return {name: figure.value, f"{name}_low": low, f"{name}_high": high}


def with_interval(figure: Figure, digits: int) -> str:
    """A figure, with its interval where it has one."""
    low, high = figure.ci95
    told = f"{figure.value:.{digits}f}"
    return told if low is None or high is None else f"{told} ({low:.{digits}f} to {high:.{digits}f})"


def claim_rows(found: Sequence[Claim]) -> list[dict[str, Any]]:
    """The claims with a word for each verdict."""
    return [
        {"claim": one.claim, "published": one.published, "ours": one.ours, "verdict": verdict(one)} for one in found
    ]


def verdict(claim: Claim) -> str:
    """The agreement of a claim, in a word."""
    return {True: "agrees", False: "differs", None: "unknown"}[claim.agrees]
