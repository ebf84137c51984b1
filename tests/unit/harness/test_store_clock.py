"""A clock that is set ends no lease and lengthens none; a machine that starts anew ends those of its processes."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from rackloop.clock import VirtualClock
from rackloop.errors import BadInput, LabError
from rackloop.lab import Part
from rackloop.safety.leases import HEARTBEAT_S, Holder, Leases, Process
from rackloop.safety.maintenance import OutOfServiceStore
from rackloop.safety.store import Store, _sqlite, open_store
from tests.parts import parts
from tests.unit.harness.set_clock import SetClock

WHOLE = parts(whole=True)


def now_s(store: Store) -> float:
    with store.reading() as tables:
        return tables.now_s()


@pytest.mark.parametrize("jump", [timedelta(days=3), timedelta(days=-3)], ids=["forwards", "back"])
def test_a_clock_that_is_set_ends_no_lease_and_lengthens_none(tmp_path: Path, jump: timedelta) -> None:
    clock = SetClock()
    with closing(open_store(tmp_path / "store.sqlite", clock)) as store:
        leases = Leases(store, "lab")
        leases.request(WHOLE, Holder("ann", "here"), term_s=60.0)
        clock.set_by = jump
        with closing(open_store(tmp_path / "store.sqlite", clock)) as again:
            [lease] = Leases(again, "lab").held()
        # It is told by the clock that people look at now.
        assert abs((lease.until - clock.wall()).total_seconds() - 60) < 1e-3
        clock.advance(61)
        assert leases.held() == []


@pytest.mark.parametrize("jump", [timedelta(days=3), timedelta(days=-3)], ids=["forwards", "back"])
def test_a_maintenance_ends_when_the_clock_that_people_look_at_says_so(tmp_path: Path, jump: timedelta) -> None:
    clock, drive = SetClock(), Part.drive("d01")
    with closing(open_store(tmp_path / "store.sqlite", clock)) as store:
        upkeep = OutOfServiceStore(store, "lab")
        now_s(store)
        clock.set_by = jump
        until = clock.wall() + timedelta(hours=1)
        upkeep.maintain(drive, "new firmware", "ann@here", until)
        out = upkeep.standing()[drive]
        assert out.until is not None
        assert abs(out.until - until) < timedelta(seconds=2)
        assert abs(out.since - clock.wall()) < timedelta(seconds=2)
        with pytest.raises(BadInput, match="is over: give a date or time in the future"):
            upkeep.maintain(Part.drive("d02"), "new firmware", "ann@here", clock.wall() - timedelta(minutes=1))
        clock.advance(3590)
        assert drive in upkeep.standing()
        clock.advance(20)
        assert drive not in upkeep.standing()


def test_the_store_has_one_time_also_where_its_first_transaction_failed(tmp_path: Path) -> None:
    clock = SetClock()
    with closing(open_store(tmp_path / "store.sqlite", clock)) as store:
        with pytest.raises(LabError, match="syntax error"), store.transaction("lab") as tables:
            tables.rows("no statement", tables.now_s())
        clock.set_by = timedelta(days=3)
        with closing(open_store(tmp_path / "store.sqlite", clock)) as again:
            assert now_s(again) == now_s(store)


def test_a_machine_that_starts_with_a_wrong_clock_goes_on_from_the_newest_lease(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SetClock()
    with closing(open_store(tmp_path / "store.sqlite", clock)) as store:
        Leases(store, "lab").request(WHOLE, Holder("ann", "here"), term_s=60.0)
        before_s = now_s(store)
    clock.set_by = timedelta(days=-400)
    monkeypatch.setattr(_sqlite, "boot_id", lambda: "another boot")
    with closing(open_store(tmp_path / "store.sqlite", clock)) as store:
        assert abs(now_s(store) - before_s) < 1
        clock.advance(61)
        assert Leases(store, "lab").held() == []


def test_a_process_of_an_earlier_boot_has_ended(tmp_path: Path) -> None:
    clock = VirtualClock()
    here = Holder.here()
    assert here.process
    before = replace(here, process=replace(here.process, boot_id="00000000-0000-0000-0000-000000000000"))
    with closing(open_store(tmp_path / "store.sqlite", clock)) as store:
        leases = Leases(store, "lab")
        leases.request(WHOLE, here)
        with store.transaction("lab") as tables:
            tables.rows("UPDATE lease SET holder = ?", before.as_json())
        assert leases.held() == []
        assert leases.request(WHOLE, here).lease


# https://sqlite.org/pragma.html#pragma_synchronous
NORMAL, FULL = 1, 2


@pytest.mark.parametrize(("bound", "given_back"), [(True, NORMAL), (False, FULL)], ids=["process", "person"])
def test_a_lease_is_on_the_disk_and_its_end_too_where_no_power_cut_ends_it(
    tmp_path: Path, *, bound: bool, given_back: int
) -> None:
    levels: list[int] = []
    with closing(open_store(tmp_path / "store.sqlite", VirtualClock())) as store:
        engine = store._engine
        assert isinstance(engine, _sqlite.SqliteEngine)
        lease = Leases(store, "lab").request(WHOLE, Holder.here(bound=bound)).lease
        levels += engine._db.execute("PRAGMA synchronous").fetchone()
        assert lease is not None
        Leases(store, "lab").release(lease)
        levels += engine._db.execute("PRAGMA synchronous").fetchone()
    assert levels == [FULL, given_back]


def test_a_process_that_cannot_be_looked_at_is_believed_for_its_term(tmp_path: Path) -> None:
    clock = VirtualClock()
    elsewhere = Holder("ann", "there", Process(1, 1, "pid:[1]", Holder.here().process.boot_id))  # type: ignore[union-attr]
    with closing(open_store(tmp_path / "store.sqlite", clock)) as store:
        leases = Leases(store, "lab")
        assert leases.request(WHOLE, elsewhere).lease
        clock.advance(HEARTBEAT_S - 1)
        ticket = leases.request(WHOLE, Holder.here())
        assert ticket.lease is None
        clock.advance(2)
        assert leases.poll(ticket).lease


def test_a_process_that_lives_is_given_time_for_its_heartbeat_and_not_for_ever(tmp_path: Path) -> None:
    clock = VirtualClock()
    with closing(open_store(tmp_path / "store.sqlite", clock)) as store:
        leases = Leases(store, "lab")
        leases.request(WHOLE, Holder.here())
        clock.advance(3 * HEARTBEAT_S)
        assert len(leases.held()) == 1
        clock.advance(2 * HEARTBEAT_S)
        assert leases.held() == []


def test_a_lease_that_is_given_back_after_its_end_ends_nothing_of_the_next_holder(tmp_path: Path) -> None:
    clock = VirtualClock()
    with closing(open_store(tmp_path / "store.sqlite", clock)) as store:
        leases = Leases(store, "lab")
        lapsed = leases.request(WHOLE, Holder.here()).lease
        assert lapsed is not None
        clock.advance(5 * HEARTBEAT_S)
        following = leases.request(WHOLE, Holder("bob", "there")).lease
        assert following is not None
        leases.release(lapsed)
        assert [held.id for held in leases.held()] == [following.id]


def test_a_lease_that_nobody_holds_is_not_found(tmp_path: Path) -> None:
    with (
        closing(open_store(tmp_path / "store.sqlite", VirtualClock())) as store,
        pytest.raises(BadInput, match="no lease '1a2b' of lab lab is held; none is held"),
    ):
        Leases(store, "lab").find("1a2b")
