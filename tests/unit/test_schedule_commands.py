"""`rackloop schedule` as people use it: what it writes and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from rackloop.errors import BadInput
from rackloop.plan import find_testplans
from rackloop_cli import schedule_shrink
from rackloop_cli.schedule import Wanted, make

STORM = """\
schedule: storm
duration: 30 s
every: 2 s
random:
  - {fault: hang, targets: drives, lasts: 1 s}
"""


@pytest.fixture
def storm(tmp_path: Path) -> Wanted:
    path = tmp_path / "storm.yaml"
    path.write_text(STORM)
    return Wanted(path, "labs/mock.yaml", seed=7)


def test_a_drawn_schedule_is_written_to_a_file(storm: Wanted, tmp_path: Path) -> None:
    assert make(storm, out=tmp_path / "script.yaml") == 0
    assert (tmp_path / "script.yaml").read_text().startswith("schedule: storm\n")


def test_a_drawn_schedule_replaces_no_file(storm: Wanted) -> None:
    with pytest.raises(BadInput, match=r"storm\.yaml is there already: choose another file"):
        make(storm, out=storm.source)
    assert storm.source.read_text() == STORM


def test_a_test_that_fails_without_any_fault_is_said_to_fail_of_something_else(
    storm: Wanted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(schedule_shrink._Trials, "fails", lambda *_: True)
    plan = Wanted(find_testplans() / "storm.yaml", "mock", seed=storm.seed)
    assert schedule_shrink.run(plan, times=1, runs=5, out=tmp_path / "least.yaml") == 3
    assert "the faults are not the cause: look at the limit that was broken" in capsys.readouterr().out
