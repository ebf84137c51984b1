"""A test of one's own without a plan, the same on a rack with a switch and on servers with drives attached for good."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from rackloop.record import FaultPhase, MeansChosen
from tests.e2e.command_line import CommandLine, Results

PULL = """
def test_a_drive_comes_back(rack, measure):
    drive = rack.any_drive()
    server, port = rack.place_of(drive)
    with rack.watching({server: port}) as reads:
        rack.sleep(0.2)
        pulled = rack.unplug(drive, for_s=0.5)
        rack.sleep(0.2)
    measure("pull.wrong", reads.results[server].wrong, max=0)
    measure("pull.back", pulled.back_s, unit="s", max="30 s", drive=drive)


def test_fio_reads_and_writes(rack, measure):
    drive = rack.any_drive("nvme")
    read = rack.fio(drive, runtime_s=0.3)
    with rack.fio_meanwhile(drive, "randrw", block="8 KiB", iodepth=4, read_percent=70, size="64 MiB") as job:
        rack.sleep(0.3)
    measure("fio.errors", read.total_err + job.result.total_err, max=0)
    verified = rack.fio(drive, "randwrite", verify="crc32c", runtime_s=0.3)
    measure("fio.never_verified", "read" not in verified.transfers, max=0)


def test_a_server_comes_back(rack, measure):
    server = next(iter(rack.lab.servers))
    measure("cycle.back", rack.power_cycle(server, off_s=0.2).back_s, unit="s", max="60 s")
"""
UNDECLARED = """
def drives_erased(lab, parameters):
    return ["d02"]


def test_it(rack):
    rack.fio("d01", "randwrite", runtime_s=0.2)
"""

WRITES_AT_THE_START = """
from rackloop_drivers.open_blocks import open_blocks

def drives_erased(lab, parameters):
    return ["d01"]

def test_it(rack):
    place = rack.place_of("d01")
    rack.fill(*place, size_bytes=4096)
    with rack.writable(*place) as permit, open_blocks(permit, rack.clock, within_s=60) as blocks:
        blocks.write(0, bytes(1 << 20))

def test_next(rack, measure):
    server, port = rack.place_of("d01")
    with rack.watching({server: port}) as reads:
        rack.sleep(0.2)
    measure("read.wrong", reads.results[server].wrong, max=0)
"""
WITHOUT_RACK = """
import pytest

@pytest.mark.rackloop(destructive=False)
def test_it(labels):
    labels.ensure("d01", "srv1", "p0")
"""


@pytest.mark.parametrize(
    ("lab", "means"),
    [("mock", ["phy_drop", "power_loss"]), ("mock-direct", ["phy_disable", "power_loss"])],
)
def test_a_test_file_runs_unchanged_on_both_kinds_of_rack(rackloop: CommandLine, lab: str, means: list[str]) -> None:
    (rackloop.directory / "test_pull.py").write_text(PULL)
    ended = rackloop("run", "test_pull.py", "--lab", lab, "--out", "out")
    assert ended.status == 0, ended
    results = Results(rackloop.directory / "out")
    chosen: list[MeansChosen] = results.of_kind("means.chosen")
    assert [event.means for event in chosen] == means
    phases: list[FaultPhase] = results.of_kind("fault.phase")
    assert not [phase for phase in phases if phase.phase == "cut_short"]
    assert {measured["limits"]["text"] for test in results.summary["tests"] for measured in test["measurements"]} == {
        "max 0",
        "max 30 s",
        "max 60 s",
    }
    shown = "".join(path.read_text() for path in (rackloop.directory / "out" / "allure-results").glob("*-result.json"))
    assert json.dumps(f"unplug {chosen[0].target} for 0.5 s: {chosen[0].by} ({means[0]})")[1:-1] in shown


@pytest.mark.parametrize(
    ("text", "said"),
    [(UNDECLARED, "drives_erased of test_write.py"), (WITHOUT_RACK, "ask for the fixture rack too")],
    ids=["by rack", "without rack"],
)
def test_a_drive_that_was_not_declared_is_not_written(rackloop: CommandLine, text: str, said: str) -> None:
    (rackloop.directory / "test_write.py").write_text(text)
    ended = rackloop("run", "test_write.py", "--out", "out")
    assert ended.status == 3, ended
    (test,) = Results(rackloop.directory / "out").summary["tests"]
    assert (test["verdict"], test["cause"]) == ("unknown", "test")
    assert f"would overwrite drive d01, which it did not declare: {said}" in test["reason"]


def test_what_a_test_writes_is_not_taken_for_what_a_drive_lost(rackloop: CommandLine) -> None:
    (rackloop.directory / "test_write.py").write_text(WRITES_AT_THE_START)
    ended = rackloop("run", "test_write.py", "--out", "out")
    assert ended.status == 0, ended


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_tests_and_conftests_import_what_lies_beside_them(rackloop: CommandLine, workers: tuple[str, ...]) -> None:
    files = {
        "shared.py": "X = 1\n",
        "conftest.py": "import pytest\nfrom shared import X\n@pytest.fixture\ndef x(): return X\n",
        "a/beside.py": "Y = 1\n",
        "a/test_it.py": "from beside import Y\ndef test_it(lab, x): assert x == Y\n",
        "b/test_it.py": "import shared\ndef test_it(lab, x): assert x == shared.X\n",
        "c/__init__.py": "",
        "c/test_it.py": "from c import __name__ as name\ndef test_it(lab): assert name == 'c'\n",
        "trace.py": "raise RuntimeError('in the place of the standard library')\n",
    }
    for name, text in files.items():
        path = rackloop.directory / "mine" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    ended = rackloop("run", "mine", "--out", "out", *workers)
    assert ended.status == 0, ended
    assert set(Results(rackloop.directory / "out").tests()) == {"a/it::it", "b/it::it", "c/it::it"}


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        ("import sys\nsys.exit('set SDK')\n", "conftest.py:2: ended by SystemExit: set SDK"),
        (
            "import pytest\npytest.importorskip('not_there')\n",
            "conftest.py:2: ended by Skipped: could not import 'not_",
        ),
    ],
    ids=["exit", "skip"],
)
def test_a_conftest_that_ends_the_program_is_bad_input(rackloop: CommandLine, ends: str, said: str) -> None:
    (rackloop.directory / "conftest.py").write_text(ends)
    (rackloop.directory / "test_it.py").write_text("def test_it(lab): ...\n")
    rackloop("run", "test_it.py", "--out", "out").refused(2, said)
    assert not (rackloop.directory / "out").exists()


@pytest.mark.parametrize("hook", ["sessionfinish", "terminal_summary", "unconfigure"])
def test_a_conftest_that_ends_the_program_after_the_tests_changes_no_verdict(rackloop: CommandLine, hook: str) -> None:
    (rackloop.directory / "conftest.py").write_text(f"import sys\ndef pytest_{hook}(): sys.exit(0)\n")
    (rackloop.directory / "test_it.py").write_text("def test_it(lab): assert 0\n")
    ended = rackloop("run", "test_it.py", "--out", "out")
    assert ended.status == 1, ended
    assert Results(rackloop.directory / "out").summary["verdict"] == "fail"


def test_why_workers_ended_is_said_once(rackloop: CommandLine) -> None:
    (rackloop.directory / "conftest.py").write_text(
        "import os\nif 'PYTEST_XDIST_WORKER' in os.environ: raise RuntimeError('no port is free')\n"
    )
    (rackloop.directory / "test_it.py").write_text("def test_one(lab): ...\n")
    ended = rackloop("run", "test_it.py", "-n", "2", "--out", "out")
    assert ended.status == 3, ended
    (said,) = (line for line in ended.err.splitlines() if "no port is free" in line)
    assert re.match(r"rackloop: worker gw\d ended: .*RuntimeError: no port is free", said)


def test_what_failed_last_runs_alone_and_the_first_failure_ends_a_run(rackloop: CommandLine) -> None:
    (rackloop.directory / "test_it.py").write_text(
        "def test_one(lab): ...\ndef test_two(lab): print('seen'); assert 0\ndef test_three(lab): ...\n"
    )
    ended = rackloop("run", "test_it.py", "-x", "-s", "--out", "first")
    assert ended.status == 1, ended
    assert "seen" in ended.out
    assert set(Results(rackloop.directory / "first").tests()) == {"it::one", "it::two"}
    # What comes after -- is pytest's, and nothing may be added there.
    rackloop.renders_reports = True
    ended = rackloop("run", "test_it.py", "--lf", "--out", "second", "--no-report", "--", "--durations=1")
    assert ended.status == 1, ended
    assert "slowest" in ended.out
    assert set(Results(rackloop.directory / "second").tests()) == {"it::two"}
    # A file of the same name elsewhere has not failed.
    (rackloop.directory / "other").mkdir()
    (rackloop.directory / "other" / "test_it.py").write_text("def test_two(lab): ...\ndef test_four(lab): ...\n")
    assert rackloop("run", "other", "--lf", "--out", "third").status == 0
    assert set(Results(rackloop.directory / "third").tests()) == {"it::two", "it::four"}
    assert rackloop("run", "test_it.py", "--lf", "--out", "fourth").status == 1
    assert set(Results(rackloop.directory / "fourth").tests()) == {"it::two"}


def test_plain_pytest_runs_it_on_the_mock_lab(rackloop: CommandLine) -> None:
    folder = rackloop.directory / "my_tests"
    folder.mkdir()
    (folder / "test_it.py").write_text("def test_it(rack): assert rack.lab.name == 'mock'\n")
    command = [sys.executable, "-m", "pytest", str(folder), "--rackloop-out", "out", "-p", "no:cacheprovider"]
    done = subprocess.run(
        command, cwd=rackloop.directory, env=rackloop.environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "rackloop: plan it, lab mock (mock, simulated), seed" in done.stdout
    assert Path(rackloop.directory, "out", "events.jsonl").exists()
    assert not rackloop.processes()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("smoke",), "--lab is missing: on which lab? `--lab mock` is the simulated one"),
        (("smoke", "storm", "--lab", "mock"), "one plan, test file or folder a run: 'storm' is one too many"),
        (("my_tests",), "no plan is named 'my_tests' in testplans and"),
        (("mine/my_tests",), "there is no plan at mine/my_tests; check the path"),
        (("fabric/identity", "--lab", "mock"), "fabric/identity is a test, and a plan says with which limits it runs"),
        (("test_no.py",), "there is no test file test_no.py"),
        (("test_no.py", "--testplans", "."), "--testplans is for a plan, and test_no.py is a test file"),
    ],
)
def test_what_cannot_be_run_is_refused(rackloop: CommandLine, arguments: tuple[str, ...], said: str) -> None:
    rackloop("run", *arguments).refused(2, said)


def test_workers_have_racks_of_their_own_and_a_plan_with_servers_does_not(rackloop: CommandLine) -> None:
    (rackloop.directory / "picky.yaml").write_text(
        "plan: picky\npurpose: It has its server.\nservers: [srv1]\ntests: [{test: fabric/identity}]\n"
    )
    ended = rackloop("run", "picky.yaml", "--lab", "mock", "--dry-run")
    assert ended.status == 0, ended
    assert "Servers leased: srv1\n" in ended.out
    said = "-n 2 makes a rack for each worker, and plan picky has servers: leave -n out"
    rackloop("run", "picky.yaml", "--lab", "mock", "-n", "2").refused(2, said)


def test_a_folder_of_tests_runs_on_the_mock_lab(rackloop: CommandLine) -> None:
    for name in ("test_one.py", "deep/test_two.py"):
        path = rackloop.directory / "my_tests" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("def test_it(lab): assert lab.name == 'mock'\n")
    ended = rackloop("run", "my_tests", "--out", "out")
    assert ended.status == 0, ended
    assert set(Results(rackloop.directory / "out").tests()) == {"one::it", "deep/two::it"}
