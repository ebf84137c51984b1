"""What of a lab the designs may use, and rules as the verdict of a test."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from rackloop.errors import NotSupported, ProductFailed
from rackloop.lab import load_lab
from rackloop_fixtures import StorageParts, drives_in, require_rules
from rackloop_fixtures._outcome import LimitsUnknown
from rackloop_models.disaggregation import Findings, History, Rule, complete, configuration, elastic, failure


def test_the_lab_of_the_designs_has_the_shape_of_all_of_them() -> None:
    lab = load_lab("disaggregation")
    parts = StorageParts.of(lab)
    assert len(elastic(parts.servers, parts.ports, parts.drives).drives) == 8
    assert len(failure(parts.servers, parts.ports, parts.drives, 2).drives) == 12
    assert complete(parts.servers[:2], parts.ports[:2], parts.drives).n == 2
    shared = configuration(parts.servers, parts.ports, parts.expanders)
    assert [drives_in(lab, expander) for expander in shared.drives] == [("d17", "d18", "d19"), ("d20", "d21", "d22")]


def test_drives_that_may_not_be_erased_are_left_out_and_so_are_those_behind_expanders() -> None:
    lab = load_lab("mock")
    parts = StorageParts.of(lab)
    assert set(lab.drives) - set(parts.drives) == {"d20", "d21", "d22", "d23", "d24"}
    assert parts.ports == ("p0", "p1", "p2", "p3")
    assert parts.drives[: len(lab.places)] == tuple(lab.places)


def test_a_rack_whose_cabling_is_fixed_has_no_parts_to_move() -> None:
    with pytest.raises(NotSupported, match="fixed cabling"):
        StorageParts.of(load_lab("direct-attached"))


class Recorded:
    """What was measured, as a test's Measure takes it."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, float, dict[str, str]]] = []

    def __call__(self, name: str, samples: float, **labels: str) -> None:
        self.seen.append((name, samples, labels))


def required(rules: Iterable[tuple[str, Rule]]) -> Recorded:
    measure: Any = Recorded()
    require_rules(measure, "x.rule_broken", rules, History(), policy="one")
    assert isinstance(measure, Recorded)
    return measure


def fine(_history: History) -> Findings:
    return Findings(3, ())


def broken(_history: History) -> Findings:
    return Findings(3, ("d1 was lost", "d2 was lost"))


def unseen(_history: History) -> Findings:
    return Findings(0, ())


def test_every_rule_is_measured_by_its_name() -> None:
    assert required([("fine", fine)]).seen == [("x.rule_broken", 0, {"rule": "fine", "policy": "one"})]


def test_a_broken_rule_is_the_products_failure_before_one_that_is_not_known() -> None:
    with pytest.raises(ProductFailed, match=r"^broken: d1 was lost; d2 was lost$"):
        required([("unseen", unseen), ("broken", broken), ("fine", fine)])


def test_a_rule_that_saw_nothing_is_never_green() -> None:
    with pytest.raises(LimitsUnknown, match="unseen: nothing was seen"):
        required([("fine", fine), ("unseen", unseen)])
