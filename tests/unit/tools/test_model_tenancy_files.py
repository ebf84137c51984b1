"""Figures of `rackloop model tenancy`: what their captions say of seeds and times, and the ideals that they draw."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from matplotlib.figure import Figure as Drawn

from rackloop_cli.model.tenancy_files import _fairness, _time_lines, _utilisation
from rackloop_cli.model.tenancy_results import Series, Sweeps, TenancyRequest, TenancyResults
from rackloop_models.drives import Bursts, Depth, Rate
from rackloop_models.tenancy import Figure, Outcome, Scenario, TenantKind, TimeLine

FIVE_SEEDS = TenancyRequest(
    file=None,
    scenarios=(),
    conditions=(),
    schedulers=(),
    counts=(),
    seconds=0.5,
    warm_up_s=1.8,
    profile="nvme-ssd",
    size="4 GiB",
    seed=1,
    seeds=5,
    with_sweeps=False,
    out=None,
    as_json=False,
)


READER = TenantKind(name="reader", arrivals=Depth(1), block_bytes=4096)
ALIKE = Scenario("alike", "clean", (READER,))


def results(outcomes: Sequence[Outcome] = (), series: Series | None = None) -> TenancyResults:
    return TenancyResults(
        profile="nvme-ssd",
        like="a drive",
        size_bytes=4 << 30,
        request=FIVE_SEEDS,
        outcomes=outcomes,
        claims=(),
        series=series or Series(),
        sweeps=Sweeps(),
    )


def caption_of(figure: Drawn) -> str:
    return " ".join(" ".join(text.get_text() for text in figure.texts).split())


def outcome(scenario: Scenario, scheduler: str) -> Outcome:
    kinds = {kind.name: Figure(1.0) for kind in scenario.kinds}
    return Outcome(scenario, (), scheduler, Figure(1.0), Figure(1.0), Figure(1.0), kinds)


@pytest.mark.parametrize(
    ("other", "has_ideal"),
    [
        (TenantKind(name="other", arrivals=Depth(2), block_bytes=4096), True),
        (TenantKind(name="other", arrivals=Rate(1000), block_bytes=4096), False),
        (TenantKind(name="other", arrivals=Depth(2), block_bytes=4096, bursts=Bursts(on_s=0.1, off_s=0.1)), False),
        (TenantKind(name="other", arrivals=Depth(2), block_bytes=4096, weight=2), False),
    ],
)
def test_an_ideal_of_one_is_drawn_where_it_is_that_of_all(other: TenantKind, *, has_ideal: bool) -> None:
    mixed = Scenario("mixed", "clean", (READER, other))
    figure = _fairness(results([outcome(one, "parda") for one in (ALIKE, mixed)]))
    assert [len(axes.lines) for axes in figure.axes] == [1, int(has_ideal)]
    ideal = "ideal: 1." if has_ideal else "ideal: 1 (none where demands are bounded or weights differ)."
    assert f"in the order of the scenario; {ideal}" in caption_of(figure)


@pytest.mark.parametrize(("arrivals", "lines"), [(Depth(2), 1), (Rate(1000), 0)])
def test_a_utilisation_has_no_line_at_1_where_a_demand_is_bounded(arrivals: Depth | Rate, lines: int) -> None:
    other = TenantKind(name="other", arrivals=arrivals, block_bytes=4096)
    figure = _utilisation(results([outcome(Scenario("mixed", "clean", (READER, other)), "none")]))
    assert len(figure.axes[0].lines) == lines
    assert ("No line at 1" in caption_of(figure)) is not bool(lines)


def test_weights_that_a_scheduler_has_no_use_for_change_no_ideal() -> None:
    heavy = TenantKind(name="heavy", arrivals=Depth(1), block_bytes=4096, weight=2)
    figure = _fairness(results([outcome(Scenario("mixed", "clean", (READER, heavy)), "gimbal:thresh_max_us=2000")]))
    assert len(figure.axes[0].lines) == 1


def test_gimbal_over_time_is_of_one_seed_and_has_a_time_of_its_own() -> None:
    points = ((0.0, 1.0), (4.0, 2.0))
    lines = (TimeLine("clean", {"reads": points}, {"reads": points}, points),)
    caption = caption_of(_time_lines(results(series=Series(time_lines=lines))))
    assert caption.endswith("writers of 4 KiB from 1 s to 3 s. nvme-ssd, 4 GiB, seed 1, in virtual time.")
    assert "after" not in caption
    assert "seeds" not in caption
