"""`rackloop schedule` as people use it: what it writes and what it refuses."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from rackloop.clock import RealClock
from rackloop.errors import BadInput
from rackloop.faults.schedules import Schedule, load_schedule
from rackloop.lab import LabState, Part, load_lab
from rackloop.plan import find_testplans
from rackloop.safety.maintenance import OutOfServiceStore
from rackloop.safety.store import open_lab_store
from rackloop_cli.schedule import shrink as schedule_shrink
from rackloop_cli.schedule.show import ScheduleRequest, find, make, show, time_line
from rackloop_cli.shared.interruption import interruptible_run
from rackloop_reports.plots import schedule_timeline

ON_A_FULL_DISK = """
import resource, sys
from pathlib import Path
from rackloop.errors import BadInput
from rackloop_cli.schedule.show import write
resource.setrlimit(resource.RLIMIT_FSIZE, (4, 4))
try:
    write(Path(sys.argv[1]), "the best so far", replacing=sys.argv[2] == "over")
except BadInput as error:
    print(error)
"""
STORM = """\
schedule: storm
duration: 30 s
every: 2 s
random:
  - {fault: hang, targets: drives, lasts: 1 s}
"""


@pytest.fixture
def storm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ScheduleRequest:
    monkeypatch.setenv("RACKLOOP_STATE_HOME", str(tmp_path))
    path = tmp_path / "storm.yaml"
    path.write_text(STORM)
    return ScheduleRequest(path, "labs/mock.yaml", seed=7)


def test_a_schedule_is_printed_as_json_and_nothing_else(
    storm: ScheduleRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    assert show(storm, out=None, as_json=True) == 0
    (shown,) = json.loads(capsys.readouterr().out)["schedules"]
    assert (shown["schedule"], shown["seed"]) == ("storm", 7)
    first = shown["steps"][0]
    assert (first["fault"], first["lasts_s"], first["drives"]) == ("hang", 1.0, [first["target"]])


def test_a_drawn_schedule_is_written_to_a_file(storm: ScheduleRequest, tmp_path: Path) -> None:
    assert make(storm, out=tmp_path / "script.yaml") == 0
    assert (tmp_path / "script.yaml").read_text().startswith("schedule: storm\n")


def test_a_drawn_schedule_replaces_no_file(storm: ScheduleRequest) -> None:
    with pytest.raises(BadInput, match=r"storm\.yaml is there already: choose another file"):
        make(storm, out=storm.source)
    assert storm.source.read_text() == STORM


@pytest.mark.parametrize(("how", "left"), [("over", ["least.yaml"]), ("new", [])])
def test_a_full_disk_leaves_the_plan_that_was_there_and_no_half_one(how: str, left: list[str], tmp_path: Path) -> None:
    for name in left:
        (tmp_path / name).write_text("the one before")
    code = [sys.executable, "-c", ON_A_FULL_DISK, str(tmp_path / "least.yaml"), how]
    done = subprocess.run(code, capture_output=True, text=True, check=True)
    assert done.stdout == f"--out {tmp_path}/least.yaml: File too large; name a file that can be written\n"
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [(name, "the one before") for name in left]


def test_what_is_out_of_service_is_not_drawn_and_told(
    storm: ScheduleRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = replace(storm, source=tmp_path / "script.yaml")
    assert make(storm, out=script.source) == 0
    assert "target: d09}" in script.source.read_text()
    lab = load_lab(storm.lab)
    with closing(open_lab_store(lab, LabState.of(lab.name), RealClock())) as store:
        OutOfServiceStore(store, lab.name).quarantine(Part.drive("d09"), "it keeps failing", "ann@here")
    (drawn,) = find(storm, lab)
    assert "d09" not in {step.fault.target for step in drawn.schedule.steps}
    (written,) = find(script, lab)
    assert drawn.not_now == written.not_now == ("hang of d09: it would reach what is out of service: drive d09",)
    assert show(script, out=None) == 0
    assert "not now hang of d09: it would reach what is out of service: drive d09" in capsys.readouterr().out


def test_the_test_of_a_schedule_has_the_parameters_that_it_has_on_the_lab(tmp_path: Path) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text(f"""\
plan: weather
purpose: On a simulated rack less is waited for.
tests:
  - test: faults/storm
    with: {{settle_s: 5}}
    instead: [{{on: {{lab_kind: mock}}, with: {{settle_s: 0.5}}}}]
    schedule:
      {STORM.replace(chr(10), chr(10) + " " * 6)}
""")
    (found,) = find(ScheduleRequest(plan, "labs/mock.yaml", seed=7), load_lab("labs/mock.yaml"))
    assert found.entry is not None
    assert found.entry.parameters == {"settle_s": 0.5}


def test_faults_that_follow_on_one_another_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "two.yaml"
    step = "  - {{fault: fail_stop, target: d01, at: {at}, lasts: 600 ms}}\n"
    path.write_text("schedule: two\nsteps:\n" + "".join(step.format(at=at) for at in ("0 s", "600 ms")))
    two = load_schedule(path, load_lab("labs/mock.yaml"))
    assert isinstance(two, Schedule)
    assert next(time_line(two)) == f"d01 {'▐' + '█' * 35}{'▐' + '█' * 35}"
    (axes,) = schedule_timeline(two, "two").axes
    (begins,) = axes.collections
    assert [np.asarray(path.vertices)[0, 0] for path in begins.get_paths()] == pytest.approx([0, 0.6])


def test_a_test_that_fails_without_any_fault_is_said_to_fail_of_something_else(
    storm: ScheduleRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(schedule_shrink._Trials, "fails", lambda *_: True)
    plan = ScheduleRequest(find_testplans() / "storm.yaml", "mock", seed=storm.seed)
    assert schedule_shrink.run(plan, times=1, runs=5, out=tmp_path / "least.yaml") == 3
    assert "the faults are not the cause: look at the limit that was broken" in capsys.readouterr().out


def test_a_run_that_is_interrupted_as_it_begins_is_not_left_behind(tmp_path: Path) -> None:
    begins = f"echo $$ >{tmp_path}/pid; kill -INT $PPID; exec sleep 600"
    with pytest.raises(KeyboardInterrupt), interruptible_run():
        schedule_shrink._run_to_its_end(["sh", "-c", begins])
    pid = (tmp_path / "pid").read_text().strip()
    assert not (Path("/proc") / pid).exists()


def test_a_plan_that_came_while_another_was_shrunk_is_not_replaced(storm: ScheduleRequest, tmp_path: Path) -> None:
    least = tmp_path / "least.yaml"
    plan = ScheduleRequest(find_testplans() / "storm.yaml", "mock", seed=storm.seed)
    found = find(plan, load_lab("mock"))[0]
    least.write_text("of another search")
    trials = schedule_shrink._Trials(found, plan, tmp_path, Console(), least, times=1)
    with pytest.raises(BadInput, match=r"least\.yaml is there already: choose another file"):
        trials.keep(found.schedule, "the best so far")
    assert least.read_text() == "of another search"
    least.unlink()
    for said in ("the best so far", "minimal"):
        trials.keep(found.schedule, said)
    assert f"fails with this: {said}." in least.read_text()


@pytest.mark.parametrize(
    ("out", "said"),
    [
        ("plan.yaml", "plan.yaml is there already: choose another file with --out"),
        (".", ". is there already"),
        ("absent/least.yaml", "--out absent/least.yaml: there is no folder absent; make it first"),
    ],
)
def test_a_plan_is_not_shrunk_over_a_file_and_that_is_told_before_the_first_run(
    storm: ScheduleRequest, out: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plan.yaml").write_text("mine")
    with pytest.raises(BadInput, match=re.escape(said)):
        schedule_shrink.run(storm, times=1, runs=5, out=Path(out))
    assert (tmp_path / "plan.yaml").read_text() == "mine"
