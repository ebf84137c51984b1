"""Which drive a trace is replayed on, and where that is."""

from __future__ import annotations

import pytest

from rackloop.errors import BadInput, NotSupported
from rackloop.lab import Lab, load_lab
from rackloop_fixtures import replay_place


@pytest.fixture(scope="module")
def lab() -> Lab:
    return load_lab("mock")


def test_a_drive_is_found_by_its_name_and_the_first_of_all_by_none(lab: Lab) -> None:
    assert replay_place(lab, "d09") == ("d09", "srv1", "p2")
    assert replay_place(lab, None) == ("d01", "srv1", "p0")


def test_a_port_that_is_joined_to_an_expander_is_passed_over(lab: Lab) -> None:
    baseline = {"srv1": {"p0": next(iter(lab.expanders)), "p1": "d02"}}
    assert replay_place(lab.model_copy(update={"baseline": baseline}), None) == ("d02", "srv1", "p1")


def test_a_drive_that_no_port_has_is_refused(lab: Lab) -> None:
    with pytest.raises(BadInput, match="no server of lab mock has a drive 'd90' at the baseline; did you mean"):
        replay_place(lab, "d90")


def test_a_lab_without_a_baseline_has_nothing_to_replay_on(lab: Lab) -> None:
    with pytest.raises(NotSupported, match="no server of lab mock has a drive at the baseline"):
        replay_place(lab.model_copy(update={"baseline": {}}), None)
