"""Schedules as files: what they say, what is wrong with them, and that they read back as they were."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given

from rackloop.errors import BadInput, DescriptionError
from rackloop.faults.schedules import (
    Bound,
    FaultChoice,
    RandomSchedule,
    Schedule,
    load_schedule,
    read_schedule,
    schedule_yaml,
)
from rackloop.faults.schedules._schedulefile import WrittenBound, WrittenChoice, WrittenSchedule, WrittenStep
from rackloop.lab import load_lab
from rackloop.lab.yaml._examine import field_texts
from tests.unit.harness.schedule_cases import RANDOM_SCHEDULES, any_schedules, schedule, step

SCRIPTED = """\
schedule: storm
most: {faults: 2, drives: 4}
recovery: 2 s
pause: recovering
repeats: 3
steps:
  - {at: 0 s, lasts: 500 ms, fault: hang, target: d01}
  - {at: 0.2 s, lasts: 1 s, fault: fail_slow, target: d02, with: {extra_us: 20 ms}}
"""
RANDOM = """\
schedule: storm
duration: 30 s
every: 2 s
most: 2
random:
  - {fault: hang, targets: drives, lasts: 1 s}
  - {fault: phy_drop, targets: [srv1.p0, port 17], lasts: [10 ms, 1 s], weight: 2.5}
"""


def problems(text: str) -> list[str]:
    with pytest.raises(DescriptionError) as caught:
        read_schedule(text, "s.yaml")
    return [str(problem) for problem in caught.value.problems]


def test_a_script_says_which_faults_begin_when() -> None:
    found = read_schedule(SCRIPTED)
    assert found == schedule(
        step(0, 0.5),
        step(0.2, 1, "d02", "fail_slow", extra_us=20_000.0),
        most=Bound(2, 4, 1),
        recovery_s=2.0,
        pause=("recovering",),
        repeats=3,
    )
    assert isinstance(found, Schedule)
    assert found.round_s == 3.2
    assert found.lasts_s == pytest.approx(7.6)
    assert found.places == ("schedule:7:5", "schedule:8:5")


def test_a_random_schedule_says_what_may_be_drawn() -> None:
    assert read_schedule(RANDOM) == RandomSchedule(
        "storm",
        (
            FaultChoice("hang", ("drives",), (1.0, 1.0)),
            FaultChoice("phy_drop", ("srv1.p0", "port 17"), (0.01, 1.0), 2.5),
        ),
        every_s=2.0,
        duration_s=30.0,
        most=Bound(2, 2, 2),
    )


@given(any_schedules())
def test_what_is_written_reads_back_the_same(written: Schedule) -> None:
    if written.repeats > 1 and not written.steps:
        return
    assert read_schedule(schedule_yaml(written)) == written


@given(RANDOM_SCHEDULES)
def test_what_may_be_drawn_reads_back_the_same(written: RandomSchedule) -> None:
    assert read_schedule(schedule_yaml(written)) == written


@pytest.mark.parametrize(
    ("text", "place", "what"),
    [
        ("schedule: storm\n", "1:1", "neither steps: nor random:"),
        (SCRIPTED.replace("0.2 s", "0.2"), "8:10", "has no unit"),
        (SCRIPTED.replace("lasts: 1 s", "lasts: 0 s"), "8:24", "above zero"),
        (SCRIPTED.replace("at: 0 s", "at: 1 s"), "8:10", "move it up"),
        (SCRIPTED.replace("faults: 2", "faults: 1"), "8:5", "begin it at 0.5 s, or raise most:"),
        (SCRIPTED.replace("0.2 s", "1.5 s"), "8:5", "begin it at 2.5 s"),
        (SCRIPTED.replace("fault: hang", "fault: fail_slow").replace("d02", "d01"), "8:5", "stands already"),
        (
            SCRIPTED.replace("extra_us: 20 ms", "extra_us: soon"),
            "8:77",
            "expected a time from 1 us to 60 s, found 'soon'",
        ),
        (SCRIPTED.replace("extra_us: 20 ms", "extra_us: 0"), "8:77", "expected a time from 1 us to 60 s, found '0'"),
        (SCRIPTED.replace("extra_us", "extra"), "8:67", "fail_slow has no such parameter; did you mean 'extra_us'?"),
        (
            SCRIPTED.replace("fault: hang", "fault: hung"),
            "7:37",
            "there is no fault called 'hung'; did you mean 'hang'?",
        ),
        (SCRIPTED.replace("fault: hang", "fault: miswire"), "7:5", "miswire needs with: the other port"),
        (SCRIPTED.replace("drives", "drive"), "2:19", "did you mean 'drives'?"),
        (SCRIPTED.replace("lasts: 1 s", "lasts: 1e30 s", 1), "8:24", "at most 720 h"),
        (SCRIPTED.replace("at: 0.2 s", "at: 1e18 s", 1), "8:10", "at most 720 h"),
        (RANDOM.replace("every: 2 s", "every: 1 ms"), "3:8", "at most 10,000 are allowed"),
        (SCRIPTED + "every: 1 s\n", "9:1", "does not go with steps:"),
        ("file: x.yaml\nmost: 1\n", "1:1", "the file has all of it"),
        (RANDOM + "repeats: 2\n", "8:1", "does not go with random:"),
        (RANDOM.replace("every: 2 s\n", ""), "1:1", "does not say every:"),
        (RANDOM.replace("[10 ms, 1 s]", "[1 s, 10 ms]"), "7:59", "[least, most]"),
        (RANDOM.replace("weight: 2.5", "weight: 0"), "7:81", "above zero"),
        (RANDOM.replace("targets: drives", "targets: []"), "6:28", "is empty"),
    ],
)
def test_a_mistake_is_told_with_its_place(text: str, place: str, what: str) -> None:
    (problem,) = problems(text)
    assert problem.startswith(f"s.yaml:{place}: ")
    assert what in problem


def test_every_mistake_is_told_at_once() -> None:
    text = (
        SCRIPTED.replace("at: 0 s", "at: soon").replace("lasts: 1 s", "lasts: -1 s").replace("repeats: 3", "repeats: 0")
    )
    assert [problem.split(": ")[1] for problem in problems(text)] == ["repeats", "steps[0].at", "steps[1].lasts"]


def test_a_step_with_a_wrong_time_is_looked_at_to_its_end() -> None:
    text = SCRIPTED.replace("at: 0 s", "at: soon").replace("fault: hang", "fault: hung").replace("extra_us", "extra")
    assert {problem.split(": ")[1] for problem in problems(text)} == {
        "steps[0].at",
        "steps[0].fault",
        "steps[1].with.extra",
    }


def test_so_is_a_choice() -> None:
    found = problems(RANDOM.replace("[10 ms, 1 s]", "[soon, late]").replace("fault: phy_drop", "fault: drop"))
    assert {"random[1].fault", "random[1].lasts[0]"} <= {problem.split(": ")[1] for problem in found}


def test_a_step_that_is_wrong_anyway_is_not_counted_in_the_bound() -> None:
    text = SCRIPTED.replace("faults: 2", "faults: 1").replace("fault: hang", "fault: hung")
    (problem,) = problems(text)
    assert "there is no fault called 'hung'" in problem


def test_with_a_lab_its_names_are_told_with_all_else(tmp_path: Path) -> None:
    wrong = SCRIPTED.replace("at: 0 s", "at: soon").replace("target: d01", "target: d99").replace("extra_us", "extra")
    (tmp_path / "storm.yaml").write_text(wrong)
    with pytest.raises(DescriptionError) as caught:
        load_schedule(tmp_path / "storm.yaml", load_lab("labs/mock.yaml"))
    said = [str(problem) for problem in caught.value.problems]
    assert len(said) == 3
    assert any(": steps[0]: the rack mock has nothing called 'd99'" in each for each in said)


def test_a_word_that_is_nearly_written_is_guessed(tmp_path: Path) -> None:
    (tmp_path / "storm.yaml").write_text(RANDOM.replace("targets: drives", "targets: drvies"))
    with pytest.raises(DescriptionError, match="did you mean 'drives'"):
        load_schedule(tmp_path / "storm.yaml", load_lab("labs/mock.yaml"))


def test_a_schedule_may_be_another_files(tmp_path: Path) -> None:
    (tmp_path / "storm.yaml").write_text(SCRIPTED)
    (tmp_path / "other.yaml").write_text("file: storm.yaml\n")
    assert load_schedule(tmp_path / "other.yaml") == read_schedule(SCRIPTED)


def test_a_file_that_is_not_there_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="there is no schedule at"):
        load_schedule(tmp_path / "none.yaml")


def test_the_reference_page_has_every_key_with_its_words() -> None:
    rows = (Path(__file__).parents[3] / "docs" / "reference" / "schedules.md").read_text().splitlines()
    for part in (WrittenSchedule, WrittenBound, WrittenStep, WrittenChoice):
        for name, field in part.model_fields.items():
            key = field.alias or name
            found = [
                row for row in rows if row.startswith(f"| `{key}` |") and row.endswith(f" {field_texts(part)[key]} |")
            ]
            assert found, f"{part.__name__}.{key}"
