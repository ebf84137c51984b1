"""Which of the parts that are out of use a test cannot do without, and what a retest makes of its verdict."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, cast

import pytest

from rackloop.errors import BadInput, LabError, NotSupported, ProductFailed, RackloopError
from rackloop.lab import Lab, load_lab
from rackloop.measurement import Cause, Verdict
from rackloop.plan import PlanEntry
from rackloop.safety.maintenance import Diagnosis, Finding, Gear, Seen, Trial, diagnose
from rackloop_fixtures import _conductor, _triage
from rackloop_fixtures._needs import needed
from rackloop_fixtures._outcome import Outcome, combine, of_exception

LAB = load_lab("mock")
D01, D02, SRV1, P0 = Gear.drive("d01"), Gear.drive("d02"), Gear.server("srv1"), Gear.port("srv1", "p0")


class SimItem:
    """As much of a pytest item as is asked."""

    def __init__(self, **module: Any) -> None:
        self.stash = pytest.Stash()
        self.path, self.name = "test_it.py", "test_it"
        self.module = ModuleType("test_it")
        vars(self.module).update(module)

    def getparent(self, _kind: type) -> Any:
        return self

    @property
    def obj(self) -> ModuleType:
        return self.module

    def get_closest_marker(self, _name: str) -> Any:
        return pytest.mark.rackloop(purpose="try", requires=[], destructive=True, time_class="seconds").mark

    def iter_markers(self, _name: str) -> tuple[()]:
        return ()


def _needed(out: set[Gear], parameters: Mapping[str, Any] | None = None, **module: Any) -> list[Gear]:
    entry = PlanEntry("one/it", parameters=parameters or {})
    return needed("one/it", cast(Any, SimItem(**module)), LAB, entry, out)


def test_a_test_that_lets_the_rack_choose_needs_nothing_that_is_out() -> None:
    assert _needed({D01, SRV1}) == []


@pytest.mark.parametrize(
    ("parameters", "out", "expected"),
    [
        ({"drive": "d01"}, {D01, D02}, [D01]),
        ({"drives": ["d03", "d02"]}, {D01, D02}, [D02]),
        ({"drive": "d01"}, {P0}, [P0]),
        ({"drive": "d01"}, {SRV1}, [SRV1]),
        ({"port": "srv1.p0"}, {SRV1}, [SRV1]),
        ({"server": "srv1"}, {P0}, []),
        ({"servers": ["srv1"]}, {SRV1}, [SRV1]),
        ({"stacks": ["vanilla"], "remaps": 4}, {D01}, []),
    ],
)
def test_a_test_needs_what_its_parameters_name_and_what_that_is_reached_through(
    parameters: dict[str, Any], out: set[Gear], expected: list[Gear]
) -> None:
    assert _needed(out, parameters) == expected


def test_defaults_of_parameters_count() -> None:
    assert _needed({D01}, PARAMETERS={"drive": "d01"}) == [D01]
    assert _needed({D01}, {"drive": "d02"}, PARAMETERS={"drive": "d01"}) == []


def test_a_file_says_what_it_needs() -> None:
    def needs(lab: Lab, parameters: Mapping[str, Any]) -> list[str]:
        return [next(iter(lab.drives))]

    assert _needed({D01, D02}, needs=needs) == [D01]


@pytest.mark.parametrize("error", [BadInput("no drive"), NotSupported("no such drive")])
def test_a_test_that_cannot_say_what_it_would_do_without_them_needs_all_that_are_out(error: RackloopError) -> None:
    def drives_erased(lab: Lab, parameters: Mapping[str, Any]) -> list[str]:
        if "d01" not in lab.drives:
            raise error
        return ["d01"]

    assert _needed({D01, D02}, drives_erased=drives_erased) == [D01, D02]


def _retested(*failed: tuple[str, str]) -> Diagnosis:
    return diagnose(
        [
            Trial(drive, "srv1", port, Seen.UNREADABLE if (drive, port) in failed else Seen.WORKS, 0.1)
            for drive in ("d01", "d02")
            for port in ("p0", "p1")
        ]
    )


DRIVE = _retested(("d01", "p0"), ("d01", "p1"))
PORT = _retested(("d01", "p0"), ("d02", "p0"))
NOTHING = _retested()
FAILED = Outcome(Verdict.FAIL, Cause.PRODUCT, "a read failed")
PASSED = Outcome(Verdict.PASS)
AWAY = LabError("d01 is away")


@pytest.mark.parametrize(
    ("test", "error", "found", "expected"),
    [
        (FAILED, None, DRIVE, (Verdict.FAIL, Cause.PRODUCT)),
        (FAILED, None, PORT, (Verdict.UNKNOWN, Cause.LAB)),
        (FAILED, None, NOTHING, (Verdict.FAIL, Cause.PRODUCT)),
        (PASSED, AWAY, DRIVE, (Verdict.FAIL, Cause.PRODUCT)),
        (PASSED, AWAY, PORT, (Verdict.UNKNOWN, Cause.LAB)),
        (PASSED, AWAY, NOTHING, (Verdict.UNKNOWN, Cause.LAB)),
    ],
)
def test_a_retest_decides_whose_fault_a_failure_is_and_stands_in_its_reason(
    test: Outcome, error: RackloopError | None, found: Diagnosis, expected: tuple[Verdict, Cause]
) -> None:
    item: Any = SimItem()
    item.stash[_conductor._PHASES] = [test]
    item.stash[_conductor._NOTES] = []
    outcomes = [test, *_teardown(lambda: _triage._judge(item, error, [found]), error)]
    outcome = combine(outcomes).noting(item.stash[_conductor._NOTES])
    assert (outcome.verdict, outcome.cause) == expected
    assert found.said in (outcome.reason or "")


def _teardown(judge: Callable[[], None], error: RackloopError | None) -> list[Outcome]:
    """The outcome of the tear-down, if it did not go well."""
    try:
        judge()
    except (LabError, ProductFailed) as judged:
        return [of_exception(judged)]
    return [of_exception(error)] if error is not None else []


def test_the_findings_are_those_that_are_meant() -> None:
    assert [one.finding for one in (DRIVE, PORT, NOTHING)] == [Finding.DRIVE, Finding.PORT, Finding.NOT_REPRODUCED]
