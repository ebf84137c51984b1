"""What Rackloop costs over plain pytest: at the start of a session, and for every test that does nothing.

Beside other work the processor time of pytest's own process says more than the clock, so it is told as well; that of
the simulated servers is not in it.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from benchmarks._bench import paired
from rackloop.clock import RealClock
from rackloop.data import data_path
from rackloop.lab import LabState, load_lab
from rackloop_labs import MockLab

START_ROUNDS = 11
TESTS = 500
TEST_ROUNDS = 5
CLOCK = RealClock()
MARKED = (
    "import pytest\n"
    "pytestmark = pytest.mark.rackloop(purpose='do nothing', requires=[], destructive=False, time_class='seconds')\n"
)


@dataclass(frozen=True)
class Session:
    """pytest on one test file, as a plain session with allure or as a run of a plan."""

    directory: Path
    name: str
    body: str
    repeats: int = 1
    fixture: str = ""
    processor_ms: dict[str, list[float]] = field(default_factory=lambda: {"plain": [], "plan": []})

    def __post_init__(self) -> None:
        for kind, mark in (("plain", "import pytest\n"), ("plan", MARKED)):
            folder = self.directory / kind / self.name
            folder.mkdir(parents=True)
            (folder / f"test_{self.name}.py").write_text(
                mark + self.body.format(fixture=self.fixture * (kind == "plan"))
            )
        entry = {"test": f"{self.name}/{self.name}", "repeats": self.repeats}
        plan = {"plan": self.name, "purpose": "Nothing is done.", "tests": [entry]}
        (self.directory / f"{self.name}.yaml").write_text(json.dumps(plan))

    def plain_ms(self) -> float:
        return self._took_ms(self.directory / "plain", "-p", "no:rackloop")

    def plan_ms(self) -> float:
        root = self.directory / "plan"
        return self._took_ms(
            root,
            f"--rackloop-plan={self.directory / self.name}.yaml",
            "--rackloop-lab=mock",
            f"--rackloop-testplans={root}",
            f"--rackloop-out={tempfile.mkdtemp(dir=self.directory)}",
        )

    def of_processor_ms(self, kind: str) -> float:
        """The median over all sessions of the kind, ``plain`` or ``plan``."""
        return statistics.median(self.processor_ms[kind])

    def _took_ms(self, root: Path, *options: str) -> float:
        results = tempfile.mkdtemp(dir=self.directory)
        command = [sys.executable, "-m", "pytest", "-q", f"-c{data_path('testplans') / 'pytest.ini'}"]
        command += [f"--rootdir={root}", f"--alluredir={results}", str(root / self.name), *options]
        # Modules compiled once, as those of an installed package are, whatever the shell says.
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(self.directory / "compiled")}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        began_ns, used_ms = CLOCK.now_ns(), _used_by_children_ms()
        subprocess.run(command, check=True, capture_output=True, env=environment)
        self.processor_ms[root.name].append(_used_by_children_ms() - used_ms)
        return (CLOCK.now_ns() - began_ns) / 1e6


def _used_by_children_ms() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) * 1e3


@pytest.fixture(autouse=True)
def _with_a_rack(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A mock rack left up, as `rackloop lab up mock` leaves it."""
    with tempfile.TemporaryDirectory(prefix="rl-", dir="/tmp") as home:
        monkeypatch.setenv("RACKLOOP_STATE_HOME", home)
        lab = MockLab(load_lab("mock"), CLOCK, LabState.of("mock"))
        lab.up()
        yield
        lab.down()


def test_start_up(tmp_path: Path) -> None:
    session = Session(tmp_path, "one", "def test_it({fixture}): ...\n", fixture="rack")
    session.plain_ms()
    session.plan_ms()
    cost = paired(session.plan_ms, session.plain_ms, START_ROUNDS)
    added_ms = cost.a - cost.b
    print(f"\nstart-up: plain pytest {cost.b:.0f} ms, run of a plan {cost.a:.0f} ms, added {added_ms:.0f} ms")
    plain_ms, plan_ms = session.of_processor_ms("plain"), session.of_processor_ms("plan")
    print(f"  of processor time {plain_ms:.0f} and {plan_ms:.0f} ms, added {plan_ms - plain_ms:.0f} ms")
    print(f"  {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {cost.rounds} paired rounds")
    assert added_ms <= 300


def test_each_test(tmp_path: Path) -> None:
    body = "@pytest.mark.parametrize('n', range({tests}))\ndef test_it({{fixture}}n): ...\n"
    many = Session(tmp_path, "many", body.format(tests=TESTS), fixture="rack, ")
    one = Session(tmp_path, "few", body.format(tests=1), fixture="rack, ")
    one.plain_ms()
    one.plan_ms()
    cost = paired(many.plan_ms, many.plain_ms, TEST_ROUNDS)
    start = paired(one.plan_ms, one.plain_ms, TEST_ROUNDS)
    added_ms = ((cost.a - start.a) - (cost.b - start.b)) / (TESTS - 1)
    print(f"\neach of {TESTS} tests that do nothing: plain pytest {(cost.b - start.b) / (TESTS - 1):.2f} ms,")
    print(f"  in a run with a rack {(cost.a - start.a) / (TESTS - 1):.2f} ms, added {added_ms:.2f} ms")
    plain_ms, plan_ms = (
        (many.of_processor_ms(kind) - one.of_processor_ms(kind)) / (TESTS - 1) for kind in ("plain", "plan")
    )
    print(f"  of processor time {plain_ms:.2f} and {plan_ms:.2f} ms, added {plan_ms - plain_ms:.2f} ms")
    print(f"  {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {cost.rounds} paired rounds")
    assert added_ms <= 1
