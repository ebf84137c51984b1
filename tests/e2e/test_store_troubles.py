"""A store by hand when its command is ended in the middle, and when its drive dies."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.command_line import CommandLine, Running, wait_until
from tests.e2e.store_rack import content, fault, mend, mounted, needs_fuse, rack_with_stores

LONG = 16 << 20
ENDING = [signal.SIGINT, signal.SIGTERM]


@pytest.fixture(scope="module")
def rack() -> Iterator[CommandLine]:
    """A rack that is up for the tests of this file, each of which works on a drive of its own."""
    with rack_with_stores("d01", "d02", "d05", "d06", "d07") as command_line:
        yield command_line


def names(rack: CommandLine, drive: str) -> set[str]:
    listed = rack("store", "mock", "status", drive)
    assert listed.status == 0, listed
    return {line.split()[-1] for line in listed.out.splitlines()[5:] if line.strip()}


def holds_nothing(rack: CommandLine) -> None:
    assert "no lease is held" in rack("lab", "status", "mock").out


@pytest.mark.parametrize("number", ENDING)
def test_nothing_is_left_of_a_put_that_is_ended(rack: CommandLine, number: signal.Signals) -> None:
    with Path("/dev/zero").open("rb") as endless:
        running = rack.start("store", "mock", "put", "d01", "-", "--name", "endless", stdin=endless)
        wait_until(lambda: has_read(running) > 2 * LONG, lambda: "nothing was read")
        running.process.send_signal(number)
        running.end().refused(130, "interrupted")
    assert names(rack, "d01") == set()
    holds_nothing(rack)


def test_a_put_ends_once_another_has_the_lease(rack: CommandLine) -> None:
    with Path("/dev/zero").open("rb") as endless:
        running = rack.start("store", "mock", "put", "d07", "-", "--name", "endless", stdin=endless)
        wait_until(lambda: has_read(running) > 2 * LONG, lambda: "nothing was read")
        taken = rack("lab", "lease", "mock", "--for", "1h", "--steal", "--yes")
        assert taken.status == 0, taken
        running.end().refused(3, "lease", "stolen")
    assert rack("lab", "release", "mock", taken.out.rpartition(" ")[2].rstrip("`\n")).status == 0
    assert names(rack, "d07") == set()
    holds_nothing(rack)


@pytest.mark.parametrize("number", ENDING)
def test_nothing_is_left_of_a_get_that_is_ended(rack: CommandLine, tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "file").write_bytes(content(LONG))
    assert rack("store", "mock", "put", "d02", tmp_path / "file").status == 0
    fault(rack, "d02", kind="slow", extra_us=100_000)
    running = rack.start("store", "mock", "get", "d02", "file", tmp_path / "copy")
    wait_until(lambda: any(tmp_path.glob(".rackloop-get-*")), lambda: "it never began")
    running.process.send_signal(number)
    ended = running.end()
    mend(rack, "d02")
    assert (ended.status, ended.out) == (130, ""), ended
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    holds_nothing(rack)


def test_a_second_signal_gives_up_a_drive_that_hangs(rack: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    assert rack("store", "mock", "put", "d06", tmp_path / "file").status == 0
    fault(rack, "d06", kind="hang")
    running = rack.start("store", "mock", "get", "d06", "file", tmp_path / "copy")
    errors = running.process.stderr
    assert errors is not None
    assert "drive d06 at srv3.p1 does not answer; `rackloop fabric mock show`" in errors.readline()
    running.process.send_signal(signal.SIGTERM)
    assert "tidying up; again to give that up" in errors.readline()
    running.process.send_signal(signal.SIGINT)
    ended = running.end()
    mend(rack, "d06")
    ended.refused(130, "interrupted: drive d06 at srv3.p1 is out of reach")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    holds_nothing(rack)
    assert names(rack, "d06") == {"file"}


def test_a_drive_that_does_not_keep_what_is_written_is_not_said_to_carry_a_store(rack: CommandLine) -> None:
    fault(rack, "d03", kind="corrupt", lba=0, sectors=1 << 14)
    broken = rack("store", "mock", "format", "d03")
    mend(rack, "d03")
    broken.refused(3, "drive d03 at srv2.p0 was formatted, and does not give back what was written to it")


def test_a_store_of_which_nothing_can_be_read_is_not_formatted_unasked(rack: CommandLine) -> None:
    assert rack("store", "mock", "format", "d04").status == 0
    fault(rack, "d04", kind="media_error", lba=0, sectors=64, mode="until_rewritten")
    rack("store", "mock", "format", "d04").refused(2, "drive d04 may carry a store; --overwrite to lose what is in it")
    assert rack("store", "mock", "format", "d04", "--overwrite").status == 0


@needs_fuse
def test_a_drive_that_dies_under_a_mount_is_named_as_in_the_lab(rack: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(content(LONG))
    assert rack("store", "mock", "put", "d05", tmp_path / "file").status == 0
    folder = tmp_path / "mnt"
    with mounted(rack, "d05", folder) as running:
        fault(rack, "d05", kind="dead")
        with pytest.raises(OSError, match="Input/output error"):
            (folder / "file").read_bytes()
        with (folder / "new").open("wb", buffering=0) as file, pytest.raises(OSError, match="Input/output error"):
            os.fsync(file.fileno() if file.write(b"new") else -1)
        running.interrupt()
        ended = running.end()
    dead = "drive d05 at srv3.p0 answers nothing but errors"
    ended.refused(3, f"read of /file: {dead}", f"fsync of /new: {dead}", f"{folder} was unmounted", "fabric mock show")
    assert "nbd" not in ended.err
    rack("store", "mock", "status", "d05").refused(3, dead)
    mend(rack, "d05")
    assert names(rack, "d05") >= {"file"}


def has_read(running: Running) -> int:
    """How many bytes a command has read until now, from wherever."""
    counted = Path(f"/proc/{running.process.pid}/io").read_text()
    return int(counted.split("rchar:")[1].split()[0])
