"""A test that is watched: its own failure goes on, whatever becomes of the evidence on it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from rackloop.errors import LabError
from rackloop.inspection.health import HealthSnapshot
from rackloop.measurement import Cause, Verdict
from rackloop.record import HealthChange, Judgement
from rackloop_fixtures import _watched
from rackloop_fixtures._outcome import HealthChanged, Outcome
from rackloop_fixtures._watched import watched

ALARM = HealthChanged([HealthChange("d01", "phy_resets", 1, 2, Judgement.UNEXPECTED, Cause.LAB, "the link was lost")])
AFTER = HealthSnapshot(1, 2)


@dataclass
class Watch:
    """Health that ends with ``alarm``, and a witness that cannot write where ``is_disk_full``."""

    alarm: HealthChanged | None = None
    is_disk_full: bool = False
    calls: list[str] = field(default_factory=list)
    sections: list[str] = field(default_factory=list)

    def begin(self, *_: object) -> None:
        self.calls.append("begin")

    def end(self, *_: object, may_wait: bool) -> tuple[HealthSnapshot, HealthChanged | None]:
        self.calls.append("may wait" if may_wait else "end")
        return AFTER, self.alarm

    def give_up(self, *_: object) -> HealthSnapshot:
        self.calls.append("give up")
        return AFTER

    def testify(self, *told: object) -> None:
        assert told[-1] is AFTER
        self.calls.append("testify")
        if self.is_disk_full:
            raise LabError("no space left")

    def add_report_section(self, *told: str) -> None:
        self.sections.append(told[-1])


@pytest.fixture
def verdicts(monkeypatch: pytest.MonkeyPatch) -> list[Outcome]:
    """What became of the test's phases."""
    outcomes: list[Outcome] = []
    monkeypatch.setattr(_watched, "id_of", lambda _item: "t")
    monkeypatch.setattr(_watched, "phases_of", lambda _item: outcomes)
    return outcomes


def run_under(watch: Any, error: Exception | None = None, *, may_wait: bool = False) -> None:
    with watched(watch, watch, watch, watch, (), may_wait=may_wait):
        if error is not None:
            raise error


@pytest.mark.parametrize("verdict", [Verdict.PASS, Verdict.SKIPPED])
def test_of_a_test_that_is_fine_there_is_no_evidence(verdict: Verdict, verdicts: list[Outcome]) -> None:
    verdicts.append(Outcome(verdict))
    watch = Watch()
    run_under(watch)
    assert watch.calls == ["begin", "begin", "end"]


@pytest.mark.parametrize("verdict", list(Verdict))
def test_only_after_a_test_that_is_fine_may_the_health_wait(verdict: Verdict, verdicts: list[Outcome]) -> None:
    verdicts.append(Outcome(verdict))
    watch = Watch()
    run_under(watch, may_wait=True)
    assert ("may wait" in watch.calls) is (verdict in {Verdict.PASS, Verdict.SKIPPED})


@pytest.mark.parametrize("verdict", [Verdict.FAIL, Verdict.UNKNOWN, Verdict.BLOCKED])
def test_a_test_that_is_not_fine_leaves_evidence(verdict: Verdict, verdicts: list[Outcome]) -> None:
    verdicts.append(Outcome(verdict, Cause.PRODUCT, "slow"))
    watch = Watch()
    run_under(watch)
    assert watch.calls[-1] == "testify"


@pytest.mark.parametrize("is_disk_full", [False, True])
def test_health_that_changed_is_raised_whatever_becomes_of_the_evidence(
    is_disk_full: bool, verdicts: list[Outcome]
) -> None:
    verdicts.append(Outcome(Verdict.PASS))
    watch = Watch(ALARM, is_disk_full)
    with pytest.raises(HealthChanged):
        run_under(watch)
    assert watch.calls[-1] == "testify"
    assert watch.sections == ["the evidence was not gathered: no space left"] * is_disk_full


@pytest.mark.parametrize("is_disk_full", [False, True])
def test_a_rack_that_is_not_given_back_is_told_as_such(is_disk_full: bool, verdicts: list[Outcome]) -> None:
    watch = Watch(ALARM, is_disk_full)
    with pytest.raises(LabError, match="not given back"):
        run_under(watch, LabError("not given back"))
    assert watch.calls == ["begin", "begin", "give up", "testify"]
