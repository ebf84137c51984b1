"""Metadata sectors and their replicas, whose drive it is, and what is no store."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import textwrap
from dataclasses import replace
from fractions import Fraction
from math import comb
from pathlib import Path

import pytest

from rackloop.abilities.blocks import IoFailed
from rackloop.clock import VirtualClock
from rackloop.errors import BadInput
from rackloop_drivers.block.file_blocks import FileBlocks
from rackloop_models.erasure import GF8, GF16
from rackloop_models.local_erasure import (
    Layout,
    LocalStore,
    NoStore,
    ReplicasDisagree,
    StoreInUse,
    UnknownSuperblock,
    format_drive,
)
from rackloop_models.local_erasure._drive import Drive
from rackloop_models.local_erasure._owner import Owner, started
from rackloop_models.local_erasure._replicas import Sealed, seal, unseal
from rackloop_models.local_erasure._statistics import Statistics
from rackloop_models.local_erasure._superblock import Superblock
from tests.memory_blocks import MemoryBlocks
from tests.unit.models.faulty_drive import FaultyDrive
from tests.unit.models.local_erasure_case import LAYOUT, SECTOR, formatted, on_drive, opened, pattern, with_file

KINDS = ["superblock", "record", "journal descriptor", "page"]


def replicas_of(store: LocalStore, kind: str) -> list[int]:
    """The sectors of one metadata sector of each kind that a store cannot do without."""
    places = store.metadata_places()
    journal = next(at for at, found in enumerate(places) if kind_at(store, found[0] // SECTOR) == b"JRNL")
    page = next(
        at
        for at, found in enumerate(places)
        if kind_at(store, found[0] // SECTOR) == b"PAGE" and payload_at(store, found[0] // SECTOR)[0] == 1
    )
    at = {"superblock": 0, "record": 1, "journal descriptor": journal, "page": page}[kind]
    return [place // SECTOR for place in places[at]]


def drive_of(store: LocalStore) -> FaultyDrive:
    blocks = store._drive._blocks
    assert isinstance(blocks, FaultyDrive)
    return blocks


def with_page_that_no_journal_has() -> tuple[FaultyDrive, LocalStore]:
    """A closed store whose last transaction is of another file than ``a``."""
    drive, store = with_file(pattern(3))
    store.create("b")
    store.close()
    return drive, store


def kind_at(store: LocalStore, sector: int) -> bytes:
    return on_drive(drive_of(store), [sector])[4:8]


def payload_at(store: LocalStore, sector: int) -> bytes:
    found = unseal(on_drive(drive_of(store), [sector]), kind_at(store, sector))
    assert found
    return found[2].payload


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("harm", ["soft", "hard", "corrupt", "zero"])
def test_a_shadow_serves_where_the_lead_does_not_and_the_lead_is_repaired(kind: str, harm: str) -> None:
    drive, store = with_file(pattern(3))
    store.close()
    lead, shadow, last = replicas_of(store, kind)
    for sector in (lead, shadow):
        if harm == "corrupt":
            drive.corrupt(sector)
        elif harm == "zero":
            drive.memory.write(sector * SECTOR, bytes(SECTOR))
        else:
            (drive.soft if harm == "soft" else drive.hard).add(sector)
    with opened(drive) as again:
        assert again.open("a").read(0, 3 * SECTOR) == pattern(3)
        assert again.statistics.metadata_repairs >= (0 if kind == "superblock" else 2)
        assert not {lead, shadow} & (drive.soft | drive.hard)
        assert on_drive(drive, [lead]) == on_drive(drive, [shadow]) == on_drive(drive, [last])


@pytest.mark.parametrize("kind", KINDS)
def test_replicas_that_all_fail_softly_are_read_with_retries(kind: str) -> None:
    drive, store = with_file(pattern(3))
    store.close()
    drive.soft = set(range(8)) if kind == "superblock" else set(replicas_of(store, kind))
    with opened(drive) as again:
        assert again.open("a").read(0, 3 * SECTOR) == pattern(3)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("harm", ["hard", "corrupt"])
def test_metadata_of_which_nothing_whole_is_left_are_an_error_that_names_the_sectors(kind: str, harm: str) -> None:
    drive, store = with_page_that_no_journal_has()
    sectors = replicas_of(store, kind)
    if harm == "hard":
        drive.hard = set(sectors)
    else:
        for sector in sectors:
            drive.corrupt(sector, bits=0x40)
            drive.memory.content[sector * SECTOR : sector * SECTOR + 8] = (
                b"LEC1" + drive.memory.content[sector * SECTOR + 4 : sector * SECTOR + 8]
            )
    with pytest.raises(ReplicasDisagree, match="nothing whole can be read in the replicas at sectors") as caught:
        opened(drive)
    assert set(sectors) <= set(caught.value.sectors)
    # It was not taken: whoever opens it next finds the same.
    with pytest.raises(ReplicasDisagree):
        opened(drive)


@pytest.mark.parametrize("kind", KINDS)
def test_two_whole_replicas_of_one_generation_that_differ_are_an_error(kind: str) -> None:
    drive, store = with_page_that_no_journal_has()
    lead, *_ = replicas_of(store, kind)
    found = unseal(on_drive(drive, [lead]), kind_at(store, lead))
    assert found
    number, store_id, sealed = found
    other = Sealed(sealed.generation, sealed.payload[:-1] + b" ")
    drive.memory.write(lead * SECTOR, seal(kind_at(store, lead), number, store_id, other))
    with pytest.raises(ReplicasDisagree, match="different contents of one generation"):
        opened(drive)


def test_the_newest_generation_counts_and_older_replicas_are_written_again() -> None:
    drive, store = with_file(pattern(3))
    lead, *shadows = replicas_of(store, "page")
    older = on_drive(drive, [lead])
    store.open("a").write(3 * SECTOR, b"more")
    store.close()
    assert on_drive(drive, [lead]) != older
    drive.memory.write(lead * SECTOR, older)
    drive.memory.write(shadows[0] * SECTOR, older)
    with opened(drive) as again:
        assert again.open("a").size_bytes == 3 * SECTOR + 4
        assert again.statistics.metadata_repairs == 2
        assert on_drive(drive, [lead]) == on_drive(drive, [shadows[-1]])


def test_metadata_of_an_earlier_store_on_the_drive_are_not_believed() -> None:
    drive, store = with_file(pattern(3))
    page = replicas_of(store, "page")
    store.close()
    earlier = on_drive(drive, page[:1])
    format_drive(drive, LAYOUT, files=8)
    with opened(drive) as again:
        assert again.names() == []
    drive.memory.write(page[0] * SECTOR, earlier)
    with opened(drive) as third:
        assert third.names() == []


def test_a_drive_without_a_store_says_so() -> None:
    with pytest.raises(NoStore, match="format it first"):
        LocalStore(MemoryBlocks(1 << 20), VirtualClock())


def test_formatting_that_was_cut_short_leaves_no_store() -> None:
    drive, store = with_file(pattern(3))
    store.close()

    class Broken(FaultyDrive):
        def write(self, offset: int, data: bytes) -> None:
            if offset > 8 * SECTOR:
                raise OSError
            super().write(offset, data)

    broken = Broken(drive.size_bytes)
    broken.memory = drive.memory
    with pytest.raises(OSError):  # noqa: PT011 - any will do
        format_drive(broken, LAYOUT, files=8)
    with pytest.raises(NoStore):
        opened(drive)


def test_another_version_is_refused() -> None:
    drive, store = with_file(pattern(3))
    store.close()
    found = unseal(on_drive(drive, [0]), b"SUPR")
    assert found
    fields = json.loads(found[2].payload.rstrip(b"\0"))
    newer = Sealed(found[2].generation + 1, json.dumps({"version": fields["version"] + 1}).encode())
    drive.memory.write(0, seal(b"SUPR", 0, found[1], newer))
    with pytest.raises(UnknownSuperblock, match="version 2, version 1 is known here"):
        opened(drive)


def test_a_smaller_drive_than_the_store_was_made_for_is_refused() -> None:
    drive, store = with_file(pattern(3))
    store.close()
    smaller = MemoryBlocks(drive.size_bytes // 2)
    smaller.content[:] = drive.memory.content[: smaller.size_bytes]
    with pytest.raises(BadInput, match="is it the right drive"):
        LocalStore(smaller, VirtualClock())


@pytest.mark.parametrize(("sectors", "files"), [(0, 8), (30, 8), (100, 100)])
def test_a_drive_that_is_too_small_is_refused_with_what_it_takes(sectors: int, files: int) -> None:
    drive = MemoryBlocks(sectors * SECTOR)
    with pytest.raises(BadInput, match=r"the drive has \d+ sectors .* need (\d+)") as caught:
        format_drive(drive, LAYOUT, files=files)
    needed = int(str(caught.value).split(" need ")[1].split(";")[0])
    format_drive(MemoryBlocks((needed + 2) * SECTOR), LAYOUT, files=files)
    assert bytes(drive.content) == bytes(sectors * SECTOR)


def test_no_files_at_all_are_refused() -> None:
    with pytest.raises(BadInput, match="at least 1 file"):
        format_drive(MemoryBlocks(1 << 20), LAYOUT, files=0)


@pytest.mark.parametrize(("k", "m", "replicas"), [(0, 1, 1), (1, 0, 1), (-3, 2, 2), (255, 2, 2), (8, 2, 0), (8, 2, 9)])
def test_what_is_no_layout_is_refused(k: int, m: int, replicas: int) -> None:
    with pytest.raises(BadInput):
        Layout(k, m, replicas=replicas)


@pytest.mark.parametrize(
    ("ph", "codeword", "k", "m", "replicas"),
    [
        (1e-4, 255, 252, 3, 2),
        (5e-4, 255, 251, 4, 2),
        (1e-3, 255, 250, 5, 2),
        (5e-3, 255, 246, 9, 3),
        (1e-4, 1023, 1019, 4, 2),
        (5e-4, 1023, 1016, 7, 2),
        (1e-3, 1023, 1014, 9, 2),
        (5e-3, 1023, 1004, 19, 3),
    ],
)
def test_layouts_for_a_failure_probability_are_those_of_table_1(
    ph: float, codeword: int, k: int, m: int, replicas: int
) -> None:
    layout = Layout.for_failure_probability(ph, codeword)
    assert layout == Layout(k, m, GF8 if codeword == 255 else GF16, replicas)
    assert layout.sector_bytes == SECTOR


def test_a_layout_for_a_probability_that_doubles_do_not_tell_from_0_beside_1() -> None:
    ph, ps, codeword = Fraction(1, 1000), Fraction(1, 10**20), 255

    def fails(m: int) -> Fraction:
        terms = (comb(codeword, lost) * ph**lost * (1 - ph) ** (codeword - lost) for lost in range(m + 1, codeword + 1))
        return sum(terms, Fraction(0))

    layout = Layout.for_failure_probability(1e-3, codeword, 1e-20)
    assert fails(layout.m) <= ps < fails(layout.m - 1)
    assert ph**layout.replicas <= ps < ph ** (layout.replicas - 1)


@pytest.mark.parametrize(("ph", "codeword", "ps"), [(0, 255, 1e-6), (1, 255, 1e-6), (0.1, 255, 0), (0.1, 1, 1e-6)])
def test_what_is_no_probability_or_codeword_is_refused(ph: float, codeword: int, ps: float) -> None:
    with pytest.raises(BadInput):
        Layout.for_failure_probability(ph, codeword, ps)
    with pytest.raises(BadInput, match="no code of 255 sectors"):
        Layout.for_failure_probability(0.9)


def test_a_store_that_is_open_is_not_opened_again() -> None:
    drive = formatted()
    with opened(drive, owner="first"), pytest.raises(StoreInUse, match="the store is open: 'first', process"):
        opened(drive)
    with opened(drive):
        pass


def test_an_owner_that_was_robbed_notices_before_its_next_commit() -> None:
    drive = formatted()
    old = opened(drive, owner="old")
    old.create("a").write(0, b"old")
    new = opened(drive, owner="new", take_over=True)
    new.create("b").write(0, b"new")
    new.flush()
    with pytest.raises(StoreInUse, match="taken over: 'new', process"):
        old.flush()
    with pytest.raises(StoreInUse):
        old.create("c")
    with pytest.raises(StoreInUse):
        old.close()
    new.close()
    with opened(drive) as third:
        assert third.names() == ["b"]


def test_an_owner_that_was_robbed_changes_no_group_that_it_has_not_recorded() -> None:
    drive, old = with_file(pattern(8))
    before = on_drive(drive, list(range(drive.size_bytes // SECTOR)))[8 * SECTOR :]
    new = opened(drive, take_over=True)
    with pytest.raises(StoreInUse):
        old.open("a").write(0, b"old", sync=True)
    assert on_drive(drive, list(range(drive.size_bytes // SECTOR)))[8 * SECTOR :] == before
    new.close()


@pytest.mark.parametrize("closes", [True, False])
def test_the_mark_of_a_process_that_is_gone_does_not_count(closes: bool, tmp_path: Path) -> None:
    path = tmp_path / "drive"
    with FileBlocks(path, 4 << 20) as drive:
        format_drive(drive, LAYOUT, files=8)
    program = f"""
        import os, pathlib
        from rackloop_drivers.block.file_blocks import FileBlocks
        from rackloop.clock import RealClock
        from rackloop_models.local_erasure import LocalStore
        with FileBlocks(pathlib.Path({str(path)!r}), {4 << 20}) as drive:
            store = LocalStore(drive, RealClock())
            store.create("a").write(0, b"abc", sync=True)
            {"store.close()" if closes else "os._exit(9)"}
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=closes)
    with FileBlocks(path, 4 << 20) as drive, LocalStore(drive, VirtualClock()) as store:
        assert store.open("a").read(0, 3) == b"abc"


def test_an_owner_that_has_ended_and_is_still_waited_for_is_gone() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        owner = replace(Owner.here("it"), process=process.pid, started=started(process.pid) or 0)
        assert not owner.is_gone()
        assert process.stdin
        process.stdin.close()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert owner.is_gone()
        process.stdin = None


def test_of_two_that_open_at_once_the_one_whose_mark_was_overwritten_does_not_have_it() -> None:
    drive = formatted()
    rival = Superblock.read(Drive(drive, Statistics()))
    rival = replace(rival, generation=rival.generation + 1, owner=Owner.here("rival"))

    class Raced(FaultyDrive):
        def flush(self) -> None:
            super().flush()
            for place in rival.places():
                self.memory.write(place * SECTOR, rival.sealed())

    raced = Raced(drive.size_bytes)
    raced.memory = drive.memory
    with pytest.raises(StoreInUse, match="'rival'"):
        opened(raced, owner="late")
    assert Superblock.read(Drive(drive, Statistics())).owner == rival.owner


def test_only_an_owner_that_is_certainly_dead_is_gone() -> None:
    alive = Owner.here("me")
    assert not alive.is_gone()
    dead = replace(alive, started=alive.started + 1)
    assert dead.is_gone()
    # Another host, or another container of this one, whose processes nobody here can see.
    assert not replace(dead, host="another").is_gone()
    assert not replace(dead, machine="another").is_gone()
    assert not replace(dead, numbering="another").is_gone()
    assert replace(alive, boot="before", numbering="another").is_gone()
    assert not replace(alive, boot="another's", machine="another").is_gone()
    assert Owner.parsed(alive.fields()) == alive


def test_two_groups_at_one_place_are_noticed() -> None:
    drive, store = with_file(pattern(3))
    page = replicas_of(store, "page")
    store.close()
    number, store_id, sealed = unseal(on_drive(drive, page[:1]), b"PAGE") or (0, b"", Sealed(0, b""))
    places = store.metadata_places()
    first_page = next(at for at, found in enumerate(places) if kind_at(store, found[0] // SECTOR) == b"PAGE")
    free = places[first_page + number + 1 if first_page + number + 1 < len(places) else first_page]
    for place in free:
        drive.memory.write(
            place,
            seal(b"PAGE", places.index(free) - first_page, store_id, Sealed(9, sealed.payload.replace(b"a", b"b", 1))),
        )
    with pytest.raises(Exception, match="are another group's too"):
        opened(drive)


class FailsToRelease(FaultyDrive):
    """Once it ``fails``, requests to write the superblock are done in part and said to have failed."""

    fails = False

    def write(self, offset: int, data: bytes) -> None:
        super().write(offset, data[:SECTOR] if self.fails and not offset else data)
        if self.fails and not offset:
            raise IoFailed("the link dropped", errno.EIO)


def test_a_store_that_could_not_be_closed_stays_open_and_can_be_closed_again() -> None:
    drive = FailsToRelease(2 << 20)
    format_drive(drive, LAYOUT, files=4)
    store = opened(drive)
    store.create("a").write(0, pattern(3))
    for _ in range(2):
        drive.fails = True
        with pytest.raises(IoFailed):
            store.close()
        drive.fails = False
        store.open("a").write(0, pattern(2, seed=2), sync=True)
    store.close()
    with opened(drive) as again:
        assert again.open("a").read(0, 3 * SECTOR) == pattern(2, seed=2) + pattern(3)[2 * SECTOR :]


def test_a_store_that_could_not_be_closed_is_not_taken_back_from_another() -> None:
    drive = FailsToRelease(2 << 20)
    format_drive(drive, LAYOUT, files=4)
    store = opened(drive)
    drive.fails = True
    with pytest.raises(IoFailed):
        store.close()
    drive.fails = False
    with opened(drive, owner="another") as other:
        other.create("b")
    with pytest.raises(StoreInUse, match="taken over"):
        store.close()
