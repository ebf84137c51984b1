"""A store as a file system asks for it: numbers of errors, times, room, and what is done when nobody asks."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from typing import Any

import pytest

from rackloop.abilities.blocks import IoFailed
from rackloop.clock import VirtualClock
from rackloop_models.local_erasure import SECTOR_BYTES, Layout, LocalStore, StoreInUse, format_drive
from rackloop_models.local_erasure._file_system import LEFT_BY_LIBFUSE, FileSystem
from rackloop_models.local_erasure._idle import IdleWork
from tests.memory_blocks import MemoryBlocks

LAYOUT = Layout(4, 2)


class FailingBlocks(MemoryBlocks):
    """Blocks that read no sector of ``bad``, and nothing at all once they are ``gone``."""

    def __init__(self, size_bytes: int) -> None:
        super().__init__(size_bytes)
        self.bad: set[int] = set()
        self.gone = False

    def read(self, offset: int, length: int) -> bytes:
        if self.gone or any(offset <= place < offset + length for place in self.bad):
            raise IoFailed("it cannot be read", errno.EIO)
        return super().read(offset, length)

    def write(self, offset: int, data: bytes) -> None:
        if self.gone:
            raise IoFailed("it is gone", errno.EIO)
        self.bad -= set(range(offset, offset + len(data), SECTOR_BYTES))
        super().write(offset, data)


class Mounted:
    """A store on blocks in memory, as a file system, and what it told."""

    def __init__(self) -> None:
        self.blocks = FailingBlocks(1 << 20)
        format_drive(self.blocks, LAYOUT, files=8)
        self.clock = VirtualClock()
        self.store = LocalStore(self.blocks, self.clock)
        self.told: list[tuple[str, Exception]] = []
        self.files = FileSystem(self.store, self.clock, on_trouble=lambda text, error: self.told.append((text, error)))

    def write(self, name: str, data: bytes, offset: int = 0) -> int:
        handle = self.files.create(f"/{name}", 0o600, os.O_WRONLY)
        assert self.files.write(f"/{name}", data, offset, handle) == len(data)
        return handle

    def refused(self, number: int, call: Callable[..., Any], *arguments: object) -> None:
        with pytest.raises(OSError, match=r"^\[Errno") as failed:
            call(*arguments)
        assert failed.value.errno == number


@pytest.fixture
def mounted() -> Mounted:
    return Mounted()


def test_each_refusal_has_its_number_and_is_nothing_to_tell(mounted: Mounted) -> None:
    files = mounted.files
    handle = mounted.write("there", b"x")
    mounted.refused(errno.ENOENT, files.getattr, "/none")
    mounted.refused(errno.ENOENT, files.open, "/none", os.O_RDONLY)
    mounted.refused(errno.ENOENT, files.unlink, "/none")
    mounted.refused(errno.ENOENT, files.rename, "/none", "/other")
    mounted.refused(errno.ENOENT, files.getattr, "/folder/none")
    mounted.refused(errno.EEXIST, files.create, "/there", 0o600, os.O_EXCL)
    mounted.refused(errno.EEXIST, files.rename, "/there", "/there", 1)
    mounted.refused(errno.EINVAL, files.rename, "/there", "/other", 2)
    mounted.refused(errno.ENAMETOOLONG, files.create, f"/{'é' * 128}", 0o600, 0)
    mounted.refused(errno.EINVAL, files.create, "/\udcff", 0o600, 0)
    mounted.refused(errno.EISDIR, files.unlink, "/")
    files.mkdir("/folder", 0o700)
    files.create("/folder/file", 0o600, 0)
    mounted.refused(errno.ENOENT, files.create, "/none/file", 0o600, 0)
    mounted.refused(errno.EEXIST, files.mkdir, "/folder", 0o700)
    mounted.refused(errno.EEXIST, files.mkdir, "/there", 0o700)
    mounted.refused(errno.EEXIST, files.rename, "/there", "/folder", 1)
    mounted.refused(errno.ENOTEMPTY, files.rmdir, "/folder")
    mounted.refused(errno.ENOENT, files.rmdir, "/there")
    mounted.refused(errno.EINVAL, files.rename, "/folder", "/folder/folder")
    mounted.refused(errno.ENAMETOOLONG, files.mkdir, f"/{'x' * 255}", 0o700)
    mounted.refused(errno.ENAMETOOLONG, files.rename, "/folder", f"/{'x' * 252}")
    mounted.refused(errno.ENOSPC, files.write, "/there", bytes(2 << 20), 0, handle)
    for call, arguments in (
        (files.symlink, ("/there",)),
        (files.link, ("/there",)),
        (files.chmod, (0o755,)),
        (files.chown, (os.getuid() + 1, -1)),
    ):
        mounted.refused(errno.EPERM, call, "/there", *arguments)
    assert not mounted.told
    assert files.read("/there", 10, 0, handle) == b"x"


def test_folders_have_what_lies_in_them_and_no_more(mounted: Mounted) -> None:
    files = mounted.files
    for folder in ("/one", "/one/two", "/one-more"):
        assert files.mkdir(folder, 0o755) == 0
    mounted.write("top", b"x")
    mounted.write("one/file", b"in one")
    mounted.write("one/two/file", b"in two")
    assert sorted(files.readdir("/", 0)) == [".", "..", "one", "one-more", "top"]
    assert sorted(files.readdir("/one", 0)) == [".", "..", "file", "two"]
    assert stat.S_ISDIR(files.getattr("/one/two")["st_mode"])
    assert stat.S_ISREG(files.getattr("/one/file")["st_mode"])
    assert files.chmod("/one", 0o755) == files.utimens("/one", (1, 2)) == 0
    files.rename("/one", "/one-more/one")
    assert sorted(files.readdir("/one-more/one/two", 0)) == [".", "..", "file"]
    files.unlink("/one-more/one/two/file")
    assert files.rmdir("/one-more/one/two") == 0
    mounted.write("one-more/one/.fuse_hidden0001", b"x")
    files.remove_leftovers()
    assert sorted(files.readdir("/one-more/one", 0)) == [".", "..", "file"]


def test_what_is_had_already_may_be_set(mounted: Mounted) -> None:
    mounted.write("file", b"x")
    assert mounted.files.chmod("/file", stat.S_IFREG | 0o644) == 0
    assert mounted.files.chmod("/", 0o755) == 0
    assert mounted.files.chown("/file", os.getuid(), 0xFFFFFFFF) == 0


def test_sectors_beyond_recovery_and_a_drive_that_is_gone_are_input_output_errors_and_told(mounted: Mounted) -> None:
    mounted.write("file", bytes(4 * SECTOR_BYTES))
    mounted.store.flush()
    mounted.blocks.bad = set(mounted.store.places("file", 0)[:3])
    mounted.store.close()
    mounted.store = LocalStore(mounted.blocks, mounted.clock)
    mounted.files.store = mounted.store
    handle = mounted.files.open("/file", os.O_RDONLY)
    mounted.refused(errno.EIO, mounted.files.read, "/file", SECTOR_BYTES, 0, handle)
    assert "read of /file: file 'file', group 0" in mounted.told[0][0]
    mounted.blocks.gone = True
    mounted.refused(errno.EIO, mounted.files.fsync, "/file", 0, mounted.files.create("/new", 0o600, 0))
    assert len(mounted.told) == 2


def test_an_error_nobody_foresaw_is_an_input_output_error_too(mounted: Mounted) -> None:
    mounted.refused(errno.EIO, mounted.files.read, "/file", 1, 0, 12345)
    assert mounted.told[0][0] == "read of /file: KeyError: 12345"


def test_another_who_takes_the_store_is_told_as_that(mounted: Mounted) -> None:
    handle = mounted.write("file", b"x")
    LocalStore(mounted.blocks, mounted.clock, take_over=True)
    mounted.refused(errno.EIO, mounted.files.fsync, "/file", 0, handle)
    assert isinstance(mounted.told[0][1], StoreInUse)


def test_times_are_those_of_the_last_change_or_what_they_are_set_to(mounted: Mounted) -> None:
    files, clock = mounted.files, mounted.clock
    handle = mounted.write("file", b"x")
    clock.advance(5)
    files.write("/file", b"y", 0, handle)
    changed_ns = files.getattr("/file")["st_mtime"]
    assert changed_ns == round(clock.wall().timestamp() * 1e9)
    files.utimens("/file", (7, (1 << 30) - 2))
    assert files.getattr("/file")["st_mtime"] == changed_ns
    files.utimens("/file", (7, 123))
    assert files.getattr("/file")["st_mtime"] == 123
    files.utimens("/file", None)
    assert files.getattr("/file")["st_mtime"] == changed_ns
    files.utimens("/file", (7, 5))
    files.utimens("/file", (7, (1 << 30) - 1))
    assert files.getattr("/file")["st_mtime"] == changed_ns


@pytest.mark.parametrize("year", [-3000, 1600, 2300, 200_000])
def test_a_time_that_no_page_has_room_for_keeps_nothing_from_the_drive(mounted: Mounted, year: int) -> None:
    files = mounted.files
    mounted.write("file", b"x")
    handle = mounted.write("other", b"y")
    modified_ns = round((year - 1970) * 365.2425 * 86_400) * 10**9
    files.utimens("/file", (modified_ns, modified_ns))
    assert files.fsync("/other", 0, handle) == 0
    assert abs(files.getattr("/file")["st_mtime"]) in {(1 << 63) - 1, 1 << 63}
    assert not mounted.told


def test_opening_may_empty_a_file_and_making_one_that_is_there_opens_it(mounted: Mounted) -> None:
    files = mounted.files
    mounted.write("file", b"content")
    handle = files.create("/file", 0o600, os.O_RDWR)
    assert files.read("/file", 100, 3, handle) == b"tent"
    files.open("/file", os.O_WRONLY | os.O_TRUNC)
    assert files.getattr("/file")["st_size"] == 0
    files.truncate("/file", 5)
    assert files.read("/file", 100, 0, handle) == bytes(5)
    assert files.release("/file", handle) == 0
    mounted.refused(errno.EIO, files.read, "/file", 1, 0, handle)


def test_room_is_counted_in_sectors_and_offered_without_redundancy(mounted: Mounted) -> None:
    empty = mounted.files.statfs("/")
    assert empty["f_bavail"] == empty["f_bfree"] * 4 // 6
    assert empty["f_blocks"] == empty["f_bfree"]
    assert empty["f_files"] == empty["f_ffree"] == empty["f_favail"] >= 8
    mounted.write("file", bytes(5 * SECTOR_BYTES))
    mounted.store.flush()
    full = mounted.files.statfs("/")
    assert full["f_ffree"] == empty["f_ffree"] - 1
    mounted.files.mkdir("/folder", 0)
    assert mounted.files.statfs("/")["f_favail"] == empty["f_ffree"] - 2
    mounted.files.rmdir("/folder")
    assert mounted.files.statfs("/")["f_ffree"] == empty["f_ffree"] - 1
    assert full["f_blocks"] == empty["f_blocks"]
    assert empty["f_bfree"] - full["f_bfree"] == 5 + 2 * LAYOUT.m
    assert mounted.files.getattr("/file")["st_blocks"] == (5 + 2 * LAYOUT.m) * 8


def test_leftovers_of_a_killed_mount_are_removed_and_nothing_else(mounted: Mounted) -> None:
    for name in ("file", f"{LEFT_BY_LIBFUSE}0001", f"{LEFT_BY_LIBFUSE}0002"):
        mounted.write(name, b"x")
    mounted.files.remove_leftovers()
    assert list(mounted.files.readdir("/", 0)) == [".", "..", "file"]
    assert mounted.files.fsyncdir("/", 0, 0) == 0


def test_redundancy_follows_when_nobody_asks_and_then_all_is_written(mounted: Mounted) -> None:
    files, clock = mounted.files, mounted.clock
    work = IdleWork(files, idle_s=0.5)
    assert not work.step(), "nothing was written"
    handle = mounted.write("file", bytes(range(256)) * 16 * 4 * 6)
    files.fsync("/file", 0, handle)
    mounted.store.flush()
    for group in range(6):
        files.write("/file", b"!", group * 4 * SECTOR_BYTES, handle)
    files.fsync("/file", 0, handle)
    assert mounted.store.stat("file").unprotected_groups == 6

    clock.advance(0.4)
    assert not work.step()
    assert mounted.store.stat("file").unprotected_groups == 6, "somebody asked not long ago"
    clock.advance(0.2)
    assert work.step(), "a few groups at a time"
    assert 0 < mounted.store.stat("file").unprotected_groups < 6
    files.getattr("/file")
    assert not work.step(), "somebody asked again"
    clock.advance(1)
    while work.step():
        pass
    assert mounted.store.stat("file").unprotected_groups == 0
    assert not files.is_changed
    commits = mounted.store.statistics.commits
    assert not work.step()
    assert mounted.store.statistics.commits == commits, "there was nothing left to do"


def test_what_is_only_in_memory_is_written_when_nobody_asks(mounted: Mounted) -> None:
    mounted.write("file", b"only in memory")
    mounted.clock.advance(1)
    IdleWork(mounted.files).step()
    with LocalStore(mounted.blocks, mounted.clock, take_over=True) as other:
        assert other.open("file").read(0, 100) == b"only in memory"


def test_names_are_on_the_drive_after_the_folder_was_synced(mounted: Mounted) -> None:
    mounted.write("file", b"content")
    assert mounted.files.fsyncdir("/", 0, 0) == 0
    mounted.files.unlink("/file")
    with LocalStore(mounted.blocks, mounted.clock, take_over=True) as other:
        assert other.open("file").read(0, 100) == b"content"
        other.remove("file")
    mounted.store = LocalStore(mounted.blocks, mounted.clock)
    mounted.files.store = mounted.store
    assert mounted.files.fsyncdir("/", 0, 0) == 0, "there is no file"


def test_what_could_not_be_written_in_the_background_is_tried_again(mounted: Mounted) -> None:
    mounted.write("file", b"only in memory")
    mounted.clock.advance(1)
    work = IdleWork(mounted.files)
    mounted.blocks.gone = True
    with pytest.raises(IoFailed):
        work.step()
    mounted.blocks.gone = False
    work.step()
    with LocalStore(mounted.blocks, mounted.clock, take_over=True) as other:
        assert other.open("file").read(0, 100) == b"only in memory"


def test_what_waited_for_the_background_is_written_the_next_time(mounted: Mounted) -> None:
    class Waiting:
        """A file whose writer had to wait until all was flushed."""

        def write(self, offset: int, data: bytes) -> None:
            files.is_changed = False
            file.write(offset, data)

    files = mounted.files
    handle = mounted.write("file", b"x")
    file = mounted.store.open("file")
    files._held[handle] = Waiting()  # type: ignore[assignment]
    files.write("/file", b"late", 0, handle)
    mounted.clock.advance(1)
    IdleWork(files).step()
    with LocalStore(mounted.blocks, mounted.clock, take_over=True) as other:
        assert other.open("file").read(0, 100) == b"late"


def test_redundancy_does_not_wait_for_ever_for_those_who_never_stop(mounted: Mounted) -> None:
    files, clock = mounted.files, mounted.clock
    work = IdleWork(files, idle_s=0.5)
    handle = mounted.write("file", bytes(6 * 4 * SECTOR_BYTES))
    mounted.store.flush()
    for group in range(6):
        files.write("/file", b"!", group * 4 * SECTOR_BYTES, handle)
    left = []
    for _ in range(60):
        files.fsync("/file", 0, handle)
        clock.advance(0.2)
        assert not work.step()
        left.append(mounted.store.stat("file").unprotected_groups)
    assert left[40] == 6
    assert left[-1] == 0


def test_what_goes_wrong_in_the_background_is_the_callers_to_tell(mounted: Mounted) -> None:
    mounted.write("file", b"x")
    LocalStore(mounted.blocks, mounted.clock, take_over=True)
    mounted.clock.advance(1)
    with pytest.raises(StoreInUse):
        IdleWork(mounted.files).step()
