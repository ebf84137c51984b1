"""The installed command line with a home folder and environment of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, ClassVar

from rackloop.clock import Deadline
from rackloop.record import Stamped, read_events
from tests.command_forks import CommandForks, ForkedCommand, can_fork, command_forks
from tests.deadlines import CLOCK

# Generous: a busy machine must not fail a test. Nothing waits this long when all is well.
SLOW_S = 300.0
_POLL_S = 2e-3
# Every process of the machine is read for it: asked as often as that, it would take a core from those it waits for.
POLL_PROCESSES_S = 0.1


@dataclass(frozen=True)
class Ended:
    """A command that ended, with what it said."""

    status: int
    out: str
    err: str

    def refused(self, status: int, *said: str) -> None:
        """Assert that it ended with ``status``, said all of ``said`` on standard error, and never as a traceback.

        What it says bears Rackloop's name, as the documents promise, and not pytest's ``ERROR``.
        """
        assert self.status == status, self
        assert "Traceback" not in self.err, self
        assert not any(line.startswith("ERROR") for line in self.err.splitlines()), self
        for text in said:
            assert text in self.err, (text, self)


class Running:
    """A command that runs, in a process group of its own as a terminal's foreground job is."""

    def __init__(self, process: subprocess.Popen[str] | ForkedCommand, within_s: float = SLOW_S) -> None:
        self.process = process
        self._within_s = within_s

    def interrupt(self) -> None:
        """Ctrl-C: the terminal signals the whole process group."""
        os.killpg(self.process.pid, signal.SIGINT)

    def kill(self) -> None:
        """Kill -9 of the command alone; returns once it is dead."""
        self.process.kill()
        self.process.communicate(timeout=self._within_s)

    def end(self) -> Ended:
        """Wait for its end."""
        out, err = self.process.communicate(timeout=self._within_s)
        assert self.process.returncode is not None
        return Ended(self.process.returncode, out, err)


class CommandLine:
    """Runs ``rackloop`` with a state directory and a working directory of its own.

    A run's report is rendered only where ``renders_reports`` is set: that takes longer than most runs. Where there are
    ``forks``, a command that needs nothing else is one of these.
    """

    renders_reports = False
    # How long a command may take.
    within_s = SLOW_S
    forks: ClassVar[CommandForks | None] = None

    def __init__(self, state_home: Path, directory: Path) -> None:
        self.state_home = state_home
        self.directory = directory
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_"))},
            "RACKLOOP_STATE_HOME": str(state_home),
            "COLUMNS": "200",
            "NO_COLOR": "1",
        }
        self._started: list[Running] = []

    def __call__(self, *arguments: str | Path, prefix: Sequence[str] = (), **environment: str) -> Ended:
        """Run a command to its end."""
        running = self.start(*arguments, prefix=prefix, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, **environment)
        return running.end()

    def start(
        self,
        *arguments: str | Path,
        prefix: Sequence[str] = (),
        stdin: IO[Any] | int = subprocess.DEVNULL,
        stdout: IO[Any] | int = subprocess.PIPE,
        **environment: str,
    ) -> Running:
        """Start a command, under the program ``prefix`` where one is given; what goes elsewhere is not in its end."""
        given = [*map(str, arguments)]
        if arguments[:1] == ("run",) and not self.renders_reports:
            given.append("--no-report")
        world = {**self.environment, **environment}
        process: subprocess.Popen[str] | ForkedCommand
        if self.forks is not None and not prefix and can_fork(world):
            process = self.forks.begin(given, self.directory, world, stdin, stdout)
        else:
            process = subprocess.Popen(
                [*prefix, sys.executable, "-m", "rackloop_cli.main", *given],
                cwd=self.directory,
                env=world,
                stdin=stdin,
                stdout=stdout,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
        running = Running(process, self.within_s)
        self._started.append(running)
        return running

    def endpoints(self, lab: str = "mock") -> dict[str, Any]:
        """What ``lab status --json`` says of a lab."""
        found: dict[str, Any] = json.loads(self("lab", "status", lab, "--json").out)
        return found

    def write(self, name: str, document: Mapping[str, Any]) -> Path:
        """Write a plan or a lab description: YAML holds JSON."""
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(document))
        return path

    def plan(self, *tests: Mapping[str, Any], name: str = "small") -> Path:
        """Write a plan of these entries."""
        purpose = "A small rack does what it should."
        return self.write(f"{name}.yaml", {"plan": name, "purpose": purpose, "tests": list(tests)})

    def processes(self) -> dict[int, str]:
        """Every living process of this world, however it came to be, with its command line."""
        mark = f"RACKLOOP_STATE_HOME={self.state_home}".encode()
        # A forked command shows the environment of what it was forked from.
        found = {running.process.pid: "a command" for running in self._started if running.process.poll() is None}
        for entry in Path("/proc").iterdir():
            with suppress(OSError):
                if entry.name.isdigit() and mark in (entry / "environ").read_bytes().split(b"\0"):
                    found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        return found

    def wait_until_deserted(self) -> None:
        """Return once no process of this world lives."""
        wait_until(lambda: not self.processes(), lambda: f"left running: {self.processes()}", every_s=POLL_PROCESSES_S)

    def close(self) -> None:
        """End what still runs; raises AssertionError where something had been left behind."""
        if self.processes():
            self("lab", "down", "mock")
        left = self.processes()
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for running in self._started:
            running.process.communicate(timeout=SLOW_S)
        assert not left, f"left running: {left}"


@contextmanager
def forked_commands() -> Iterator[None]:
    """Commands start in next to no time for as long as the block runs."""
    with command_forks() as forks:
        CommandLine.forks = forks
        yield
        CommandLine.forks = None


def wait_until(is_so: Callable[[], bool], otherwise: Callable[[], str], *, every_s: float = _POLL_S) -> None:
    """Return as soon as ``is_so``; raises AssertionError with ``otherwise`` once a generous deadline is over."""
    assert Deadline.after(CLOCK, SLOW_S).poll(is_so, every_s=every_s), otherwise()


@dataclass(frozen=True)
class Results:
    """The output directory of a run."""

    directory: Path

    @property
    def summary(self) -> dict[str, Any]:
        """summary.json."""
        found: dict[str, Any] = json.loads((self.directory / "summary.json").read_text())
        return found

    @property
    def events(self) -> list[Stamped]:
        """The whole event stream."""
        return list(read_events(self.directory / "events.jsonl"))

    def of_kind(self, kind: str) -> list[Any]:
        """The events of one kind."""
        return [stamped.event for stamped in self.events if stamped.event.kind == kind]

    def tests(self) -> dict[str, dict[str, Any]]:
        """The tests of summary.json by id."""
        return {test["id"]: test for test in self.summary["tests"]}

    def wait_for(self, kind: str, times: int) -> None:
        """Return once ``times`` events of ``kind`` stand in the stream, which somebody else is writing."""
        wait_until(lambda: self.told(kind) >= times, lambda: f"{self.told(kind)} of {times} {kind} in {self.directory}")

    def told(self, kind: str) -> int:
        """The number of events of ``kind`` in the stream so far, which somebody else may be writing."""
        path = self.directory / "events.jsonl"
        return path.read_text().count(f'"kind":"{kind}"') if path.exists() else 0
