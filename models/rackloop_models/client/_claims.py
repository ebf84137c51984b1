"""The Gimbal paper's two figures of its key-value store, beside what was measured here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean

from rackloop_models.client._cells import Cell
from rackloop_models.client._measure import StoreOutcome
from rackloop_models.drives import REQUESTS_BEYOND, all_known
from rackloop_models.tenancy import Claim

_GIMBAL = "gimbal"
_OTHERS = ("reflex", "parda", "flashfq")
OutcomesByCell = Mapping[Cell, Sequence[StoreOutcome]]


def store_claims(found: Mapping[str, OutcomesByCell]) -> tuple[Claim, ...]:
    """Throughput and tail latency of the whole client on Gimbal over those on other schedulers, by mix, means of seeds.

    Neither is judged: what is known of the paper's does not say over which scheduler, or in which workload.
    """
    return (
        _claim("RocksDB throughput, up to", "x1.7", found, _throughput, lambda factor: f"x{factor:.2f}"),
        _claim(
            "RocksDB tail latency (p99.9 of gets), up to",
            "35.0 % less",
            found,
            _tail_ns,
            lambda factor: f"{abs(1 - factor):.1%} {'less' if factor <= 1 else 'more'}",
        ),
    )


def _throughput(outcomes: Sequence[StoreOutcome]) -> float | None:
    return fmean(one.operations_per_s for one in outcomes)


def _tail_ns(outcomes: Sequence[StoreOutcome]) -> float | None:
    found = all_known(one.mean_get_ns("p99_9") for one in outcomes)
    return fmean(found) if found else None


def _claim(
    claim: str,
    published: str,
    found: Mapping[str, OutcomesByCell],
    figure: Callable[[Sequence[StoreOutcome]], float | None],
    said: Callable[[float], str],
) -> Claim:
    told = []
    for other in _OTHERS:
        factors = {
            mix: ours / theirs
            for mix, cells in found.items()
            if (ours := _of(cells, _GIMBAL, figure)) is not None and (theirs := _of(cells, other, figure))
        }
        if factors:
            told.append(
                f"over {other} " + ", ".join(f"{said(factor)} ({mix.upper()})" for mix, factor in factors.items())
            )
    told = told or ["not measured"]
    left_out = [
        f"{kind} ({mix.upper()})"
        for kind in (_GIMBAL, *_OTHERS)
        for mix, cells in found.items()
        if _whole(cells, kind) and _of(cells, kind, figure) is None
    ]
    if left_out:
        beyond = f"with fewer than {REQUESTS_BEYOND} gets of a client beyond it"
        told.append(f"left out, {beyond}: {', '.join(left_out)}")
    return Claim(claim, published, "; ".join(told), None)


def _of(cells: OutcomesByCell, kind: str, figure: Callable[[Sequence[StoreOutcome]], float | None]) -> float | None:
    """The figure of the whole client on a scheduler; None where it was not run, or has none."""
    outcomes = _whole(cells, kind)
    return figure(outcomes) if outcomes else None


def _whole(cells: OutcomesByCell, kind: str) -> Sequence[StoreOutcome]:
    """The outcomes of the whole client on a scheduler, the first of its kind; none where it was not run."""
    whole = (of for cell, of in cells.items() if cell.ablation is None and cell.parameters["kind"] == kind)
    return next(whole, ())
