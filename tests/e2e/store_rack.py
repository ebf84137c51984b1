"""A mock rack that stores are put on by hand, and what is done to its drives."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from rackloop.clock import Deadline
from rackloop_drivers.rackd import RackdControl
from rackloop_models.local_erasure import unmount
from rackloop_models.local_erasure._mount import is_mounted
from tests.deadlines import CLOCK
from tests.e2e.command_line import SLOW_S, CommandLine, Running, wait_until

needs_fuse = pytest.mark.skipif(not Path("/dev/fuse").exists(), reason="there is no /dev/fuse on this machine")


@contextmanager
def rack_with_stores(*drives: str) -> Iterator[CommandLine]:
    """A rack that is up for as long as the block runs, with stores on some drives."""
    with tempfile.TemporaryDirectory(prefix="rl-", dir="/tmp") as place:
        command_line = CommandLine(Path(place), Path(place))
        assert command_line("lab", "up", "mock").status == 0
        made = [command_line.start("store", "mock", "format", drive) for drive in drives]
        assert [running.end().status for running in made] == [0] * len(drives)
        try:
            yield command_line
        finally:
            assert command_line("lab", "down", "mock").status == 0
            command_line.close()


@contextmanager
def mounted(rackloop: CommandLine, drive: str, folder: Path) -> Iterator[Running]:
    """The command that serves the store of a drive at a folder, which is made."""
    if not is_mounted(folder):
        folder.mkdir(exist_ok=True)
    running = rackloop.start("store", "mock", "mount", drive, folder)
    wait_until(lambda: _is_served(folder) or running.process.poll() is not None, lambda: "it was never mounted")
    assert running.process.poll() is None, running.end()
    try:
        yield running
    finally:
        if running.process.poll() is None:
            running.kill()
        if is_mounted(folder):
            unmount(folder)


def _is_served(folder: Path) -> bool:
    try:
        # The kernel remembers what a folder is; of this it asks the server, which may be gone.
        os.statvfs(folder)
        return folder.is_mount()
    except OSError:
        return False


def content(length: int) -> bytes:
    return bytes(number % 251 for number in range(4096)) * (length // 4096) + b"end"


def fault(rackloop: CommandLine, drive: str, **fields: object) -> None:
    """Have rackd break a drive."""
    with closing(RackdControl(Path(rackloop.endpoints()["control"]), CLOCK)) as rackd:
        rackd.request("fault", Deadline.after(CLOCK, SLOW_S), drive=drive, fault=fields)


def mend(rackloop: CommandLine, drive: str) -> None:
    """Have rackd end all faults of a drive."""
    with closing(RackdControl(Path(rackloop.endpoints()["control"]), CLOCK)) as rackd:
        rackd.request("clear_fault", Deadline.after(CLOCK, SLOW_S), drive=drive)
