"""Whether the process that holds a lease lives: only one that is known to have ended is taken for dead."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from rackloop.safety.leases import Process


@pytest.fixture
def proc_hides_everybody(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with ``hidepid=2``: the files of processes are not there."""
    read = Path.read_text

    def hidden(path: Path, **options: str) -> str:
        if path.name != "stat":
            return read(path, **options)
        raise FileNotFoundError(2, "No such file or directory", str(path))

    monkeypatch.setattr(Path, "read_text", hidden)


def test_this_process_lives_and_one_with_its_number_that_began_before_does_not() -> None:
    process = Process.this()
    assert process.is_living(private=True)
    assert replace(process, started=process.started - 1).is_living(private=True) is False


def test_a_process_that_ended_is_dead_before_and_after_it_is_waited_for() -> None:
    child = subprocess.Popen(["true"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    ended = replace(Process.this(), pid=child.pid)
    assert ended.is_living(private=True) is False
    child.wait()
    assert ended.is_living(private=True) is False


@pytest.mark.usefixtures("proc_hides_everybody")
def test_a_process_that_proc_hides_is_not_taken_for_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    process = replace(Process.this(), pid=os.getppid())
    assert process.is_living(private=True) is None

    def is_of_another_user(pid: int, signal: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "kill", is_of_another_user)
    assert process.is_living(private=True) is None


@pytest.mark.usefixtures("proc_hides_everybody")
def test_a_process_that_proc_does_not_show_and_nobody_can_signal_is_dead() -> None:
    child = subprocess.Popen(["true"])
    child.wait()
    assert replace(Process.this(), pid=child.pid).is_living(private=True) is False
