"""How long things may take on a rack: by its description, or else by its kind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

import pytest

from rackloop.errors import DescriptionError
from rackloop.lab import LabKind, TimeName, load_lab
from rackloop_cli.main import main
from rackloop_drivers.host import SshAccess
from rackloop_labs.ssh_access import ssh_accesses
from tests.unit.harness.test_lab_problems import PHYSICAL


def described(folder: Path, times: str = "") -> Path:
    path = folder / "rack.yaml"
    path.write_text(PHYSICAL + times)
    return path


def test_what_is_not_said_is_as_usual_for_the_kind_of_lab(tmp_path: Path) -> None:
    lab = load_lab(described(tmp_path, "times: {online: 30 s, boot: 20 min}\n"))
    assert (lab.time_s("online"), lab.time_s("boot")) == (30.0, 1200.0)
    assert (lab.time_s("answer"), lab.time_s("tools")) == (3.0, 40.0)
    assert (lab.time_s("online", at_least=20), lab.time_s("online", at_least=40)) == (30.0, 40.0)
    guests = lab.model_copy(update={"kind": LabKind.VIRTUAL})
    assert (guests.time_s("online"), guests.time_s("answer")) == (30.0, 20.0)
    assert {load_lab("mock").time_s(name) for name in get_args(TimeName)} == {3, 5, 10, 60, 600}


def test_a_time_that_is_none_is_named_with_its_place(tmp_path: Path) -> None:
    with pytest.raises(DescriptionError) as caught:
        load_lab(described(tmp_path, "times:\n  online: 5\n  settle: 2 h\n  answer: 10 ms\n  boots: 3 s\n"))
    assert [str(problem).partition("rack.yaml:")[2] for problem in caught.value.problems] == [
        "11:11: times.online: expected a quantity in s such as 2 ms, found '5', which has no unit",
        "12:11: times.settle: expected a time of 100 ms at least such as 5 s, at most 1 h, found '2 h'",
        "13:11: times.answer: expected a time of 100 ms at least such as 5 s, at most 1 h, found '10 ms'",
        "14:3: times.boots: unknown key; did you mean 'boot'?",
    ]


def test_servers_and_the_jump_hosts_before_them_are_given_that_time(tmp_path: Path) -> None:
    access = ssh_accesses(load_lab(described(tmp_path, "times: {answer: 12 s, reconnect: 30 s}\n")))["srv1"]
    assert isinstance(access.jump, SshAccess)
    for reached in (access, access.jump):
        assert (reached.answers_within_s, reached.logs_in_within_s) == (12.0, 30.0)


def test_a_lab_is_shown_with_its_times(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "show", str(described(tmp_path, "times: {online: 30 s}\n")), "--json"]) == 0
    times = json.loads(capsys.readouterr().out)["times"]
    assert (times["online"], times["answer"], list(times)) == (30.0, 3.0, list(get_args(TimeName)))
