"""The cost of boxes over years: worked examples by hand, where a saving comes out, and files of inputs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rackloop.data import data_path
from rackloop.errors import BadInput
from rackloop_models.economics import (
    Box,
    Conditions,
    Costs,
    Input,
    breakevens,
    cost_of,
    load_costs,
    region,
    saving,
)

SHIPPED = data_path("labs") / "costs" / "smartnic-box.yaml"


def given(value: float, low: float = 0.1, high: float = 1000.0) -> Input:
    return Input(value, low, high, "assumed")


def box(name: str, *, usd: float, watts: float, units: float = 1, lifetime: float = 10, maintenance: float = 0) -> Box:
    return Box(
        name=name,
        purchase_usd=given(usd, 100, 10_000),
        watts=given(watts),
        rack_units=given(units),
        lifetime_years=given(lifetime, 1, 20),
        maintenance_percent_per_year=given(maintenance, 0, 20),
        iops=given(1e6, 1e5, 1e7),
    )


CONDITIONS = Conditions(
    years=given(10, 1, 20),
    needed_iops=given(1e6, 1e5, 1e8),
    energy_usd_per_kwh=given(0.10, 0.01, 1),
    pue=given(2, 1, 3),
    rack_unit_usd_per_year=given(100, 0, 1000),
    discount_percent=given(0, 0, 15),
)
COSTS = Costs(
    CONDITIONS,
    candidate=box("small", usd=3000, watts=50),
    baseline=box("large", usd=3000, watts=200, units=2),
    published_saving_percent=given(44),
)


def test_purchase_and_operation_are_apart() -> None:
    # 200 W x 8760 h = 1752 kWh; twice that by the PUE, at 0.10 USD, for ten years: 3504. Two units: 2000.
    cost = cost_of(COSTS.baseline, CONDITIONS)
    assert (cost.purchase_usd, cost.space_usd, cost.maintenance_usd, cost.boxes) == (3000, 2000, 0, 1)
    assert cost.energy_usd == pytest.approx(3504)
    assert cost.operation_usd == pytest.approx(5504)
    assert cost.total_usd == pytest.approx(8504)
    # 876 of energy, 1000 of space: 4876, so that 1 - 4876 / 8504 is saved.
    assert saving(COSTS) == pytest.approx(0.42662, abs=1e-5)


def test_a_box_is_bought_again_at_the_end_of_its_lifetime() -> None:
    of_five = replace(COSTS.baseline, lifetime_years=given(5, 1, 20))
    assert [cost_of(of_five, CONDITIONS, years).purchase_usd for years in (1, 5, 5.5, 10, 11)] == [
        3000,
        3000,
        6000,
        6000,
        9000,
    ]


@pytest.mark.parametrize(("years", "lifetime", "times"), [(2.1, 0.7, 3), (4.2, 0.6, 7), (2.2, 0.7, 4), (0.5, 0.7, 1)])
def test_a_box_is_not_bought_again_at_the_end_of_the_years(years: float, lifetime: float, times: int) -> None:
    one = box("small", usd=3000, watts=50, lifetime=lifetime)
    assert cost_of(one, CONDITIONS, years).purchase_usd == times * 3000


def test_later_years_are_discounted() -> None:
    conditions = replace(CONDITIONS, discount_percent=given(10, 0, 15))
    cost = cost_of(box("one", usd=1000, watts=0, lifetime=1, maintenance=10), conditions, 2)
    # Bought now and for 1000 / 1.1 in a year; a unit at 100 and 10 % of maintenance in each of both years.
    assert cost.purchase_usd == pytest.approx(1909.09, abs=0.01)
    assert cost.space_usd == cost.maintenance_usd == pytest.approx(190.91, abs=0.01)
    assert cost_of(box("one", usd=1000, watts=0), CONDITIONS, 1.5).space_usd == pytest.approx(150)


def test_a_load_takes_whole_boxes() -> None:
    conditions = replace(CONDITIONS, needed_iops=given(2_100_000, 1e5, 1e8))
    cost = cost_of(COSTS.baseline, conditions)
    assert (cost.boxes, cost.purchase_usd) == (3, 9000)
    assert cost.energy_usd == pytest.approx(3 * 3504)


def test_the_published_saving_comes_out_where_the_equation_says() -> None:
    found = {one.name: one for one in breakevens(COSTS)}
    # (4000 + 8760 p) = 0.56 (5000 + 35040 p), with p in USD: p = (4000 - 2800) / (19622.4 - 8760).
    (price,) = found["energy_usd_per_kwh"].values
    assert price == pytest.approx(1200 / 10862.4, rel=1e-6)
    assert saving(COSTS.with_value("energy_usd_per_kwh", price)) == pytest.approx(0.44)
    # The candidate's lifetime: no longer one makes it cheaper than once in ten years.
    lifetime = found["candidate.lifetime_years"]
    assert lifetime.values == ()
    assert lifetime.most == pytest.approx(saving(COSTS))
    # A saving that leaps over what was published is not said to come out.
    assert all(
        saving(COSTS.with_value(one.name, value)) == pytest.approx(0.44)
        for one in found.values()
        for value in one.values
    )


def test_without_operation_nothing_is_saved_at_equal_purchase() -> None:
    costs = COSTS.with_value("energy_usd_per_kwh", 0).with_value("rack_unit_usd_per_year", 0)
    assert saving(costs) == 0
    assert saving(costs.with_value("baseline.purchase_usd", 6000)) == 0.5


def test_a_region_is_the_saving_at_each_place() -> None:
    one = region(COSTS, "energy_usd_per_kwh", "pue", steps=4)
    assert (len(one.x), len(one.y), one.y) == (5, 5, (1, 1.5, 2, 2.5, 3))
    at = COSTS.with_value("energy_usd_per_kwh", one.x[3]).with_value("pue", 2.5)
    assert one.saving[3][3] == pytest.approx(saving(at))
    # Energy and PUE count only as their product.
    assert one.saving[0][4] == pytest.approx(saving(COSTS.with_value("energy_usd_per_kwh", 0.5)))


def test_the_shipped_inputs_have_sources() -> None:
    costs = load_costs()
    named = dict(costs.inputs())
    assert named["candidate.watts"].value == 52.5
    assert named["baseline.watts"].value == 192.0
    assert costs.published_saving_percent.value == 44.0
    assert {name for name, one in named.items() if one.is_assumed} >= {"pue", "baseline.purchase_usd"}
    assert not any(named[name].is_assumed for name in ("candidate.purchase_usd", "candidate.watts", "baseline.watts"))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("pue:", "pui:", "unknown key; did you mean 'pue'?"),
        ("watts: {value: 52.5", "watts: {value: many", "a number of 0 or more"),
        ("watts: {value: 52.5", "watts: {value: -1", "a number of 0 or more"),
        (
            "value: 52.5, from: 10",
            "value: 5, from: 10",
            "candidate.watts is 5, its range 10 to 500; give one around it",
        ),
        ("from: 1.0, to: 3.0", "from: 0.5, to: 3.0", "give 1 or more"),
        ("from: 1, to: 20, source", "from: 0, to: 20, source", "years begins at 0; give a range above 0"),
        ("name: smartnic", "name: x86", "both boxes are called x86"),
        ("iops: {value: 1513000", "iopss: {value: 1513000", "did you mean 'iops'?"),
    ],
)
def test_a_file_with_a_mistake_is_refused(tmp_path: Path, old: str, new: str, said: str) -> None:
    text = SHIPPED.read_text()
    assert old in text
    path = tmp_path / "mine.yaml"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(BadInput) as refused:
        load_costs(path)
    assert said in str(refused.value)
