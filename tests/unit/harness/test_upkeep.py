"""Maintenance and quarantine as the lab's store has them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rackloop.clock import VirtualClock
from rackloop.errors import BadInput
from rackloop.lab import Part, load_lab, parts_of
from rackloop.measurement import Cause
from rackloop.safety.leases import Leases, holding
from rackloop.safety.maintenance import OutOfService, OutOfServiceStore, QuarantineRule, State
from rackloop.safety.store import open_store

D01, D02, SRV1 = Part.drive("d01"), Part.drive("d02"), Part.server("srv1")
RULE = QuarantineRule(failures=2, tests=3)


@pytest.fixture
def upkeep(tmp_path: Path) -> Iterator[OutOfServiceStore]:
    store = open_store(tmp_path / "store.sqlite", VirtualClock())
    yield OutOfServiceStore(store, "mock")
    store.close()


def _fail(upkeep: OutOfServiceStore, number: int, gear: Part = D01, rule: QuarantineRule = RULE) -> OutOfService | None:
    return upkeep.failed(gear, Cause.LAB, "no answer", run="r1", test=f"t{number}", number=number, rule=rule)


def test_a_part_in_maintenance_stands_with_who_why_and_since_until_it_is_ended(upkeep: OutOfServiceStore) -> None:
    upkeep.maintain(D01, "new firmware", "ada@bench")
    (out,) = upkeep.standing().values()
    assert (out.part, out.state, out.reason, out.by) == (D01, State.MAINTENANCE, "new firmware", "ada@bench")
    assert f"{out.since:%Y-%m-%d %H:%M} UTC, by ada@bench: new firmware" in str(out)
    assert upkeep.lift(D01, State.MAINTENANCE, "ada@bench") == out
    assert upkeep.standing() == {}
    assert upkeep.lift(D01, State.MAINTENANCE, "ada@bench") is None


def test_maintenance_is_of_one_person_at_a_time_and_has_a_reason(upkeep: OutOfServiceStore) -> None:
    upkeep.maintain(SRV1, "cabling", "ada@bench")
    with pytest.raises(BadInput, match=r"server srv1 is in maintenance since .*ada@bench: cabling; end that first"):
        upkeep.maintain(SRV1, "memory", "bob@bench")
    with pytest.raises(BadInput, match="say why drive d01"):
        upkeep.maintain(D01, " ", "bob@bench")


@pytest.mark.parametrize("reason", ["\x1b[2J", "two\nlines", "x" * 1000])
def test_a_reason_that_is_no_line_of_text_is_refused(upkeep: OutOfServiceStore, reason: str) -> None:
    with pytest.raises(BadInput, match=r"the reason .* is shown to others: give a line of at most 500") as refused:
        upkeep.maintain(SRV1, reason, "ada@bench")
    assert "\x1b" not in str(refused.value)
    assert upkeep.standing() == {}


def test_a_stored_reason_that_steers_a_terminal_is_shown_as_it_is_written(tmp_path: Path) -> None:
    with closing(open_store(tmp_path / "store.sqlite", VirtualClock())) as store:
        upkeep = OutOfServiceStore(store, "mock")
        upkeep.maintain(SRV1, "cabling", "ada@bench")
        with store.transaction("mock") as tables:
            tables.rows("UPDATE upkeep SET reason = ?", "\x1b[2J")
        assert str(upkeep.standing()[SRV1]).endswith(r"by ada@bench: \x1b[2J")


def test_maintenance_that_was_given_an_end_ends_by_itself(tmp_path: Path) -> None:
    clock = VirtualClock()
    store = open_store(tmp_path / "store.sqlite", clock)
    upkeep = OutOfServiceStore(store, "mock")
    with store.reading() as tables:
        now = datetime.fromtimestamp(tables.now_s(), UTC)
    upkeep.maintain(D01, "a visit", "ada@bench", now + timedelta(hours=1))
    with pytest.raises(BadInput, match="is over"):
        upkeep.maintain(D02, "a visit", "ada@bench", now - timedelta(seconds=1))
    assert set(upkeep.standing()) == {D01}
    clock.sleep_until_ns(clock.now_ns() + 3601 * 10**9)
    assert upkeep.standing() == {}
    upkeep.maintain(D01, "another", "bob@bench")
    store.close()


def test_a_drive_that_is_out_of_service_may_not_be_written_under_any_lease(tmp_path: Path) -> None:
    with closing(open_store(tmp_path / "store.sqlite", VirtualClock())) as store:
        upkeep = OutOfServiceStore(store, "mock")
        with holding(Leases(store, "mock"), parts_of(load_lab("mock"))) as held:
            assert held.refusals("d01", "srv1.p0") == []
            upkeep.maintain(D01, "new firmware", "ada@bench")
            (reason,) = held.refusals("d01", "srv1.p0")
            assert "drive d01 is in maintenance since" in reason
            assert held.refusals("d02", "srv1.p1") == []
            upkeep.lift(D01, State.MAINTENANCE, "ada@bench")
            upkeep.quarantine(D01, "it keeps failing", "run r1")
            assert "quarantine" in held.refusals("d01", "srv1.p0")[0]


@pytest.mark.parametrize(
    ("gear", "through", "is_refused"),
    [
        (SRV1, "srv1.p0", True),
        (SRV1, "srv1.p0.s3", True),
        (SRV1, "srv1", True),
        (SRV1, "srv10.p0", False),
        (Part.port("srv1", "p0"), "srv1.p0", True),
        (Part.port("srv1", "p0"), "srv1.p0.s3", True),
        (Part.port("srv1", "p0"), "srv1.p01", False),
        (D02, "srv1.p0", False),
    ],
)
def test_no_drive_is_written_through_a_server_or_a_port_that_is_out_of_service(
    tmp_path: Path, gear: Part, through: str, is_refused: bool
) -> None:
    with (
        closing(open_store(tmp_path / "store.sqlite", VirtualClock())) as store,
        holding(Leases(store, "mock"), parts_of(load_lab("mock"))) as held,
    ):
        OutOfServiceStore(store, "mock").quarantine(gear, "it keeps failing", "run r1")
        reasons = held.refusals("d01", through)
    assert bool(reasons) == is_refused
    assert all(reason.startswith(f"{gear.said} is in quarantine since") for reason in reasons)


def test_what_stands_is_told_while_somebody_else_writes(
    tmp_path: Path, upkeep: OutOfServiceStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = upkeep.maintain(D01, "new firmware", "ada@bench")
    _fail(upkeep, 1, D02)
    monkeypatch.setattr("rackloop.safety.store._sqlite._BUSY_S", 0.0)
    with closing(open_store(tmp_path / "store.sqlite", VirtualClock())) as other, other.transaction("mock"):
        assert upkeep.standing() == {D01: out}
        assert [failure.number for failure in upkeep.failures(D02)] == [1]


def test_labs_of_one_store_have_upkeeps_of_their_own(tmp_path: Path) -> None:
    store = open_store(tmp_path / "store.sqlite", VirtualClock())
    OutOfServiceStore(store, "left").maintain(D01, "new firmware", "ada@bench")
    assert OutOfServiceStore(store, "right").standing() == {}
    store.close()


def test_a_part_in_maintenance_and_in_quarantine_is_shown_in_maintenance_and_stays_in_quarantine(
    upkeep: OutOfServiceStore,
) -> None:
    upkeep.quarantine(D01, "it keeps failing", "run r1", ["t1: no answer"])
    upkeep.maintain(D01, "a new cable", "ada@bench")
    assert upkeep.standing()[D01].state is State.MAINTENANCE
    upkeep.lift(D01, State.MAINTENANCE, "ada@bench")
    assert upkeep.standing()[D01].state is State.QUARANTINE
    assert upkeep.standing()[D01].evidence == ("t1: no answer",)


def test_tests_are_counted(upkeep: OutOfServiceStore) -> None:
    assert [upkeep.tested() for _ in range(3)] == [1, 2, 3]


def test_gear_that_keeps_failing_goes_into_quarantine_with_its_record(upkeep: OutOfServiceStore) -> None:
    assert _fail(upkeep, 1) is None
    condemned = _fail(upkeep, 3)
    assert condemned is not None
    assert upkeep.standing() == {D01: condemned}
    assert condemned.reason == "it keeps failing (2 failures within 3 tests)"
    assert condemned.evidence == ("t1 of r1: no answer", "t3 of r1: no answer")
    assert _fail(upkeep, 4) is None, "it is in quarantine already"


@pytest.mark.parametrize(("numbers", "condemned"), [((1, 4), False), ((2, 4), True), ((4, 4), False)])
def test_failures_count_within_the_last_tests_and_once_a_test(
    upkeep: OutOfServiceStore, numbers: tuple[int, ...], condemned: bool
) -> None:
    outs = [_fail(upkeep, number) for number in numbers]
    assert (outs[-1] is not None) == condemned


def test_failures_of_others_do_not_count(upkeep: OutOfServiceStore) -> None:
    assert _fail(upkeep, 1, D02) is None
    assert _fail(upkeep, 2) is None


def test_what_failed_before_a_quarantine_was_lifted_counts_no_more(tmp_path: Path) -> None:
    clock = VirtualClock()
    store = open_store(tmp_path / "store.sqlite", clock)
    upkeep = OutOfServiceStore(store, "mock")
    for number in (1, 2):
        _fail(upkeep, number)
    clock.sleep_until_ns(clock.now_ns() + 10**9)
    upkeep.lift(D01, State.QUARANTINE, "ada@bench", "a new drive")
    clock.sleep_until_ns(clock.now_ns() + 10**9)
    assert _fail(upkeep, 3) is None
    assert [failure.number for failure in upkeep.failures(D01)] == [3]
    assert _fail(upkeep, 4) is not None
    store.close()


def test_a_lab_without_a_drive_has_neither_it_nor_its_circuit() -> None:
    lab = load_lab("mock")
    left = lab.without({D01})
    assert set(lab.drives) - set(left.drives) == {"d01"}
    assert set(lab.baseline_map()) - set(left.baseline_map()) == {(1, 101)}
    assert "d01" not in left.drives_of("srv1")
    assert left.source == lab.source


def test_a_lab_without_a_server_or_a_port_keeps_their_drives() -> None:
    lab = load_lab("mock")
    left = lab.without({SRV1, Part.port("srv2", "p0")})
    assert left.drives == lab.drives
    assert "srv1" not in left.servers
    assert "srv1" not in left.baseline
    assert "p0" not in left.servers["srv2"].ports
    assert not {port for pair in left.baseline_map() for port in pair} & {1, 2, 3, 4, 5}


def test_a_lab_without_what_it_has_not_is_the_same() -> None:
    lab = load_lab("mock")
    assert lab.without({Part.drive("other")}) == lab
    assert lab.without(()) is lab
