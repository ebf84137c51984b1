"""What there is to name: labs, plans, tests and drivers, a line each in a pipe, and as JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from rackloop.errors import BadInput
from rackloop.lab import registered_drivers
from rackloop_cli.listing import drivers, labs, plans, tests

TEST = """
import pytest
from rackloop.parameters import number, whole

PARAMETERS = {"rounds": whole(3, "rounds of it", least=1, most=9), "waits_s": [0.5]}
MEASURES = {"it.took": "s"}
pytestmark = pytest.mark.rackloop(purpose="do it", requires=["fio"], destructive=False, time_class="seconds")

def test_it(rack):
    pass
"""
PLAN = """
plan: mine
purpose: It is done in time.
tests:
  - test: a/it
    limits:
      - {measure: it.took, where: {how: well}, quantile: p99, max: 2 s, on: {lab_kind: mock}}
"""


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of tests with one test and two plans, one of them wrong, and a folder of labs, in an empty place."""
    folder = tmp_path / "mine"
    (folder / "a").mkdir(parents=True)
    (folder / "a" / "test_it.py").write_text(TEST)
    (folder / "mine.yaml").write_text(PLAN)
    (folder / "wrong.yaml").write_text(PLAN.replace("a/it", "a/itt").replace("it is", "x"))
    (tmp_path / "labs").mkdir()
    (tmp_path / "labs" / "broken.yaml").write_text("name: broken\nkind: mok\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RACKLOOP_STATE_HOME", str(tmp_path / "state"))
    return folder


def rows(capsys: pytest.CaptureFixture[str]) -> list[list[str]]:
    return [line.split("\t") for line in capsys.readouterr().out.splitlines()]


def found(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert found.pop("schema") == 1
    return found


def test_labs_are_listed_with_those_that_are_wrong(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert labs.run(as_json=False) == 0
    heading, *listed = rows(capsys)
    assert heading == ["name", "kind", "state", "servers", "drives", "fabric", "file"]
    by_name = {row[0]: row for row in listed}
    assert by_name["mock"][1:6] == ["mock", "down", "4", "32", "flexfabric"]
    assert by_name["example-rack"][1:3] == ["physical", ""]
    assert by_name["broken"][2] == "4 problems"
    assert not (mine.parent / "state").exists(), "listing made a lab's state"
    assert labs.run(as_json=True) == 0
    assert {lab["name"] for lab in found(capsys)["labs"]} == set(by_name)


def test_plans_are_listed_with_their_purpose(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plans.run(mine, as_json=False)
    heading, first, second = rows(capsys)
    assert heading == ["name", "tests", "purpose", "file"]
    assert first[:3] == ["mine", "1", "It is done in time."]
    assert second[0] == "wrong"
    assert "there is no test 'a/itt'" in second[2]
    plans.run(mine, as_json=True)
    assert found(capsys)["plans"][0]["tests"] == ["a/it"]


def test_a_purpose_of_several_lines_is_a_cell_of_one(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    purpose = 'purpose: "It is\\tdone\\nin \\e[31mtime.\\n"'
    (mine / "mine.yaml").write_text(PLAN.replace("purpose: It is done in time.", purpose))
    plans.run(mine, as_json=False)
    row = next(row for row in rows(capsys) if row[0] == "mine")
    assert row[2:] == [r"It is done in \x1b[31mtime.", str(mine / "mine.yaml")]


def test_tests_are_listed_with_what_they_declare(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tests.run(mine, as_json=False)
    assert rows(capsys) == [["test", "takes", "requires", "this test will"], ["a/it", "seconds", "fio", "do it"]]
    tests.run(None, as_json=True)
    shipped = {test["name"]: test for test in found(capsys)["tests"]}
    assert all(test["purpose"] and test["time_class"] for test in shipped.values())


@pytest.mark.parametrize(("written", "listed"), [("None", "None"), ('"fio"', "fio"), ("{[]: 1}", "")])
def test_a_declaration_that_a_run_refuses_is_listed(
    written: str, listed: str, mine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = mine / "a" / "test_it.py"
    file.write_text(TEST.replace('["fio"]', written))
    tests.run(mine, as_json=False)
    assert rows(capsys)[1] == ["a/it", "seconds", listed, "do it"]


def test_a_test_is_shown_with_parameters_measures_and_limits(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tests.show("a/it", mine, as_json=False)
    shown = rows(capsys)
    assert ["rounds", "whole number", "", "3", "a whole number from 1 to 9", "rounds of it"] in shown
    assert ["waits_s", "list of number", "", "[0.5]", "a number", ""] in shown
    assert ["it.took", "s"] in shown
    assert ["mine", "it.took", "how=well", "p99", "max 2 s", "lab_kind=mock"] in shown
    tests.show("a/it", mine, as_json=True)
    as_json = found(capsys)
    assert (as_json["parameters"][0]["least"], as_json["parameters"][0]["most"]) == (1, 9)
    assert as_json["limits"][0]["limit"] == "max 2 s"
    with pytest.raises(BadInput, match=r"there is no test 'a/itt'; did you mean 'a/it'\?"):
        tests.show("a/itt", mine, as_json=False)


def test_drivers_are_listed_with_their_keys(capsys: pytest.CaptureFixture[str]) -> None:
    drivers.run(as_json=False)
    listed = {tuple(row[:2]): row[2:] for row in rows(capsys)}
    assert listed["bmc", "ipmi"][:2] == ["address, user, password, cipher_suite", "rackloop"]
    assert listed["fabric", "static"][0] == ""
    drivers.run(as_json=True)
    all_found = found(capsys)["drivers"]
    registered = {(kind, name) for kind, named in registered_drivers().items() for name in named}
    assert {(one["kind"], one["name"]) for one in all_found} == registered
    pdus = {one["name"]: one for one in all_found if one["kind"] == "pdu"}
    assert pdus["apc"]["keys"]["outlets"] == "The number of its outlets, which are numbered from 1."
    assert pdus["redfish"]["simulated"]


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ("PARAMETERS = {'a': None}", "parameter a: its default in the test file, None, does not tell its type"),
        (
            "from rackloop.parameters import text\nPARAMETERS = {'a': text('x', 'y', pattern='(')}",
            "line 2: missing ), unterminated subpattern",
        ),
    ],
)
def test_a_test_whose_parameters_cannot_be_shown(mine: Path, declared: str, said: str) -> None:
    (mine / "a" / "test_it.py").write_text(f"{declared}\n")
    with pytest.raises(BadInput, match=re.escape(said)):
        tests.show("a/it", mine, as_json=False)


def test_headlines_that_are_no_list_are_listed_all_the_same(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (mine / "a" / "test_it.py").write_text("HEADLINES = 5\n")
    tests.show("a/it", mine, as_json=False)
    assert ["test", "a/it"] in rows(capsys)
