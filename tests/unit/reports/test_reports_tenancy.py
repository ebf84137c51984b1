"""Plots of tenants that share a drive: shares with their ideal, f-Util, latency, and the neighbours of a victim."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rackloop.record import Measured
from rackloop_reports.plot_selection import RunPlots
from rackloop_reports.plots import (
    BesideNeighbours,
    Figured,
    LimitLine,
    Source,
    TenantLatency,
    TenantShare,
    isolation_sheet,
    tenant_latency,
    tenant_shares,
)
from rackloop_reports.plots.tenancy_select import tenancy_drawings
from rackloop_reports.record import read_run
from tests.unit.reports.example_stream import ExampleRun

SOURCE = Source("tenancy", "mock (simulated)", 7, is_simulated=True)
TEST = "tenancy/fair_share::fair_share"
LEAST = LimitLine("mean", 0.5, "1", is_least=True)


def words(axes: Axes) -> list[str]:
    return [text.get_text() for text in axes.texts]


def share(name: str, together: float, f_util: float, *limits: LimitLine) -> TenantShare:
    return TenantShare(name, 400e6, together, Figured(f_util, (f_util - 0.1, f_util + 0.2), limits))


def test_a_share_stands_beside_its_ideal() -> None:
    tenants = [share("t1", 150e6, 0.75, LEAST), share("t2", 250e6, 1.25, LEAST)]
    left, right = tenant_shares(tenants, [("Jain index", Figured(0.94, (0.9, 0.97)))], SOURCE).axes
    assert [bar.get_height() for bar in left.patches] == pytest.approx([150, 250])  # type: ignore[attr-defined]
    ideals = [line for lines in left.collections for line in lines.get_segments()]  # type: ignore[attr-defined]
    assert [line[0][1] for line in ideals] == pytest.approx([200, 200]), "alone over the number of tenants"
    assert words(right) == ["0.75", "1.25", "limit of mean: ≥ 0.5"]
    bars = [line.get_segments()[0][:, 1].tolist() for line in right.collections]  # type: ignore[attr-defined]
    assert bars == [pytest.approx([0.65, 0.95]), pytest.approx([1.15, 1.45])]


@pytest.mark.parametrize("weight", ["heavy", "0", "nan", "inf"])
def test_a_weight_that_is_none_counts_as_any_others(tmp_path: Path, weight: str) -> None:
    example = ExampleRun(tmp_path)
    example.start(TEST, "share a drive")
    labels = {"tenant": "t1", "block": "4 KiB", "mix": "100/0", "outstanding": "32"}
    example.write(measured("tenant.f_util", "1", 1.0, **labels, weight=weight))
    for when in ("alone", "together"):
        example.write(measured("tenant.bandwidth", "B/s", 4e8, **labels, when=when))
    example.finish(TEST)
    ((_, draw),) = tenancy_drawings(read_run(example.close()).tests[0], SOURCE)
    _, right = draw().axes
    assert right.get_ylabel() == "f-Util (ideal: 1)"


def test_an_ideal_is_by_the_weight_of_a_tenant(tmp_path: Path) -> None:
    example = ExampleRun(tmp_path / "run")
    example.start(TEST, "share a drive")
    for tenant, weight, f_util in (("t1", "1", 0.4), ("t2", "4", 1.6)):
        labels = {"tenant": tenant, "block": "4 KiB", "mix": "100/0", "outstanding": "32"}
        example.write(measured("tenant.f_util", "1", f_util, **labels, weight=weight))
        for when, served in (("alone", 400e6), ("together", 200e6 * f_util)):
            example.write(measured("tenant.bandwidth", "B/s", served, **labels, when=when))
    example.finish(TEST)
    (test,) = read_run(example.close()).tests
    (draw,) = dict(tenancy_drawings(test, SOURCE)).values()
    left, right = draw().axes
    assert [bar.get_height() for bar in left.patches] == pytest.approx([80, 320])  # type: ignore[attr-defined]
    assert [line[0][1] for line in left.collections[0].get_segments()] == pytest.approx([80, 320])  # type: ignore[attr-defined]
    assert [line[0][1] for line in right.collections[0].get_segments()] == pytest.approx([0.4, 1.6])  # type: ignore[attr-defined]
    assert right.get_ylabel() == "f-Util (ideal: by weight)"
    assert [text.get_text() for text in left.get_xticklabels()] == [
        f"{tenant}\n4 KiB 100/0\ndepth 32, weight {weight}" for tenant, weight in (("t1", 1), ("t2", 4))
    ]


@pytest.mark.parametrize(
    ("demands", "drawn", "legend", "label"),
    [
        (
            ("", "rate", "pauses"),
            {0},
            "least due: alone / number of tenants; no ideal with rates or pauses",
            "f-Util (least due: 1)",
        ),
        (("rate", "rate", "pauses"), set(), "no ideal: all have rates or pauses", "f-Util"),
    ],
)
def test_what_asks_for_less_than_all_has_no_ideal(
    tmp_path: Path, demands: tuple[str, ...], drawn: set[int], legend: str, label: str
) -> None:
    example = ExampleRun(tmp_path / "run")
    example.start(TEST, "share a drive")
    for place, demand in enumerate(demands):
        labels = {"tenant": f"t{place}", "block": "4 KiB", "mix": "100/0", "outstanding": "32"}
        example.write(measured("tenant.f_util", "1", 3.0, **labels, **({"demand": demand} if demand else {})))
        for when in ("alone", "together"):
            example.write(measured("tenant.bandwidth", "B/s", 300e6, **labels, when=when))
    example.finish(TEST)
    (test,) = read_run(example.close()).tests
    (draw,) = dict(tenancy_drawings(test, SOURCE)).values()
    figure = draw()
    left, right = figure.axes
    for axes, ideal in ((left, 100), (right, 1)):
        lines = axes.collections[0].get_segments()  # type: ignore[attr-defined]
        assert [tuple(line[:, 1]) for line in lines] == [(ideal, ideal)] * len(drawn)
        assert {round(line[:, 0].mean()) for line in lines} == drawn
    assert legend in [text.get_text() for text in figure.legends[0].get_texts()]
    assert right.get_ylabel() == label
    assert [text.get_text().partition("32")[2] for text in left.get_xticklabels()] == [
        f", {demand}" if demand else "" for demand in demands
    ]


def test_the_figures_of_all_tenants_are_in_the_caption() -> None:
    figure = tenant_shares([share("t1", 1e6, 1)], [("Jain index", Figured(0.94, (0.9, 0.97)))], SOURCE)
    assert "Jain index 0.94 (0.9 to 0.97). Bars: 95 % intervals by bootstrap" in figure.texts[1].get_text().replace(
        "\n", " "
    )


def test_limits_of_single_tenants_are_marked_at_them() -> None:
    tenants = [share("t1", 1e6, 0.75, LEAST), share("t2", 1e6, 1.25)]
    _, right = tenant_shares(tenants, [], SOURCE).axes
    assert words(right).count("≥ 0.5") == 1


def test_a_share_of_too_few_rounds_has_no_bar_that_would_say_more() -> None:
    _, right = tenant_shares([TenantShare("t1", 1e6, 1e6, Figured(0.8))], [], SOURCE).axes
    (bar,) = right.collections
    low, high = bar.get_segments()[0][:, 1]  # type: ignore[attr-defined]
    assert low == high == pytest.approx(0.8)


def test_latencies_stand_by_phase_and_quantile() -> None:
    quantiles = {
        ("alone", "p50"): Figured(1e-3),
        ("alone", "p99"): Figured(2e-3),
        ("together", "p50"): Figured(4e-3),
        ("together", "p999"): Figured(9e-3, limits=[LimitLine("mean", 20e-3)]),
    }
    (axes,) = tenant_latency([TenantLatency("t1", quantiles)], SOURCE).axes
    assert words(axes) == ["p50", "p99", "p50", "p99.9", "limit of mean: ≤ 20 ms"]
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["alone", "together"]
    assert axes.get_ylabel() == "Latency, ms"


def caption_of(figure: Figure) -> str:
    return " ".join(" ".join(text.get_text() for text in figure.texts).split())


def test_the_quantiles_that_a_tenant_lacks_are_named_with_the_reason() -> None:
    full = {("alone", name): Figured(1e-3) for name in ("p50", "p99")}
    beside = {(f"beside {number}", "p50"): Figured(1e-3) for number in range(1, 9)}
    tenants = [TenantLatency("victim\n64 KiB", full | beside), TenantLatency("t2", full)]
    assert (
        "Not shown, because a round had too few I/Os beyond it (longer rounds have more), or not all that were due "
        "were issued: p99 of victim (beside 1, beside 2, beside 3, beside 4, beside 5, beside 6 and 2 more). Plan"
    ) in caption_of(tenant_latency(tenants, SOURCE))
    assert "Not shown" not in caption_of(tenant_latency(tenants[1:], SOURCE))
    lone = TenantLatency("t1", {("alone", "p50"): Figured(1e-3)})
    assert "p99 of t1 (alone)" in caption_of(tenant_latency([lone], SOURCE)), "nor where nobody has it"


def test_a_phase_in_which_a_tenant_starved_is_named(tmp_path: Path) -> None:
    """It has a bandwidth and no quantile there."""
    example = ExampleRun(tmp_path / "run")
    example.start(TEST, "share")
    labels = {"tenant": "t1", "block": "4 KiB", "mix": "100/0", "outstanding": "32"}
    for when in ("alone", "together"):
        example.write(measured("tenant.bandwidth", "B/s", 1e6, **labels, when=when))
    example.write(measured("tenant.p50", "s", 1e-3, **labels, when="alone"))
    example.finish(TEST)
    (test,) = read_run(example.close()).tests
    (draw,) = dict(tenancy_drawings(test, SOURCE)).values()
    assert "p50 of t1 (together); p99 of t1 (alone, together)" in caption_of(draw())


def test_plots_of_a_test_that_was_not_steady_say_so(tmp_path: Path) -> None:
    example = ExampleRun(tmp_path / "run")
    labels = {"tenant": "victim", "block": "4 KiB", "mix": "100/0", "outstanding": "32", "when": "alone"}
    reason = "no steady state in 30 rounds: they drift over 11%; let it run for more"
    for test, finish in ((TEST, ("unknown", "harness", reason)), ("a/b::c", ("pass",))):
        example.start(test, "be left alone")
        for one in (
            measured("isolation.kept", "1", 0.4, neighbours="depth 8"),
            measured("tenant.p50", "s", 1e-3, **labels),
        ):
            example.write(replace(one, test=test))
        example.finish(test, *finish)
    unsteady, steady = read_run(example.close()).tests
    doubt = "Verdict unknown, so that nothing here is proven: no steady state in 30 rounds: they drift over 11%."
    drawn = [caption_of(draw()) for _, draw in tenancy_drawings(unsteady, SOURCE)]
    assert len(drawn) == 2
    assert all(doubt in caption for caption in drawn)
    assert not any("unknown" in caption_of(draw()) for _, draw in tenancy_drawings(steady, SOURCE))


def test_a_victim_is_shown_beside_each_kind_of_neighbour() -> None:
    cases = [
        BesideNeighbours("128 KiB depth 1", Figured(0.9, (0.85, 0.95)), Figured(1.2)),
        BesideNeighbours("128 KiB depth 8", Figured(0.4), None),
    ]
    left, right = isolation_sheet(cases, SOURCE).axes
    assert [text.get_text() for text in left.get_yticklabels()] == ["128 KiB depth 1", "128 KiB depth 8"]
    assert [line.get_xdata()[0] for line in left.lines if line.get_marker() == "o"] == [0.9, 0.4]  # type: ignore[index]
    assert [line.get_xdata()[0] for line in right.lines if line.get_marker() == "o"] == [1.2]  # type: ignore[index]
    assert len(isolation_sheet(cases[1:], SOURCE).axes) == 1, "no latency, no panel of it"


def measured(name: str, unit: str, value: float, *, quantile: str = "mean", **labels: str) -> Measured:
    found: dict[str, Any] = {"p50": None, "p99": None, "limits": None, "verdict": None, "reason": None}
    return Measured(
        test=TEST,
        name=name,
        labels=labels,
        unit=unit,
        n=5,
        quantile=quantile,
        value=value,
        ci95=(value * 0.9, value * 1.1),
        values=[value],
        counts=[5],
        **found,
    )


def test_a_run_draws_what_it_measured(tmp_path: Path) -> None:
    example = ExampleRun(tmp_path / "run")
    example.start(TEST, "share a drive")
    for tenant in ("t1", "t2"):
        labels = {"tenant": tenant, "block": "4 KiB", "mix": "100/0", "outstanding": "32"}
        example.write(measured("tenant.f_util", "1", 0.9, quantile="p50", **labels))
        example.write(measured("tenant.f_util", "1", 0.95, **labels))
        for when in ("alone", "together"):
            example.write(measured("tenant.bandwidth", "B/s", 1e8, **labels, when=when))
            example.write(measured("tenant.p99", "s", 1e-3, **labels, when=when))
    example.write(measured("fairness.jain", "1", 0.99))
    example.finish(TEST)
    run = read_run(example.close())
    names = [plot.name for plot in RunPlots(run).plots_of(run.tests)]
    assert names == ["Shares of tenants: fair share (simulated)", "Latency of tenants: fair share (simulated)"]


def test_the_shares_while_the_rack_is_at_work_are_a_figure_of_their_own(tmp_path: Path) -> None:
    works = {"nothing": (200e6, 1.0), "remaps": (60e6, 0.3), "rebuilds": (20e6, 0.1)}
    example = ExampleRun(tmp_path / "run")
    example.start(TEST, "share a drive")
    for tenant in ("t1", "t2"):
        labels = {"tenant": tenant, "block": "4 KiB", "mix": "100/0", "outstanding": "32"}
        example.write(measured("tenant.bandwidth", "B/s", 400e6, **labels, when="alone"))
        for work, (bandwidth, f_util) in works.items():
            when = "together" if work == "nothing" else f"together, {work}"
            example.write(measured("tenant.bandwidth", "B/s", bandwidth, **labels, when=when))
            example.write(measured("tenant.f_util", "1", f_util, **labels, meanwhile=work))
    for work, (_, f_util) in works.items():
        example.write(measured("fairness.jain", "1", f_util, meanwhile=work))
    example.finish(TEST)
    (test,) = read_run(example.close()).tests
    drawn = dict(tenancy_drawings(test, SOURCE))
    named = ["Shares of tenants", *(f"Shares of tenants, meanwhile {work}" for work in ("remaps", "rebuilds"))]
    assert list(drawn) == named
    for (work, (bandwidth, f_util)), draw in zip(works.items(), drawn.values(), strict=True):
        figure = draw()
        left, _ = figure.axes
        assert [bar.get_height() for bar in left.patches] == pytest.approx([bandwidth / 1e6] * 2)  # type: ignore[attr-defined]
        ideals = [line for lines in left.collections for line in lines.get_segments()]  # type: ignore[attr-defined]
        assert [line[0][1] for line in ideals] == pytest.approx([200, 200]), "alone over the number of tenants"
        assert f"Meanwhile: {work}. Jain index {f_util:.3g} (" in caption_of(figure)


def test_a_run_draws_the_neighbours_of_a_victim(tmp_path: Path) -> None:
    example = ExampleRun(tmp_path / "run")
    example.start(TEST, "be left alone")
    example.write(measured("isolation.kept", "1", 0.4, neighbours="128 KiB depth 8"))
    example.write(measured("isolation.kept", "1", 0.4))
    example.finish(TEST)
    run = read_run(example.close())
    names = [plot.name for plot in RunPlots(run).plots_of(run.tests)]
    assert names == ["A tenant beside its neighbours: fair share (simulated)"]
