"""The plots of tenants that a test's measurements allow."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from matplotlib.figure import Figure

from rackloop.measurement import Verdict
from rackloop.record import Measured
from rackloop_reports.plots._limits import limits_of
from rackloop_reports.plots._style import Source
from rackloop_reports.plots.tenancy import (
    BesideNeighbours,
    Figured,
    TenantLatency,
    TenantShare,
    isolation_sheet,
    tenant_latency,
    tenant_shares,
)
from rackloop_reports.record import TestRecord

F_UTIL, BANDWIDTH, KEPT, P99_FACTOR = "tenant.f_util", "tenant.bandwidth", "isolation.kept", "isolation.p99_factor"
_LATENCIES = ("tenant.p50", "tenant.p99", "tenant.p999")
_OVERALL = {
    "fairness.jain": "Jain index",
    "fairness.min_max": "smallest over largest",
    "fairness.utilisation": "utilisation",
}
_ALONE, _TOGETHER = "alone", "together"
_NOTHING = "nothing"
_TENANT = frozenset({"tenant", "block", "mix", "outstanding"})

Drawing = tuple[str, Callable[[], Figure]]


def tenancy_drawings(test: TestRecord, source: Source) -> Iterator[Drawing]:
    """The plots of ``test``, by name, most telling first; with its reason where its verdict is unknown."""
    if test.verdict is Verdict.UNKNOWN:
        reason = (test.reason or "no reason was given").split("; ")[0]
        source = replace(source, doubt=f"Verdict unknown, so that nothing here is proven: {reason}.")
    for meanwhile, shares in _shares(test).items():
        title = "Shares of tenants" if meanwhile == _NOTHING else f"Shares of tenants, meanwhile {meanwhile}"
        yield title, partial(tenant_shares, shares, _overall(test, meanwhile), source, meanwhile)
    if cases := _cases(test):
        yield "A tenant beside its neighbours", lambda: isolation_sheet(cases, source)
    latencies = _latencies(test)
    if any(one.quantiles for one in latencies):
        yield "Latency of tenants", lambda: tenant_latency(latencies, source)


def _means(test: TestRecord, name: str) -> list[tuple[Measured, Figured]]:
    """The measurements of this name, each once, with its mean, its interval and the limits of any statistic."""
    found: dict[frozenset[tuple[str, str]], tuple[Measured, Figured]] = {}
    for one in test.measurements:
        key = frozenset(one.labels.items())
        if one.name == name and one.quantile == "mean" and key not in found:
            interval = (None, None) if one.ci95 is None else (one.ci95[0], one.ci95[1])
            found[key] = one, Figured(one.value, interval, limits_of(test, one))
    return list(found.values())


def _meanwhile(one: Measured) -> str:
    """The work of the rack while this was measured."""
    return one.labels.get("meanwhile", _NOTHING)


def _shares(test: TestRecord) -> dict[str, list[TenantShare]]:
    """The shares of tenants, by the work of the rack meanwhile: each is a phase of its own."""
    bandwidths = {(one.labels.get("tenant"), one.labels.get("when")): of.value for one, of in _means(test, BANDWIDTH)}
    found: dict[str, list[TenantShare]] = {}
    for one, f_util in _means(test, F_UTIL):
        if one.labels.keys() >= _TENANT:
            meanwhile, tenant = _meanwhile(one), one.labels["tenant"]
            alone = tenant, _ALONE
            together = tenant, _TOGETHER if meanwhile == _NOTHING else f"{_TOGETHER}, {meanwhile}"
            if {alone, together} <= bandwidths.keys():
                served = bandwidths[alone], bandwidths[together]
                weight, is_bounded = _weight(one.labels.get("weight", "1")), "demand" in one.labels
                share = TenantShare(_name(one), *served, f_util, weight, has_bounded_demand=is_bounded)
                found.setdefault(meanwhile, []).append(share)
    return found


def _weight(label: str) -> float:
    """The weight that a label says; 1 where it is none."""
    try:
        weight = float(label)
    except ValueError:
        return 1.0
    return weight if 0 < weight < math.inf else 1.0


def _overall(test: TestRecord, meanwhile: str) -> list[tuple[str, Figured]]:
    """The figures of all tenants in one phase, by words."""
    return [
        (words, of)
        for name, words in _OVERALL.items()
        for one, of in _means(test, name)
        if _meanwhile(one) == meanwhile
    ]


def _cases(test: TestRecord) -> list[BesideNeighbours]:
    factors = {one.labels.get("neighbours"): of for one, of in _means(test, P99_FACTOR)}
    return [
        BesideNeighbours(one.labels["neighbours"], of, factors.get(one.labels["neighbours"]))
        for one, of in _means(test, KEPT)
        if "neighbours" in one.labels
    ]


def _latencies(test: TestRecord) -> list[TenantLatency]:
    """The latencies of tenants that were measured alone, which is what others are held against."""
    phases: dict[str, list[str]] = {}
    quantiles: dict[str, dict[tuple[str, str], Figured]] = {}
    for name in (BANDWIDTH, *_LATENCIES):
        for one, of in _means(test, name):
            if one.labels.keys() >= {*_TENANT, "when"}:
                phases.setdefault(_name(one), []).append(one.labels["when"])
                found = quantiles.setdefault(_name(one), {})
                if name != BANDWIDTH:
                    found[one.labels["when"], name.removeprefix("tenant.")] = of
    # Beside neighbours the phases of a victim are many; alone stands first.
    return [
        TenantLatency(name, dict(sorted(of.items(), key=lambda item: item[0][0] != _ALONE)), phases[name])
        for name, of in quantiles.items()
        if _ALONE in phases[name]
    ]


def _name(one: Measured) -> str:
    labels = one.labels
    terms = f", weight {labels['weight']}" if "weight" in labels else ""
    terms += f", {labels['demand']}" if "demand" in labels else ""
    return f"{labels['tenant']}\n{labels['block']} {labels['mix']}\ndepth {labels['outstanding']}{terms}"
