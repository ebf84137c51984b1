"""`rackloop new test`: the file that it writes, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

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
