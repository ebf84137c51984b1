"""Runs of the command line in forked processes that a test kills at any instant.

Run as a program it has the command line loaded, and for each line on its standard input, the arguments of a command,
forks a process that carries it out; it says that process's id at once and its exit status when it has ended.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path

from rackloop.clock import RealClock


class RunProcesses:
    """The program of this module, running."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def start(self, *arguments: str | Path) -> int:
        """Begin a command; its process."""
        assert self._process.stdin
        print(json.dumps([str(argument) for argument in arguments]), file=self._process.stdin, flush=True)
        return self._told()

    def end(self) -> int:
        """Wait for the end of the command that was begun; its exit status, negative where a signal ended it."""
        return self._told()

    def kill_after(self, pid: int, seconds: float) -> int:
        """Kill the command that was begun (SIGKILL) after a time, if it has not ended by then; its exit status."""
        # The program is not run from where the tests are a package.
        clock = RealClock()
        clock.sleep_until_ns(clock.now_ns() + round(seconds * 1e9))
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        return self.end()

    def _told(self) -> int:
        assert self._process.stdout
        return int(self._process.stdout.readline())


@contextmanager
def run_processes(directory: Path, environment: Mapping[str, str]) -> Iterator[RunProcesses]:
    """Start the program; its commands have this working directory and environment."""
    with subprocess.Popen(
        [sys.executable, __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=directory,
        env=dict(environment),
    ) as process:
        yield RunProcesses(process)
        assert process.stdin
        process.stdin.close()


_LOADED = (
    "rackloop_fixtures.planned_session",
    "rackloop_fixtures.fixtures",
    "rackloop_fixtures.rack.faults",
    "rackloop_fixtures.rack.labels",
    "rackloop_fixtures.rack.rack",
    "rackloop_fixtures.rack.start",
    "rackloop_fixtures.session.plan_plugin",
    "rackloop_fixtures.supervision.health_checked",
    "rackloop_fixtures.supervision.run_services",
)


def _serve() -> None:
    from rackloop_cli.main import main

    # Loaded before anything is forked, what comes with the first test that wants a rack as well.
    for name in _LOADED:
        import_module(name)

    told = os.fdopen(os.dup(1), "w")
    silent = os.open(os.devnull, os.O_RDWR)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            for stream in (0, 1, 2):
                os.dup2(silent, stream)
            os._exit(main(json.loads(line)))
        print(child, file=told, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), file=told, flush=True)


if __name__ == "__main__":
    _serve()
