"""`rackloop new`: the files that it writes, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from rackloop.plan import load_plan
from rackloop_cli.main import main
from rackloop_fixtures import RunRequest


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", ["my_tests/pull_cable", "my_tests/test_pull_cable.py"])
def test_a_test_is_written_where_it_is_named_and_can_be_run(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "test", name]) == 0
    path = Path("my_tests/test_pull_cable.py")
    assert f"rackloop run {path}" in capsys.readouterr().out
    text = path.read_text(encoding="utf-8")
    assert text.startswith('"""Pull cable: a drive is unplugged while it is read."""\n')
    assert "xample" not in text
    (entry,) = RunRequest(str(path), "mock").read().plan.tests
    assert entry.file == "pull_cable"


def test_a_command_to_copy_is_quoted_where_a_shell_would_split_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "test", "my tests/pull"]) == 0
    assert "rackloop run 'my tests/test_pull.py'\n" in capsys.readouterr().out
    assert main(["new", "testplan", "disks/pull", "--testplans", "my plans"]) == 0
    assert "`rackloop run PLAN --testplans 'my plans'`" in capsys.readouterr().out


def test_a_test_is_printed_and_nothing_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "test", "pull", "--print"]) == 0
    assert "def test_pull(rack: Rack, measure: Measure) -> None:" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Pull", "a test is named in lower case with underscores, such as pull_cable"),
        ("my_tests/", "a test is named in lower case"),
        ("../a b", "a test is named in lower case"),
        ("/proc/x/pull", "cannot write /proc/x/test_pull.py"),
    ],
)
def test_what_cannot_be_written_is_refused(name: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "test", name]) == 2
    assert capsys.readouterr().err.startswith(f"rackloop: {said}")


def test_nothing_is_overwritten(capsys: pytest.CaptureFixture[str]) -> None:
    Path("test_pull.py").write_text("mine\n")
    assert main(["new", "test", "pull"]) == 2
    assert "test_pull.py exists already and stays as it is" in capsys.readouterr().err
    assert Path("test_pull.py").read_text() == "mine\n"


def test_a_test_plan_is_written_into_a_folder_of_tests_and_can_be_selected(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "testplan", "disks/warm_swap", "--testplans", "mine"]) == 0
    told, _, plan = capsys.readouterr().out.partition("--testplans mine`:\n")
    assert told.startswith("Wrote mine/disks/test_warm_swap.py. ")
    text = Path("mine/disks/test_warm_swap.py").read_text(encoding="utf-8")
    assert text.startswith('"""Warm swap: the subject of this file, in one sentence."""\n')
    assert "xample" not in text
    Path("warm.yaml").write_text(plan, encoding="utf-8")
    (entry,) = load_plan("warm.yaml", Path("mine")).tests
    assert (entry.file, [limit.measure for limit in entry.limits]) == ("disks/warm_swap", ["warm_swap.wrong"])


@pytest.mark.parametrize("name", ["warm_swap", "fabric/", "a/b/c", "../warm_swap", "fabric/Warm"])
def test_a_test_plan_has_a_subject_and_a_name(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "testplan", name]) == 2
    said = f"a test plan is named SUBJECT/NAME in lower case with underscores, such as fabric/warm_swap; got {name}\n"
    assert capsys.readouterr().err == f"rackloop: {said}"


def test_a_test_plan_is_not_overwritten(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["new", "testplan", "fabric/warm_swap"]
    assert main(command) == 0
    path = Path("testplans/fabric/test_warm_swap.py")
    path.write_text("mine\n")
    assert main(command) == 2
    assert f"{path} exists already and stays as it is" in capsys.readouterr().err
    assert path.read_text() == "mine\n"
