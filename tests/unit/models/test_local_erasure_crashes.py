"""A power cut at any request: what was synced is there, nothing older is damaged, lost protection is known."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rackloop.clock import VirtualClock
from rackloop.seed import Stream, stream
from rackloop_models.erasure import GF8
from rackloop_models.local_erasure import Layout, LocalStore, NoRoom, UpdateMethod, format_drive
from tests.memory_blocks import MemoryBlocks
from tests.unit.models.crash_oracle import SECTOR, CrashOracle
from tests.unit.models.faulty_drive import PowerCut, VolatileDrive

DRIVE_BYTES = 1 << 20
NAMES = "abcd"
KINDS = ("write", "write", "write", "sync write", "sync write", "cut", "cut", "rename", "sync", "flush", "remove")


def history(store: LocalStore, oracle: CrashOracle, chance: Stream, steps: int) -> None:
    """Do things to a store at random, until power is cut or they are done."""
    for _ in range(steps):
        name = chance.choice(NAMES)
        there = name in oracle.names
        kind = chance.choice(KINDS)
        if not there:
            # What power interrupts may have been done, or not.
            oracle.created(name)
            store.create(name)
        elif kind in {"write", "sync write"}:
            offset = chance.choice((0, chance.randrange(90_000), len(oracle.content(name))))
            data = chance.randbytes(chance.choice((1, 500, SECTOR, 5_000, 40_000)))
            oracle.written(name, offset, data)
            try:
                store.open(name).write(offset, data, sync=kind == "sync write")
            except NoRoom:
                oracle.refused(name)
                continue
            if kind == "sync write":
                oracle.write_synced(name, offset, len(data))
        elif kind == "cut":
            size = chance.choice((0, chance.randrange(90_000), len(oracle.content(name)) * 3 // 4))
            oracle.truncated(name, size)
            store.open(name).truncate(size)
        elif kind == "rename":
            new = chance.choice(NAMES)
            if new != name:
                oracle.renamed(name, new)
            store.rename(name, new)
        elif kind == "remove" and chance.random() < 0.5:
            oracle.removed(name)
            store.remove(name)
        elif kind == "sync":
            store.open(name).sync()
            oracle.synced()
        elif kind == "flush":
            store.flush()
            oracle.synced()
        if chance.random() < 0.2:
            store.protect(at_most_groups=chance.choice((1, 3, None)))


def found(store: LocalStore) -> dict[str, bytes]:
    return {name: store.open(name).read(0, 1 << 30) for name in store.names()}


def judge(memory: MemoryBlocks, oracle: CrashOracle) -> None:
    """What a drive carries after a crash is allowed, and all of it can be protected again."""
    with LocalStore(memory, VirtualClock(), take_over=True) as store:
        content = found(store)
        assert not (complaint := oracle.complaint(content)), complaint
        unprotected = sum(store.stat(name).unprotected_groups for name in store.names())
        report = store.scrub()
        assert report.is_clean, report
        assert (report.corrected_sectors, report.unreadable_sectors) == (0, 0), report
        assert report.protected_groups == unprotected
        assert found(store) == content
    with LocalStore(memory, VirtualClock()) as store:
        assert found(store) == content
        assert store.statistics.recovered_groups == 0


def crash(seed: int, steps: int = 40, *, in_flight_bytes: int = 0) -> None:
    """A history that power cuts short, with a second cut while the store is opened again, now and then."""
    chance = stream(seed, "crash")
    k, m = chance.choice(((1, 1), (3, 1), (4, 2), (8, 2)))
    memory = MemoryBlocks(DRIVE_BYTES)
    format_drive(memory, Layout(k, m, GF8, chance.choice((1, 2, 3))), files=6)
    oracle = CrashOracle(k * SECTOR)
    in_flushes = chance.random() < 0.5
    drive = VolatileDrive(memory, chance.randrange(2, 80 if in_flushes else 300), in_flushes=in_flushes)
    cache_bytes = chance.choice((0, 100_000, 1 << 20))
    with suppress(PowerCut):
        store = LocalStore(
            drive,
            VirtualClock(),
            cache_bytes=cache_bytes,
            update=chance.choice(list(UpdateMethod)),
            in_flight_bytes=in_flight_bytes,
        )
        history(store, oracle, chance, steps)
        store.close()
        oracle.synced()
    memory = drive.after_cut(chance)
    while chance.random() < 0.3:
        drive = VolatileDrive(memory, chance.randrange(20))
        with suppress(PowerCut):
            LocalStore(drive, VirtualClock(), take_over=True).scrub()
        memory = drive.after_cut(chance)
    judge(memory, oracle)


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_a_power_cut_at_any_request_leaves_what_was_synced(first: int) -> None:
    for seed in range(first, first + 50):
        crash(seed)


@pytest.mark.parametrize("in_flight_bytes", [SECTOR, 10 * SECTOR, 1 << 20])
def test_no_power_cut_does_harm_where_writes_wait_in_memory(in_flight_bytes: int) -> None:
    for seed in range(60):
        crash(seed, in_flight_bytes=in_flight_bytes)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(st.integers(min_value=1_000))
def test_no_power_cut_that_is_looked_for_does_harm(seed: int) -> None:
    crash(seed, steps=15)


@pytest.mark.nightly
@pytest.mark.parametrize("first", range(10_000, 20_000, 500))
def test_thousands_of_power_cuts_leave_what_was_synced(first: int) -> None:
    for seed in range(first, first + 500):
        crash(seed, steps=80)
