"""Commands in messages: a lab that was given as a file is named by it, for nothing finds it by its name."""

from __future__ import annotations

from pathlib import Path

import pytest

from rackloop.data import data_path
from rackloop_cli.main import main
from rackloop_cli.shared.labs_as_given import as_given


@pytest.fixture
def lab(tmp_path: Path, state_home: Path) -> Path:
    file = tmp_path / "my rack.yaml"
    text = (data_path("labs") / "mock.yaml").read_text()
    file.write_text(
        text.replace("name: mock\n", "name: my-rack # ours\n", 1).replace("name: mock ", "name: my-rack ", 1)
    )
    return file


def test_the_file_stands_for_the_name_in_commands_alone(lab: Path) -> None:
    said = "lab my-rack is not up: `rackloop lab up my-rack`, or `rackloop run PLAN --lab=my-rack -n 2`; my-rack-2 is"
    told = as_given(said, ["run", "smoke", f"--lab={lab}"])
    assert told == said.replace(" up my-rack`", f" up '{lab}'`").replace("--lab=my-rack ", f"--lab='{lab}' ")
    assert as_given(said, ["lab", "status", "my-rack", "absent.yaml"]) == said


@pytest.mark.parametrize("verb", [("fabric", "show"), ("lab", "cabling"), ("store", "status", "d05")])
def test_a_lab_that_is_down_is_started_by_what_is_said(
    verb: tuple[str, ...], lab: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [*verb, str(lab)] if verb[0] == "lab" else [verb[0], str(lab), *verb[1:]]
    assert main(arguments) == 3
    assert f"lab my-rack is not up: start it with `rackloop lab up '{lab}'`" in capsys.readouterr().err
