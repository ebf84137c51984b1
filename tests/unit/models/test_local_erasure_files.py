"""Files of a local erasure-coded store: names, bytes, holes, sizes, room."""

from __future__ import annotations

import errno

import pytest

from rackloop.abilities.blocks import IoFailed
from rackloop.clock import VirtualClock
from rackloop.errors import BadInput
from rackloop_models.local_erasure import (
    FileExists,
    FolderNotEmpty,
    Layout,
    LocalStore,
    NoRoom,
    NoSuchFile,
    StoredFile,
    format_drive,
)
from tests.memory_blocks import MemoryBlocks

LAYOUT = Layout(8, 2)
SECTOR = 4096


def opened(size_bytes: int = 4 << 20, *, files: int = 8, layout: Layout = LAYOUT) -> tuple[MemoryBlocks, LocalStore]:
    drive = MemoryBlocks(size_bytes)
    format_drive(drive, layout, files=files)
    return drive, LocalStore(drive, VirtualClock())


def everything(file: StoredFile) -> bytes:
    return file.read(0, file.size_bytes + 1)


def test_what_is_written_is_read_also_after_closing() -> None:
    drive, store = opened()
    content = bytes(range(256)) * 500
    with store:
        store.create("a").write(0, content)
        assert everything(store.open("a")) == content
    with LocalStore(drive, VirtualClock()) as again:
        assert again.names() == ["a"]
        assert everything(again.open("a")) == content


def test_groups_lie_as_the_paper_says_and_the_last_is_shortened() -> None:
    _, store = opened()
    with store:
        store.create("a").write(0, bytes(19 * SECTOR))
        store.flush()
        places = [store.places("a", group) for group in range(3)]
        assert [len(group) for group in places] == [10, 10, 5]
        for group in places:
            assert group == list(range(group[0], group[0] + len(group) * SECTOR, SECTOR))
        # ceil(x / k) * m redundancy sectors, eq. 2.
        assert store.stat("a").sectors == 19 + 3 * 2
        assert store.stat("a").groups == 3


def test_a_hole_reads_as_zeros_and_takes_no_room() -> None:
    _, store = opened()
    with store:
        file = store.create("a")
        file.write(100 * SECTOR + 5, b"end")
        assert file.size_bytes == 100 * SECTOR + 8
        assert file.read(0, 10) == bytes(10)
        assert file.read(100 * SECTOR, 100) == b"\0\0\0\0\0end"
        assert store.stat("a").groups == 1
        assert store.places("a", 0) == []


def test_what_was_cut_does_not_come_back_where_the_file_grows_past_it() -> None:
    drive, store = opened(16 << 20, layout=Layout(1, 1))
    with store:
        file = store.create("a")
        # Groups enough for a page of their own, which the hole that follows does without.
        file.write(0, b"x" * (900 * SECTOR))
        store.flush()
        file.truncate(SECTOR)
        file.write(1500 * SECTOR, b"end")
    with LocalStore(drive, VirtualClock()) as again:
        assert everything(again.open("a")) == b"x" * SECTOR + bytes(1499 * SECTOR) + b"end"
        assert again.stat("a").groups == 2


def test_one_write_and_one_cut_may_change_more_pages_than_the_journal_holds() -> None:
    drive, store = opened(80 << 20, files=80, layout=Layout(1, 1, replicas=1))
    content = bytes(range(256)) * (8000 * SECTOR // 256)
    with store:
        names = [f"f{number}" for number in range(70)]
        for name in names:
            store.create(name).write(0, name.encode())
            if name == "f20":
                store.flush()
        store.create("long").write(0, content)
    with LocalStore(drive, VirtualClock()) as again:
        assert again.names() == sorted([*names, "long"])
        assert all(everything(again.open(name)) == name.encode() for name in names)
        assert everything(again.open("long")) == content
        for name in names:
            again.open(name).write(0, b"n")
        again.open("long").truncate(5)
    with LocalStore(drive, VirtualClock()) as third:
        assert everything(third.open("long")) == content[:5]
        assert all(everything(third.open(name)) == b"n" + name.encode()[1:] for name in names)


def test_a_file_that_was_cut_and_grows_again_has_zeros_there() -> None:
    _, store = opened()
    with store:
        file = store.create("a")
        file.write(0, b"x" * (12 * SECTOR))
        store.flush()
        file.truncate(SECTOR + 10)
        file.truncate(10 * SECTOR)
        assert everything(file) == b"x" * (SECTOR + 10) + bytes(9 * SECTOR - 10)


def test_reads_end_where_the_file_does() -> None:
    _, store = opened()
    with store:
        file = store.create("a")
        file.write(0, b"abc")
        assert file.read(1, 100) == b"bc"
        assert file.read(3, 1) == b""
        assert file.read(1 << 40, 1) == b""
        file.write(3, b"")
        assert file.size_bytes == 3


def test_renaming_over_a_file_replaces_it() -> None:
    _, store = opened()
    with store:
        old, new = store.create("old"), store.create("new")
        old.write(0, b"old")
        new.write(0, b"new")
        store.rename("new", "old")
        assert store.names() == ["old"]
        assert new.name == "old"
        assert everything(store.open("old")) == b"new"
        with pytest.raises(NoSuchFile, match="was removed"):
            old.read(0, 1)


def test_a_removed_file_is_gone_for_those_who_have_it_open() -> None:
    _, store = opened()
    with store:
        file = store.create("a")
        file.write(0, b"abc")
        store.remove("a")
        with pytest.raises(NoSuchFile, match="'a' was removed"):
            file.read(0, 3)
        with pytest.raises(NoSuchFile, match="no file is named 'a'"):
            store.open("a")


def test_removing_gives_the_room_back() -> None:
    _, store = opened()
    with store:
        free = store.free_bytes()
        store.create("a").write(0, bytes(50 * SECTOR))
        store.flush()
        assert store.free_bytes() == free - (50 + 7 * 2) * SECTOR
        store.remove("a")
        assert store.free_bytes() == free


def test_no_room_leaves_everything_as_it_was() -> None:
    _, store = opened(1 << 20)
    with store:
        file = store.create("a")
        file.write(0, b"x" * (20 * SECTOR))
        before, free = everything(file), store.free_bytes()
        with pytest.raises(NoRoom, match="that follow each other are free"):
            file.write(19 * SECTOR, bytes(1 << 20))
        assert everything(file) == before
        assert store.free_bytes() == free
        file.write(20 * SECTOR, b"y")
        assert everything(file) == before + b"y"


def test_room_of_a_group_that_was_cut_is_given_away_once_the_drive_knows() -> None:
    drive, store = opened(1 << 20)
    file = store.create("a")
    file.write(0, b"a" * (8 * SECTOR))
    rest = store.create("rest")
    for sectors in (8, 3, 1):
        with pytest.raises(NoRoom):  # noqa: PT012 - any of them may
            for _ in range(100):
                rest.write(-(-rest.size_bytes // (8 * SECTOR)) * 8 * SECTOR, b"r" * (sectors * SECTOR))
    store.flush()
    file.truncate(SECTOR)
    # What stays is the sector and two of redundancy: there is room for five and two.
    store.create("new").write(0, b"n" * (5 * SECTOR))
    # As after a power cut: nothing but what was put down.
    with LocalStore(drive, VirtualClock(), take_over=True) as again:
        assert everything(again.open("a")) == b"a" * SECTOR
        assert again.scrub().is_clean


def test_all_room_can_be_used_again_and_again() -> None:
    _, store = opened(1 << 20)
    with store:
        sectors = store.free_bytes() // SECTOR // 10 * 8
        for turn in range(5):
            store.create("a").write(0, bytes([turn]) * (sectors * SECTOR))
            assert everything(store.open("a")) == bytes([turn]) * (sectors * SECTOR)
            store.remove("a")


def test_files_beyond_the_pages_are_refused() -> None:
    _, store = opened(files=2)
    with store:
        pages = len(store.metadata_places())
        made = 0
        with pytest.raises(NoRoom, match="no page left to describe another file"):  # noqa: PT012 - any of them may
            for made in range(pages):
                store.create(f"f{made}")
        assert made >= 2
        store.remove("f0")
        store.create("again")


@pytest.mark.parametrize("name", ["", "/b", "b/", "b//c", "../b", "b/./c", "a\0b", "x" * 256, "\u00e4" * 128, "\udc80"])
def test_what_is_no_name_is_refused(name: str) -> None:
    _, store = opened()
    with store:
        store.create("a")
        with pytest.raises(BadInput, match="a file's name"):
            store.create(name)
        with pytest.raises(BadInput, match="a file's name"):
            store.rename("a", name)
        assert store.names() == ["a"]


def test_files_lie_in_folders_that_are_there() -> None:
    drive, store = opened(files=20)
    with store:
        with pytest.raises(NoSuchFile, match="no folder is named 'one'; make it first"):
            store.create("one/file")
        store.make_folder("one")
        store.make_folder("one/two")
        for folder in ("one", "one/two"):
            store.create(f"{folder}/file").write(0, folder.encode())
        store.create("top")
        for taken in ("one", "one/two", "one/file"):
            with pytest.raises(FileExists):
                store.make_folder(taken)
            with pytest.raises(FileExists):
                store.create(taken)
        for under in ("top/file", "one/file/file"):
            with pytest.raises(NoSuchFile, match="no folder"):
                store.create(under)
        for wrong in ("one", "one/", "one/two/"):
            with pytest.raises(NoSuchFile):
                store.open(wrong)
            with pytest.raises(NoSuchFile):
                store.remove(wrong)
        with pytest.raises(BadInput, match="1 to 254 bytes"):
            store.make_folder("x" * 255)
        store.make_folder("x" * 254)
    with LocalStore(drive, VirtualClock()) as again:
        assert again.names() == ["one/file", "one/two/file", "top"]
        assert again.folders() == ["one", "one/two", "x" * 254]
        assert everything(again.open("one/two/file")) == b"one/two"
        with pytest.raises(FolderNotEmpty, match="'one' is not empty"):
            again.remove_folder("one")
        again.remove("one/two/file")
        again.remove_folder("one/two")
        for gone in ("one/two", "", "top"):
            with pytest.raises(NoSuchFile, match="no folder is named"):
                again.remove_folder(gone)
        assert again.scrub().is_clean


def test_a_folder_is_renamed_with_all_that_is_in_it() -> None:
    drive, store = opened(files=90)
    with store:
        store.make_folder("old")
        store.make_folder("old/deep")
        store.make_folder("oldest")
        store.make_folder("full")
        store.make_folder("empty")
        store.create("full/file")
        for number in range(40):
            store.create(f"old/deep/{number:02}").write(0, b"%d" % number)
        held = store.open("old/deep/07")
        for refused, why in (
            ("full", "is not empty"),
            ("full/file", "there is a file"),
            ("old/deep/in", "into itself"),
            ("none/there", "no folder is named 'none'"),
            ("x" * 250, "a file's name"),
            ("", "a file's name"),
        ):
            with pytest.raises(BadInput, match=why):
                store.rename("old", refused)
        with pytest.raises(FileExists, match="there is a folder"):
            store.rename("full/file", "empty")
        store.rename("old", "old")
        assert len(store.folders()) == 5
        store.rename("old", "empty")
        assert held.name == "empty/deep/07"
    with LocalStore(drive, VirtualClock()) as again:
        assert again.folders() == ["empty", "empty/deep", "full", "oldest"]
        assert again.names() == [*(f"empty/deep/{number:02}" for number in range(40)), "full/file"]
        assert everything(again.open("empty/deep/07")) == b"7"


def test_a_name_is_given_once() -> None:
    _, store = opened()
    with store:
        store.create("\u00e4" * 127)
        with pytest.raises(FileExists, match="already"):
            store.create("\u00e4" * 127)


def test_a_place_before_the_start_is_refused() -> None:
    _, store = opened()
    with store:
        file = store.create("a")
        for wrong in (lambda: file.read(-1, 1), lambda: file.write(-1, b"x"), lambda: file.truncate(-1)):
            with pytest.raises(BadInput, match="0 or more"):
                wrong()
        with pytest.raises(BadInput, match="has 0 groups"):
            store.places("a", 0)


def test_a_store_that_could_not_be_closed_has_lost_nothing_and_is_closed_again() -> None:
    class Stuck(MemoryBlocks):
        is_stuck = False

        def flush(self) -> None:
            if self.is_stuck:
                raise IoFailed("nothing answers", errno.ENOTCONN)

    drive = Stuck(4 << 20)
    format_drive(drive, LAYOUT, files=8)
    store = LocalStore(drive, VirtualClock())
    file = store.create("a")
    file.write(0, b"abc")
    drive.is_stuck = True
    with pytest.raises(IoFailed):
        store.close()
    assert file.read(0, 3) == b"abc"
    drive.is_stuck = False
    store.close()
    with LocalStore(drive, VirtualClock()) as again:
        assert everything(again.open("a")) == b"abc"


def test_a_closed_store_does_nothing() -> None:
    _, store = opened()
    file = store.create("a")
    store.close()
    store.close()
    with pytest.raises(BadInput, match="closed"):
        file.read(0, 1)
    with pytest.raises(BadInput, match="closed"):
        store.names()
