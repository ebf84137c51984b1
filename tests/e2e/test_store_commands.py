"""A store on a drive of a mock rack by hand: made, filled, read, mounted, scrubbed, and refused where it should be."""

from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from rackloop_models.local_erasure._mount import is_mounted
from tests.e2e.command_line import CommandLine, Ended, Running
from tests.e2e.store_rack import content, fault, mounted, needs_fuse, rack_with_stores

GROUP = 250 * 4096

Store = Callable[..., Ended]


@pytest.fixture(scope="module")
def rack() -> Iterator[CommandLine]:
    """A rack that is up for the tests of this file, each of which works on drives of its own, with stores on some."""
    with rack_with_stores("d02", "d05", "d06") as command_line:
        yield command_line


@pytest.fixture
def store(rack: CommandLine) -> Store:
    """`rackloop store mock ...`."""
    return lambda *arguments: rack("store", "mock", *arguments)


def spoil(rackloop: CommandLine, drive: str, offsets: list[int]) -> None:
    for offset in offsets:
        fault(rackloop, drive, kind="media_error", lba=offset // 512, sectors=8, mode="until_rewritten")


def data_begins_at(rackloop: CommandLine, drive: str, head: bytes) -> int:
    """Where on a drive this is, found by reading the drive itself beside the fabric."""
    endpoints = rackloop.endpoints()
    image = rackloop.directory / f"{drive}.raw"
    uri = f"nbd+unix:///drive.{drive}?socket={endpoints['nbd']}"
    command = ("qemu-img", "dd", "-f", "raw", "-O", "raw", "bs=1M", "count=32", f"if={uri}", f"of={image}")
    subprocess.run(command, check=True, capture_output=True)
    found = image.read_bytes().find(head)
    assert found >= 0
    return found


def kill_helper(running: Running) -> None:
    """Kill the fusermount3 that libfuse started beside a mount, to unmount after its death."""
    children = Path(f"/proc/{running.process.pid}/task/{running.process.pid}/children").read_text().split()
    (helper,) = [int(pid) for pid in children if Path(f"/proc/{pid}/comm").read_text() == "fusermount3\n"]
    os.kill(helper, signal.SIGKILL)


def test_files_go_in_and_come_out_and_are_listed(store: Store, tmp_path: Path) -> None:
    made = store("format", "d01")
    assert (made.status, made.err) == (0, "")
    assert "groups of 250 sectors and 5 of redundancy over GF(2^8), metadata in 2 replicas" in made.out
    (tmp_path / "a file").write_bytes(content(3 << 20))
    (tmp_path / "small").write_bytes(b"not any more")
    assert store("put", "d01", tmp_path / "a file", "--name", "other").status == 0
    assert store("put", "d01", tmp_path / "small", "--name", "other").status == 0
    assert store("put", "d01", tmp_path / "a file").out == "a file: 3 MiB are on d01\n"
    listed = store("status", "d01").out
    assert "d01 at srv1.p0: groups of 250 sectors" in listed
    assert "2 files" in listed
    assert "3,145,731" in listed
    assert re.search(r" \d\d:\d\d:\d\d UTC ", listed)

    assert store("get", "d01", "a file", tmp_path / "copy").status == 0
    assert (tmp_path / "copy").read_bytes() == content(3 << 20)
    folder = tmp_path / "folder"
    folder.mkdir()
    assert store("get", "d01", "other", folder).status == 0
    assert (folder / "other").read_bytes() == b"not any more"

    assert store("put", "d01", tmp_path / "copy", "--name", "b[red]").out.startswith("b[red]: 3 MiB")
    assert "b[red]" in store("status", "d01").out
    assert store("rm", "d01", "b[red]").status == 0
    well = store("scrub", "d01", "--check")
    assert (well.status, "nothing was repaired" in well.out) == (0, False)

    store("rm", "d01", "other", "none").refused(2, "no file is named 'none'")
    twice = store("rm", "d01", "a file", "a file")
    assert (twice.status, twice.err) == (0, "")
    assert "1 file," in store("status", "d01").out


def test_a_copy_spares_what_lies_where_it_goes(store: Store, tmp_path: Path) -> None:
    assert store("format", "d07").status == 0
    (tmp_path / "file").write_bytes(b"content")
    assert store("put", "d07", tmp_path / "file").status == 0

    store("get", "d07", "file", f"{tmp_path}/none/").refused(2, f"there is no folder {tmp_path}/none; make it first")
    store("get", "d07", "file", f"{tmp_path}/none/copy").refused(2, f"there is no folder {tmp_path}/none; make it")
    os.mkfifo(tmp_path / "pipe")
    store("get", "d07", "file", tmp_path / "pipe").refused(2, "pipe is neither a file nor a folder")
    assert (tmp_path / "pipe").is_fifo()
    store("get", "d07", "file", tmp_path / "file" / "copy").refused(2, "file is no folder")

    (tmp_path / "copy").write_bytes(b"older")
    (tmp_path / "copy").chmod(0o640)
    (tmp_path / "link").symlink_to(tmp_path / "copy")
    (tmp_path / "link.half").write_bytes(b"somebody's")
    assert store("get", "d07", "file", tmp_path / "link").status == 0
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "copy").read_bytes() == b"content"
    assert stat.S_IMODE((tmp_path / "copy").stat().st_mode) == 0o640
    assert {path.name for path in tmp_path.iterdir()} == {"file", "pipe", "link", "link.half", "copy"}


def test_a_dash_is_standard_input_and_output(rack: CommandLine, store: Store, tmp_path: Path) -> None:
    assert store("format", "d14").status == 0
    whole = content(9 << 20)
    (tmp_path / "file").write_bytes(whole)
    store("put", "d14", "-").refused(2, "standard input has no name; give one with --name")
    with (tmp_path / "file").open("rb") as file:
        assert rack.start("store", "mock", "put", "d14", "-", "--name", "piped", stdin=file).end().status == 0
    with (tmp_path / "out").open("wb") as out:
        shown = rack.start("store", "mock", "get", "d14", "piped", "-", stdout=out).end()
    assert (shown.status, shown.err) == (0, "")
    assert (tmp_path / "out").read_bytes() == whole
    with Path("/dev/full").open("wb") as nowhere:
        rack.start("store", "mock", "get", "d14", "piped", "-", stdout=nowhere).end().refused(
            2, "standard output cannot be written: No space left"
        )
    (tmp_path / "copy").write_bytes(b"older")
    small = ("prlimit", "--fsize=4194304")
    full = rack("store", "mock", "get", "d14", "piped", tmp_path / "copy", prefix=small)
    full.refused(2, "copy cannot be written: File too large")
    assert (tmp_path / "copy").read_bytes() == b"older"
    assert {path.name for path in tmp_path.iterdir()} == {"file", "out", "copy"}
    for name in ("", ".", "..", ".rackloop-put.half"):
        assert store("put", "d14", tmp_path / "file", "--name", name).status == 2
    assert "1 file," in store("status", "d14").out


def test_every_figure_is_whole_at_80_columns(rack: CommandLine, store: Store, tmp_path: Path) -> None:
    assert store("format", "d08").status == 0
    (tmp_path / "file").write_bytes(content(3 << 20))
    name = "a name that is as long as that of a file which somebody made in a hurry"
    assert store("put", "d08", tmp_path / "file", "--name", name).status == 0
    narrow = rack("store", "mock", "status", "d08", COLUMNS="80").out
    row = next(line for line in narrow.splitlines() if name in line)
    assert "3,145,731  3.08 MiB" in row
    assert "…" not in narrow


def test_unreadable_sectors_are_decoded_repaired_and_told(rack: CommandLine, store: Store, tmp_path: Path) -> None:
    whole = content(2 * GROUP)
    (tmp_path / "file").write_bytes(whole)
    assert store("put", "d02", tmp_path / "file").status == 0
    begin = data_begins_at(rack, "d02", whole[:8192])
    spoil(rack, "d02", [begin + 4096 * number for number in (3, 4, 5, 6, 7)])
    got = store("get", "d02", "file", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == whole
    assert "of sectors that failed" in got.out

    checked = store("scrub", "d02", "--check")
    assert checked.status == 1
    assert "nothing was repaired; leave out --check" in checked.out
    assert "5 could not be read, 0 of them repaired" in checked.out
    scrubbed = store("scrub", "d02")
    assert scrubbed.status == 0
    assert "5 could not be read, 5 of them repaired" in scrubbed.out

    spoil(rack, "d02", [begin + 4096 * number for number in range(6)])
    store("get", "d02", "file", tmp_path / "lost").refused(1, "file 'file', group 0: 6 sectors cannot be read")
    assert not list(tmp_path.glob("lost*"))
    lost = store("scrub", "d02")
    assert lost.status == 1
    assert "file, group 0: cannot be recovered" in lost.out


def test_what_cannot_be_is_refused_in_a_sentence(rack: CommandLine, store: Store, tmp_path: Path) -> None:
    assert store("format", "d03", "--codeword", "1023", "--ph", "0.005").status == 0
    refused = {
        ("mock", "format", "d03"): (2, "d03 carries a store with 0 files; --overwrite to lose them"),
        ("mock", "format", "d03", "--overwrite", "--ph", "1"): (2, "ph: expected a probability above 0 and below 1"),
        ("mock", "format", "d04", "--files", "100000000"): (2, "take a larger drive, fewer files"),
        ("mock", "format", "d99"): (2, "lab mock has no drive 'd99'; did you mean"),
        ("mock", "format", "d20"): (2, "drive d20 may not be written: the description does not mark it scratch"),
        ("disaggregation", "format", "d01", "--files", "0"): (2, "'--files'"),
        ("mock", "format", "d17"): (2, "join it first: rackloop fabric mock map SERVER.PORT=d17"),
        ("mock", "status", "d09"): (2, "d09 carries no store; make one: rackloop store mock format d09"),
        ("mock", "put", "d03", "none"): (2, "none cannot be read: No such file"),
        ("mock", "mount", "d03", "none"): (2, "the mount point none is not there; make the folder first"),
        ("disaggregation", "status", "d01"): (3, "lab disaggregation is not up"),
    }
    started = {asked: rack.start("store", *asked) for asked in refused}
    for asked, (status, said) in refused.items():
        started[asked].end().refused(status, said)
    (tmp_path / "file").write_bytes(b"x")
    store("put", "d03", tmp_path / "file", "--name", "a/b").refused(2, "no folder of the store is named 'a'; make it")
    longest = "é" * 127
    assert store("put", "d03", tmp_path / "file", "--name", longest).status == 0
    os.truncate(tmp_path / "file", 1 << 40)
    store("put", "d03", tmp_path / "file").refused(2, "file has 1 TiB, and d03 has room for 7.8")
    assert "1 file," in store("status", "d03").out
    assert "groups of 1004 sectors and 19 of redundancy" in store("status", "d03").out


def test_a_drive_with_content_worth_keeping_is_refused_and_one_in_a_slot_is_reached(
    rack: CommandLine, store: Store
) -> None:
    assert rack("fabric", "mock", "map", "srv4.p2=d20", "srv4.p3=exp1").status == 0
    store("format", "d20").refused(2, "drive d20 may not be written", "does not mark it scratch")
    assert store("format", "d22").status == 0
    assert "d22 at srv4.p3" in store("status", "d22").out
    store("status", "d21").refused(2, "drive d21 carries no store")


@needs_fuse
def test_a_mounted_store_is_a_folder_until_it_is_interrupted(rack: CommandLine, store: Store, tmp_path: Path) -> None:
    folder = tmp_path / "mnt"
    with mounted(rack, "d05", folder) as running:
        (folder / "file").write_bytes(content(GROUP))
        (folder / "results").mkdir()
        done = subprocess.run(("df", "--output=source", folder), capture_output=True, text=True, check=True)
        assert done.stdout.split()[-1] == "mock/d05"
        store("status", "d05").refused(3, "lab mock is not free", "store mount d05")
        running.interrupt()
        ended = running.end()
    assert (ended.status, ended.err) == (0, ""), ended
    assert f"d05 is mounted at {folder}" in ended.out
    assert not folder.is_mount()
    assert store("get", "d05", "file", tmp_path / "copy").status == 0
    assert (tmp_path / "copy").read_bytes() == content(GROUP)
    store("put", "d05", tmp_path / "copy", "--name", "results").refused(2, "'results' is a folder of the store")
    assert store("put", "d05", tmp_path / "copy", "--name", "results/first").status == 0
    assert store("get", "d05", "results/first", folder).status == 0
    assert (folder / "first").read_bytes() == content(GROUP)


@needs_fuse
@pytest.mark.parametrize("killed", ["alone", "after its helper"])
def test_a_killed_mount_leaves_what_was_synced(rack: CommandLine, store: Store, tmp_path: Path, killed: str) -> None:
    folder = tmp_path / "mnt"
    with mounted(rack, "d06", folder) as running:
        file = os.open(folder / "file", os.O_CREAT | os.O_WRONLY)
        os.write(file, content(GROUP))
        os.fsync(file)
        if killed == "after its helper":
            kill_helper(running)
        running.kill()
        with suppress(OSError):
            os.close(file)
        # libfuse's helper unmounts it, unless it looks while the kernel still ends the connection.
        with mounted(rack, "d06", folder) as again:
            assert (folder / "file").read_bytes() == content(GROUP)
            again.interrupt()
            assert again.end().status == 0
        assert not is_mounted(folder)
    assert store("scrub", "d06").status == 0
    assert store("get", "d06", "file", tmp_path / "copy").status == 0
    assert (tmp_path / "copy").read_bytes() == content(GROUP)


@needs_fuse
def test_a_mount_ends_with_its_lab(rackloop: CommandLine, tmp_path: Path) -> None:
    assert rackloop("lab", "up", "mock").status == 0
    assert rackloop("store", "mock", "format", "d05").status == 0
    folder = tmp_path / "mnt"
    with mounted(rackloop, "d05", folder) as running:
        rackloop("lab", "down", "mock").refused(3, "store mount d05")
        assert rackloop("lab", "down", "mock", "--steal", "--yes").status == 0
        running.end().refused(3, f"{folder} was unmounted, and what was not synced is lost: lab mock was taken")
    assert not folder.is_mount()
