"""A store on one drive as a folder: what programs nobody here wrote do with it, and what is left when it is killed."""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from rackloop.clock import Deadline
from rackloop.errors import BadInput, NotSupported
from rackloop_drivers.block import NbdExport
from rackloop_drivers.block.file_blocks import FileBlocks
from rackloop_drivers.open_blocks import open_blocks
from rackloop_models.local_erasure import Layout, LocalStore, format_drive, require_mount_point, unmount
from tests.deadlines import CLOCK
from tests.rackd_process import RunningRackd, running_rackd
from tests.store_mount import served
from tests.writable_drive import minted

MIB = 1 << 20
DRIVE_BYTES = 64 * MIB
LAYOUT = Layout.for_failure_probability(1e-3, 255)
RENAME_NOREPLACE, RENAME_EXCHANGE = 1, 2
SIZES = (0, 1, 4095, 4096, 4097, 250 * 4096, 250 * 4096 + 1, 3 * MIB + 5)

pytestmark = pytest.mark.skipif(not Path("/dev/fuse").exists(), reason="there is no /dev/fuse on this machine")


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """A drive in a file, formatted."""
    path = tmp_path / "drive.img"
    with FileBlocks(path, DRIVE_BYTES) as blocks:
        format_drive(blocks, LAYOUT)
    return path


@contextmanager
def opened(image: Path) -> Iterator[LocalStore]:
    with FileBlocks(image, DRIVE_BYTES) as blocks, LocalStore(blocks, CLOCK) as store:
        yield store


def run(*command: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command], cwd=cwd, capture_output=True, text=True, check=False, timeout=120
    )


def done(*command: str | Path, cwd: Path | None = None) -> str:
    ended = run(*command, cwd=cwd)
    assert ended.returncode == 0, ended
    return ended.stdout


def content(length: int, seed: int) -> bytes:
    block = sha256(str(seed).encode()).digest()
    return (block * (length // len(block) + 1))[:length]


def folder_of_files(path: Path) -> Path:
    path.mkdir()
    for number, size in enumerate(SIZES):
        (path / f"file {number}").write_bytes(content(size, number))
    return path


def test_a_folder_of_files_is_copied_and_is_the_same_after_another_mount(image: Path, tmp_path: Path) -> None:
    source = folder_of_files(tmp_path / "source")
    sums = done("sha256sum", *sorted(source.iterdir()), cwd=source).replace(f"{source}/", "")
    (tmp_path / "sums").write_text(sums)
    with served(image, tmp_path / "mnt") as store:
        done("cp", *sorted(source.iterdir()), store.folder)
        assert run("sha256sum", "--check", tmp_path / "sums", cwd=store.folder).returncode == 0
        assert store.end() == ""
        assert not list(store.folder.iterdir()), "nothing is mounted any more"
    with served(image, tmp_path / "mnt") as store:
        done("sha256sum", "--check", tmp_path / "sums", cwd=store.folder)
        done("cmp", source / "file 7", store.folder / "file 7")
        assert sorted(done("ls", store.folder).splitlines()) == sorted(path.name for path in source.iterdir())
        done("umount", store.folder)
        assert store.ended() == ""


def test_files_are_changed_in_the_ways_that_programs_do(image: Path, tmp_path: Path) -> None:
    with served(image, tmp_path / "mnt") as store:
        there = store.folder
        with (there / "log").open("ab") as log:
            log.write(b"one\n")
        done("sh", "-c", "echo two >> log; echo three >> log", cwd=there)
        assert (there / "log").read_text() == "one\ntwo\nthree\n"
        done("truncate", "--size=8", there / "log")
        done("truncate", "--size=20", there / "log")
        assert (there / "log").read_bytes() == b"one\ntwo\n" + bytes(12)
        (there / "log").write_text("new")
        assert (there / "log").read_text() == "new"

        (there / "other").write_text("other")
        for flag in (RENAME_NOREPLACE, RENAME_EXCHANGE):
            assert ctypes.CDLL(None).renameat2(-1, bytes(there / "log"), -1, bytes(there / "other"), flag) == -1
        assert (there / "log").read_text() == "new"
        assert (there / "other").read_text() == "other"
        done("mv", there / "log", there / "other")
        assert (there / "other").read_text() == "new"
        assert done("ls", there) == "other\n"

        done("touch", "--date=2020-02-02 20:20:20.123456789 UTC", there / "other")
        assert (there / "other").stat().st_mtime_ns == 1_580_674_820_123_456_789
        before_ns = CLOCK.wall().timestamp() * 1e9
        done("dd", "if=/dev/zero", f"of={there / 'other'}", "bs=4k", "count=3", "seek=5", "conv=notrunc,fsync")
        status = (there / "other").stat()
        assert status.st_mtime_ns >= before_ns - 1e7
        assert (status.st_size, status.st_mode & 0o777) == (8 * 4096, 0o644)

        with (there / "other").open("rb") as held:
            (there / "other").unlink()
            assert held.read(3) == b"new"
        assert done("ls", there) == ""
        for refused in (("ln", "-s", "other", "link"), ("touch", "n" * 256), ("mkdir", "n" * 255)):
            ended = run(*refused, cwd=there)
            assert ended.returncode == 1, ended
        assert store.end() == ""


def test_folders_are_cloned_copied_packed_moved_and_removed(image: Path, tmp_path: Path) -> None:
    git = ("git", "-c", "user.name=name", "-c", "user.email=address", "-c", "init.defaultBranch=main")
    source = tmp_path / "source"
    done(*git, "init", "--quiet", source)
    for folder in (source, source / "one", source / "one" / "two"):
        folder.mkdir(exist_ok=True)
        for number, size in enumerate(SIZES[:6]):
            (folder / f"file {number}").write_bytes(content(size, number))
    done(*git, "add", ".", cwd=source)
    done(*git, "commit", "--quiet", "--message", "first", cwd=source)
    with served(image, tmp_path / "mnt") as store:
        there = store.folder
        done(*git, "clone", "--quiet", source, there / "clone")
        (there / "clone" / "one" / "file 1").write_text("changed")
        done(*git, "commit", "--quiet", "--all", "--message", "second", cwd=there / "clone")
        done(*git, "fsck", "--strict", cwd=there / "clone")
        done("cp", "-r", there / "clone", there / "copy")
        done("tar", "cf", there / "packed.tar", "clone", cwd=there)
        (there / "moved").mkdir()
        done("tar", "xf", there / "packed.tar", "-C", there / "moved")
        done("mv", there / "moved" / "clone" / "one", there / "moved" / "clone" / "another")
        done("diff", "--recursive", there / "clone" / "one", there / "moved" / "clone" / "another")
        done("diff", "--recursive", there / "clone", there / "copy")
        assert "Directory not empty" in run("rmdir", there / "moved").stderr
        done("rm", "-r", there / "clone", there / "moved")
        assert store.end() == ""
    with served(image, tmp_path / "mnt") as store:
        assert done("ls", store.folder).split() == ["copy", "packed.tar"]
        assert done(*git, "log", "--format=%s", cwd=store.folder / "copy").split() == ["second", "first"]
        done(*git, "fsck", "--strict", cwd=store.folder / "copy")
        assert store.end() == ""


def append(path: Path, lines: list[bytes]) -> None:
    held = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for line in lines:
        os.write(held, line)
    os.close(held)


def fill_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.execute("create table rows (number, content)")
        for number in range(20):
            with database:
                database.execute("insert into rows values (?, ?)", (number, content(9000, number)))
        assert database.execute("pragma integrity_check").fetchall() == [("ok",)]


def come_and_go(folder: Path, kind: int) -> None:
    held = os.open(folder, os.O_RDONLY)
    for number in range(40):
        path = folder / f"{kind} {number}"
        path.write_bytes(content(number, kind))
        path.rename(folder / f"{kind} renamed")
        assert (folder / f"{kind} renamed").read_bytes() == content(number, kind)
        os.statvfs(folder)
        os.fsync(held)
        (folder / f"{kind} renamed").unlink()
    os.close(held)


def change_in_memory(path: Path) -> None:
    path.write_bytes(content(MIB, 6))
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        mapped[12345:12350] = b"there"
        mapped.flush()
    os.truncate(path, 20_000)
    os.truncate(path, 30_000)
    assert path.read_bytes() == content(12345, 6) + b"there" + content(20_000, 6)[12350:] + bytes(10_000)


def replace_while_open(folder: Path) -> None:
    for number in range(20):
        (folder / "open").write_bytes(b"old")
        with (folder / "open").open("r+b") as held:
            (folder / "new").write_bytes(b"new")
            if number % 2:
                (folder / "open").unlink()
            (folder / "new").rename(folder / "open")
            held.seek(0, os.SEEK_END)
            held.write(b"er")
            held.flush()
            held.seek(0)
            assert held.read() == b"older"
        assert (folder / "open").read_bytes() == b"new"


def test_several_programs_at_once_do_not_disturb_each_other(image: Path, tmp_path: Path) -> None:
    job = ("--name=job", "--numjobs=3", "--size=2m", "--rw=randrw", "--bsrange=512-64k", "--verify=crc32c", "--fsync=8")
    lines = [[b"%d of %d\n" % (number, writer) for number in range(100)] for writer in range(3)]
    with served(image, tmp_path / "mnt") as store, ThreadPoolExecutor(12) as pool:
        there = store.folder
        work: list[Future[Any]] = [
            pool.submit(done, "fio", *job, "--verify_fatal=1", "--fallocate=none", "--output=/dev/null", cwd=there),
            pool.submit(fill_database, there / "database"),
            pool.submit(change_in_memory, there / "mapped"),
            pool.submit(replace_while_open, there),
            *(pool.submit(append, there / "log", some) for some in lines),
            *(pool.submit(come_and_go, there, kind) for kind in range(3)),
        ]
        for each in work:
            each.result()
        assert sorted((there / "log").read_bytes().splitlines(keepends=True)) == sorted(chain(*lines))
        assert not list(there.glob(".fuse_hidden*"))
        assert store.end() == ""
    with opened(image) as again:
        report = again.scrub()
        assert report.is_clean
        assert (report.unreadable_sectors, report.corrected_sectors, report.protected_groups) == (0, 0, 0)


def test_a_full_drive_is_no_space_left_and_what_was_written_stays(image: Path, tmp_path: Path) -> None:
    with served(image, tmp_path / "mnt") as store:
        (store.folder / "kept").write_bytes(content(MIB, 1))
        fresh = os.statvfs(store.folder)
        assert 0.8 * DRIVE_BYTES < fresh.f_blocks * fresh.f_frsize < DRIVE_BYTES
        assert fresh.f_bavail < fresh.f_bfree < fresh.f_blocks
        ended = run("dd", "if=/dev/zero", f"of={store.folder / 'full'}", "bs=1M", "count=80")
        assert "No space left on device" in ended.stderr
        assert os.statvfs(store.folder).f_bavail < 300
        assert (store.folder / "kept").read_bytes() == content(MIB, 1)
        (store.folder / "full").unlink()
        assert os.statvfs(store.folder).f_bfree == fresh.f_bfree
        (store.folder / "again").write_bytes(content(MIB, 2))
        assert store.end() == ""


@pytest.mark.parametrize(
    "options",
    [
        ("--ioengine=psync", "--rw=randrw", "--bsrange=512-64k", "--fsync=64"),
        ("--ioengine=libaio", "--rw=randwrite", "--bs=4k", "--iodepth=8", "--direct=1"),
        ("--ioengine=psync", "--rw=write", "--bs=1m", "--sync=1"),
    ],
    ids=["psync", "libaio", "sync"],
)
def test_fio_reads_back_what_it_wrote(image: Path, tmp_path: Path, options: tuple[str, ...]) -> None:
    job = ("--name=job", "--size=8m", "--verify=crc32c", "--randseed=1", "--verify_fatal=1", "--fallocate=none")
    with served(image, tmp_path / "mnt") as store:
        report = tmp_path / "fio.json"
        done(
            "fio",
            *job,
            *options,
            f"--directory={store.folder}",
            "--output-format=json",
            f"--output={report}",
            cwd=tmp_path,
        )
        found: dict[str, Any] = json.loads(report.read_text()[report.read_text().index("{") :])["jobs"][0]
        assert found["error"] == 0
        assert found["write"]["io_bytes"] > MIB
        assert found["read"]["io_bytes"] >= MIB
        assert store.end() == ""
    with opened(image) as again:
        assert not again.scrub().unrecoverable


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_unmounts_also_what_is_in_use(image: Path, tmp_path: Path, how: signal.Signals) -> None:
    with served(image, tmp_path / "mnt") as store:
        held = os.open(store.folder / "open", os.O_CREAT | os.O_RDWR)
        try:
            os.write(held, content(MIB, 3))
            assert store.end(how) == ""
            assert not store.folder.is_mount()
            with pytest.raises(OSError, match=r"not connected|abort"):
                os.pread(held, 1, 2 * MIB)
        finally:
            with suppress(OSError):
                os.close(held)
        require_mount_point(store.folder)
    with opened(image) as again:
        assert again.open("open").read(0, 2 * MIB) == content(MIB, 3)


def test_a_killed_mount_loses_nothing_that_was_synced_and_the_next_cleans_up(image: Path, tmp_path: Path) -> None:
    writing = ("fio", "--name=job", "--size=8m", "--rw=randwrite", "--bs=4k", "--fsync=1", "--time_based")
    # Nothing is written because nobody asks for anything: what is there was asked for.
    with served(image, tmp_path / "mnt", idle_s=3600) as store:
        done("dd", "if=/dev/zero", f"of={store.folder / 'synced'}", "bs=1M", "count=4", "conv=fsync")
        with (store.folder / "synced").open("r+b", buffering=0) as file:
            file.seek(12345)
            file.write(content(54321, 4))
            os.fsync(file.fileno())
        fio = subprocess.Popen(
            [*writing, "--runtime=600", f"--directory={store.folder}", "--output=/dev/null"], cwd=tmp_path
        )
        while not (store.folder / "job.0.0").exists() or not (store.folder / "job.0.0").stat().st_size:
            assert fio.poll() is None
        store.kill()
        fio.kill()
        fio.wait()
        with pytest.raises(OSError, match="not connected"):
            os.statvfs(store.folder)
        with served(image, tmp_path / "mnt") as again:
            found = (again.folder / "synced").read_bytes()
            assert found == bytes(12345) + content(54321, 4) + bytes(4 * MIB - 12345 - 54321)
            assert again.end() == ""
    with opened(image) as later:
        assert not later.scrub().unrecoverable
        assert all(later.stat(name).unprotected_groups == 0 for name in later.names())


def test_a_mount_whose_store_another_has_taken_ends(image: Path, tmp_path: Path) -> None:
    with served(image, tmp_path / "mnt", idle_s=3600) as store:
        with FileBlocks(image, DRIVE_BYTES) as blocks, LocalStore(blocks, CLOCK, take_over=True):
            ended = run("dd", "if=/dev/zero", f"of={store.folder / 'file'}", "bs=4k", "count=1", "conv=fsync")
            assert "Input/output error" in ended.stderr
            said = store.ended()
        assert "the store was taken over" in said
        assert "ended: " in said
        assert not store.folder.is_mount()
    with opened(image) as later:
        assert later.names() == []


def spoil(rackd: RunningRackd, places: list[int]) -> None:
    control = rackd.connect()
    for place in places:
        fault = {"kind": "media_error", "lba": place // 512, "sectors": 8, "mode": "until_rewritten"}
        control.request("fault", Deadline.after(CLOCK, 10), drive="d01", fault=fault)
    control.close()


def test_sectors_that_cannot_be_read_are_decoded_and_too_many_of_them_are_an_error(tmp_path: Path) -> None:
    group = LAYOUT.k * 4096
    data = content(3 * group, 5)
    with running_rackd(tmp_path) as rackd:
        export = NbdExport(rackd.nbd, "drive.d01", DRIVE_BYTES)
        with minted(export) as permit, open_blocks(permit, CLOCK) as blocks:
            format_drive(blocks, LAYOUT)
            with LocalStore(blocks, CLOCK) as store:
                store.create("file").write(0, data)
                store.flush()
                places = [store.places("file", number) for number in range(3)]
        spoil(rackd, places[0][: LAYOUT.m] + places[1][7 : 7 + LAYOUT.m + 1])
        with served(export, tmp_path / "mnt") as mounted:
            file = mounted.folder / "file"
            with file.open("rb", buffering=0) as read:
                assert os.pread(read.fileno(), group, 0) == data[:group]
                assert os.pread(read.fileno(), group, 2 * group) == data[2 * group :]
            copy = tmp_path / "copy"
            ended = run("cp", file, copy)
            assert "Input/output error" in ended.stderr
            assert data.startswith(copy.read_bytes())
            said = mounted.end()
            assert "read of /file" in said
            assert "group 1" in said


def test_what_is_no_mount_point_is_refused_in_a_sentence(image: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="is not there; make the folder"):
        require_mount_point(tmp_path / "none")
    with pytest.raises(BadInput, match=r"is not empty, it has drive\.img"):
        require_mount_point(tmp_path)
    with pytest.raises(BadInput, match="cannot be used: Not a directory"):
        require_mount_point(image)
    with served(image, tmp_path / "mnt") as store, pytest.raises(BadInput, match="is mounted at"):
        require_mount_point(store.folder)
    unmount(store.folder)
    unmount(store.folder)
    with pytest.raises(NotSupported, match="there is no /dev/fuses"):
        require_mount_point(tmp_path / "mnt", device=Path("/dev/fuses"))
