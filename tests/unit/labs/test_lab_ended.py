"""A lab's process is ended whatever it is doing: coming up, or hanging while it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from rackloop.clock import Deadline, VirtualClock
from rackloop.errors import BadInput, DeadlineExceeded, LabError
from rackloop.lab import LabState
from rackloop_labs import open_lab
from rackloop_labs._daemon import stop, wait_until_gone
from rackloop_labs._lab_process import LabProcess
from tests.deadlines import CLOCK, soon
from tests.unit.harness.sim_rack import described

# A lab that has no endpoints: those of one that comes up are not written yet, of one that ends they are gone.
STAND_IN = """
import asyncio, os, signal, sys
from rackloop_labs._lab_main import run_lab, told_to_end

async def live(lab, state, options):
    told = told_to_end(options)
    if lab.source.with_name("deaf").exists():
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, lambda: None)
    os.write(options.ready_fd, b"!")
    await told.wait()

run_lab(live, "labd", "A stand-in.")
"""
Start = Callable[[], subprocess.Popen[bytes]]


@pytest.fixture
def state(tmp_path: Path) -> LabState:
    return LabState.of("bench", root=tmp_path)


@pytest.fixture
def start(state: LabState, tmp_path: Path) -> Iterator[Start]:
    described(tmp_path)
    with ExitStack() as stack:

        def start() -> subprocess.Popen[bytes]:
            ready, told = os.pipe()
            argv = [sys.executable, "-c", STAND_IN, str(tmp_path / "bench.yaml"), "--state", str(state.directory)]
            process = subprocess.Popen([*argv, "--seed", "1", "--ready-fd", str(told)], pass_fds=[told])
            stack.enter_context(process)
            stack.callback(process.kill)
            os.close(told)
            with os.fdopen(ready, "rb") as pipe:
                assert pipe.read(1) == b"!"
            return process

        yield start


class Turning(VirtualClock):
    """A clock on which something happens while somebody waits for it."""

    def __init__(self, happens: Callable[[], object]) -> None:
        super().__init__()
        self._happens = happens

    def sleep_until_ns(self, when_ns: int) -> None:
        self._happens()
        super().sleep_until_ns(when_ns)


def test_a_lab_that_is_ending_is_waited_for_before_another_comes_up(state: LabState, tmp_path: Path) -> None:
    held = state.take()
    assert held is not None
    clock = Turning(lambda: os.dup2(null, held))
    with Path(os.devnull).open() as nothing:
        null = nothing.fileno()
        assert not LabProcess(described(tmp_path), clock, state).is_up()
    assert clock.now_ns() > 0
    os.close(held)


def test_a_lab_that_is_coming_up_is_waited_for_and_is_up(state: LabState, tmp_path: Path) -> None:
    held = state.take()
    assert held is not None
    clock = Turning(lambda: state.endpoints_file.write_text("{}"))
    with pytest.raises(BadInput, match="is up already"):
        LabProcess(described(tmp_path), clock, state).up()
    assert clock.now_ns() > 0
    os.close(held)


def test_a_lab_that_is_coming_up_is_waited_for_by_who_would_not_bring_it_up(state: LabState, tmp_path: Path) -> None:
    """As a run of some of its servers; this one does not come up."""
    held = state.take()
    assert held is not None
    clock = Turning(partial(os.close, held))
    with pytest.raises(LabError, match="is not up"), open_lab(described(tmp_path), clock, state, None, bring_up=False):
        pass
    assert clock.now_ns() > 0


class NeverUp(LabProcess):
    """A lab whose process does not come up."""

    module = "no_such_module"


class Impatient(NeverUp):
    """One that is given little time."""

    up_s = 0.01


@pytest.fixture
def brought_up_by_another(state: LabState, tmp_path: Path) -> Iterator[LabProcess]:
    """A lab that another process brings up at this moment, and has up once it is waited for."""
    theirs = state.take("up")
    assert theirs is not None

    def comes_up() -> None:
        stack.callback(os.close, state.take() or 0)
        state.endpoints_file.write_text("{}")
        os.close(theirs)

    with ExitStack() as stack:
        yield NeverUp(described(tmp_path), Turning(comes_up), state)


def test_a_lab_that_another_process_begins_to_bring_up_is_waited_for(brought_up_by_another: LabProcess) -> None:
    with pytest.raises(BadInput, match="lab bench is up already: use it, or `rackloop lab down"):
        brought_up_by_another.up()


def test_a_run_uses_the_lab_that_another_process_brings_up_meanwhile(brought_up_by_another: LabProcess) -> None:
    assert brought_up_by_another.leashed() is None


def test_a_lab_that_another_process_brings_up_for_ever_is_told(state: LabState, tmp_path: Path) -> None:
    theirs = state.take("up")
    assert theirs is not None
    with pytest.raises(LabError, match="another process has been bringing lab bench up for long; see "):
        Impatient(described(tmp_path), VirtualClock(), state).up()
    os.close(theirs)


def test_who_failed_to_bring_a_lab_up_keeps_nobody_from_it(state: LabState, tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"did not come up: .*no_such_module"):
        NeverUp(described(tmp_path), CLOCK, state).up()
    ours = state.take("up")
    assert ours is not None
    os.close(ours)


def test_a_lab_that_is_coming_up_has_no_endpoints_of_one_that_was_killed(state: LabState, start: Start) -> None:
    state.endpoints_file.write_text("{}")
    start()
    assert not state.endpoints_file.exists()


def test_a_lab_that_is_coming_up_is_ended(state: LabState, start: Start) -> None:
    process = start()
    assert stop(state, soon())
    assert process.wait(120) == 0
    assert not stop(state, soon())


@pytest.mark.parametrize("end", [stop, wait_until_gone])
def test_a_lab_that_does_not_end_is_killed(
    end: Callable[[LabState, Deadline], object], state: LabState, start: Start, tmp_path: Path
) -> None:
    (tmp_path / "deaf").touch()
    process = start()
    with pytest.raises(DeadlineExceeded, match="lab bench did not end in time and was killed"):
        end(state, Deadline.after(CLOCK, 0.2))
    assert process.wait(120) == -signal.SIGKILL


def test_a_process_that_an_ended_lab_has_left_the_number_of_is_not_signalled(state: LabState, start: Start) -> None:
    process = start()
    process.kill()
    process.wait(120)
    lock = state.take()
    assert lock is not None
    with pytest.raises(DeadlineExceeded, match="lab bench is up by a process that is not known"):
        stop(state, Deadline.after(CLOCK, 0.2))
    os.close(lock)
