"""Files and folders of a store against sets of names, whatever is made, renamed or removed, also by a power cut."""

from __future__ import annotations

from contextlib import suppress

import pytest

from rackloop.clock import VirtualClock
from rackloop.errors import BadInput
from rackloop.seed import Stream, stream
from rackloop_models.local_erasure import Layout, LocalStore, format_drive
from tests.memory_blocks import MemoryBlocks
from tests.unit.models.faulty_drive import PowerCut, VolatileDrive

Names = tuple[frozenset[str], frozenset[str]]


def changed(names: Names, kind: str, one: str, other: str) -> Names | None:
    """The names of files and of folders after something was done, None where it is to be refused."""
    files, folders = names
    taken = files | folders

    def can_be(name: str) -> bool:
        return "/" not in name or name.rpartition("/")[0] in folders

    def within(folder: str) -> set[str]:
        return {name for name in taken if name.startswith(f"{folder}/")}

    if kind == "create":
        return (files | {one}, folders) if can_be(one) and one not in taken else None
    if kind == "make":
        return (files, folders | {one}) if can_be(one) and one not in taken else None
    if kind == "remove":
        return (files - {one}, folders) if one in files else None
    if kind == "remove folder":
        return (files, folders - {one}) if one in folders and not within(one) else None
    if one not in taken or not can_be(other):
        return None
    if one in files:
        return None if other in folders else (files - {one} | {other}, folders)
    if one == other:
        return names
    if other in files or other.startswith(f"{one}/") or within(other):
        return None
    moved = {name: other + name.removeprefix(one) for name in within(one) | {one}}
    left = files - moved.keys(), folders - moved.keys()
    return left[0] | {moved[name] for name in files & moved.keys()}, left[1] | {
        moved[name] for name in folders & moved.keys()
    }


def do(store: LocalStore, kind: str, one: str, other: str) -> None:
    if kind == "create":
        store.create(one).write(0, one.encode())
    elif kind == "make":
        store.make_folder(one)
    elif kind == "remove":
        store.remove(one)
    elif kind == "remove folder":
        store.remove_folder(one)
    else:
        store.rename(one, other)


def names_of(store: LocalStore) -> Names:
    return frozenset(store.names()), frozenset(store.folders())


def name(chance: Stream) -> str:
    return "/".join(chance.choice("abc") for _ in range(chance.randrange(1, 4)))


def history(seed: int) -> None:
    """Do things until power is cut, or they are done: what is found is as it was at one moment since the last sync."""
    chance = stream(seed, "folders")
    memory = MemoryBlocks(2 << 20)
    format_drive(memory, Layout(3, 2, replicas=1), files=90)
    drive = VolatileDrive(memory, chance.randrange(5, 200))
    allowed: list[Names] = [(frozenset(), frozenset())]
    with suppress(PowerCut):
        store = LocalStore(drive, VirtualClock())
        for _ in range(80):
            kind = chance.choice(("create", "create", "make", "make", "remove", "remove folder", "rename", "rename"))
            one, other = name(chance), name(chance)
            after = changed(allowed[-1], kind, one, other)
            if after is None:
                with pytest.raises(BadInput):
                    do(store, kind, one, other)
            else:
                allowed.append(after)
                do(store, kind, one, other)
            assert names_of(store) == allowed[-1]
            if chance.random() < 0.1:
                store.sync()
                allowed = allowed[-1:]
        store.close()
    with LocalStore(drive.after_cut(chance), VirtualClock(), take_over=True) as again:
        assert names_of(again) in allowed
        assert again.scrub().is_clean


@pytest.mark.parametrize("first", range(0, 90, 30))
def test_names_are_those_of_one_moment_whatever_is_done_to_folders(first: int) -> None:
    for seed in range(first, first + 30):
        history(seed)
