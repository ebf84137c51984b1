"""Parts of a rack: their texts, old ones included, what reaches what, and sets of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from rackloop.clock import VirtualClock
from rackloop.errors import BadInput
from rackloop.lab import Part, PartKind, Parts, acted_on, load_lab, parts_for, parts_of, reach_of
from rackloop.safety.leases import Holder, Leases
from rackloop.safety.maintenance import OutOfServiceStore, State
from rackloop.safety.store import Store, open_store
from rackloop.safety.undo import EntryState, Journal
from tests.parts import parts

EVERY_KIND = [
    Part.server("srv1"),
    Part.drive("d01"),
    Part.port("srv1", "p0"),
    Part.switch_port(17),
    Part.outlet("pdu1", 2),
    Part(PartKind.SWITCH),
    Part(PartKind.CONTROL),
    Part(PartKind.CABLING),
    Part(PartKind.NETWORK, "srv1"),
    Part(PartKind.BMC, "srv1"),
    Part(PartKind.SLOT, "node1/p0/3"),
    Part(PartKind.PHY, "node1/p0"),
]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(open_store(tmp_path / "store.sqlite", VirtualClock())) as store:
        yield store


@pytest.mark.parametrize("part", EVERY_KIND, ids=str)
def test_a_part_survives_being_written(part: Part) -> None:
    assert Part.of(str(part)) == part
    assert Part.of_resource(str(part)) == part


def test_a_port_of_a_server_is_none_of_the_switch() -> None:
    assert Part.of("port:srv1.p0") == Part.port("srv1", "p0")
    assert Part.of("port:17") == Part.switch_port(17)
    assert (str(Part.port("srv1", "p0")), str(Part.switch_port(17))) == ("port:srv1.p0", "switch_port:17")


@pytest.mark.parametrize(
    "text", ["", "srv1", "switch:1", "rack", "rack:1", "drive:", "port:", "port:p0", "switch_port:0", "switch_port:x"]
)
def test_what_names_no_part_is_the_whole_racks_business(text: str) -> None:
    with pytest.raises(BadInput, match="is no part of a rack"):
        Part.of(text)
    odd = Part.of_resource(text)
    assert (odd.kind, str(odd)) == (PartKind.RACK, text)
    assert parts(whole=True).covers(odd)
    assert not parts(servers=["srv1"], ports=[1]).covers(odd, [1])


@pytest.mark.parametrize("name", ["d01", "srv1", "srv1.p0", "port 17", "switch"])
def test_a_lab_finds_a_part_by_its_name_and_by_its_text(name: str) -> None:
    lab = load_lab("mock")
    assert lab.part(str(lab.part(name))) == lab.part(name)


def test_a_part_that_is_not_there_is_guessed() -> None:
    with pytest.raises(BadInput, match="has nothing called 'd00'; did you mean "):
        load_lab("mock").part("d00")


def test_a_server_covers_what_belongs_to_it_and_the_switch_is_covered_by_its_ports() -> None:
    mine = parts(servers=["srv1"], drives=["d01"], ports=[1, 101], outlets=["pdu1/1"])
    assert all(mine.covers(part) for part in EVERY_KIND if part.server_name == "srv1")
    assert mine.covers(Part(PartKind.SWITCH), [1, 101])
    assert not mine.covers(Part(PartKind.SWITCH), [1, 102])
    assert not any(map(mine.covers, (Part(PartKind.SWITCH), Part(PartKind.CONTROL), Part.drive("d02"))))
    assert not mine.covers(Part.server("srv1"), [2])


def test_a_set_contains_its_parts_and_overlaps_what_it_shares() -> None:
    one, other, whole = parts(servers=["srv1"], ports=[1]), parts(ports=[1, 2]), parts(whole=True)
    assert one.overlaps(other)
    assert not parts(servers=["srv1"]).overlaps(other)
    assert whole.overlaps(one)
    assert one.overlaps(whole)
    assert whole.contains(one | other)
    assert (one | other).contains(one)
    assert not one.contains(whole)
    assert isinstance(one | other, Parts)


def test_a_server_is_reached_by_its_port_and_a_port_by_its_server() -> None:
    port = Part.port("srv1", "p0")
    assert Parts([port]).reaches(Part.server("srv1"))
    assert Parts([Part.server("srv1")]).reaches(port)
    assert not Parts([port]).reaches(Part.port("srv1", "p1"))
    assert not Parts([port]).reaches(Part.drive("srv1"))


def test_what_a_part_reaches_is_known_from_the_wiring() -> None:
    lab = load_lab("mock")
    drive = parts(drives=["d01"], server_ports=[("srv1", "p0")], ports=[1, 101])
    assert reach_of(lab, Part.drive("d01")) == drive
    assert reach_of(lab, Part.switch_port(101)) == drive
    assert reach_of(lab, Part.switch_port(101), [(5, 101)]).server_ports == {("srv2", "p0")}
    assert not reach_of(lab, Part(PartKind.BMC, "srv1"))


def test_what_an_act_is_about_is_leased_for_it() -> None:
    lab = load_lab("mock")
    unit, number = lab.servers["srv1"].outlet or ("", 0)
    assert acted_on(lab, Part(PartKind.SLOT, "srv1/p0")) == parts(servers=["srv1"])
    assert parts_for(lab, Part.drive("d01")) == parts(drives=["d01"])
    assert parts_for(lab, Part.outlet(unit, number)) == parts(servers=["srv1"], outlets=[f"{unit}/{number}"])
    assert parts_for(lab, Part(PartKind.SWITCH)).whole


def test_a_journal_that_calls_a_switch_port_as_before_is_read(store: Store) -> None:
    journal = Journal(store)
    with store.transaction() as tables:
        tables.rows(
            "INSERT INTO undo_entry (lab, run, ability, resource, what, inverse, state, boot_id, intended_ns, wall)"
            " VALUES ('mock', 'r', 'fault', 'port:101', ?, ?, 'acted', 'b', 1, '2026-11-20T12:00:00+00:00')",
            '{"do": "break", "key": "k", "kind": "stuck"}',
            '[{"act": "mend", "key": "k"}]',
        )
    (entry,) = journal.standing("mock")
    assert (entry.resource, entry.part, entry.state) == ("switch_port:101", Part.switch_port(101), EntryState.ACTED)


def test_a_lease_that_was_stored_before_is_read_and_written_the_same(store: Store) -> None:
    text = '{"servers": ["srv1"], "ports": [1, 101], "drives": ["d01"], "outlets": ["pdu1/1"], "whole": false}'
    leases = Leases(store, "mock")
    leases.request(parts(servers=["srv1"], ports=[1, 101], drives=["d01"], outlets=["pdu1/1"]), Holder("ann", "here"))
    with store.transaction() as tables:
        assert tables.rows("SELECT slice FROM lease") == [(text,)]
    (held,) = leases.held()
    assert held.parts == parts(servers=["srv1"], ports=[1, 101], drives=["d01"], outlets=["pdu1/1"])
    assert str(held.parts) == "srv1; drives d01; ports 1, 101; outlets pdu1/1"


def test_the_whole_rack_is_leased_with_everything_in_it(store: Store) -> None:
    leases, wanted = Leases(store, "mock"), parts_of(load_lab("mock"))
    leases.request(wanted, Holder("ann", "here"))
    (held,) = leases.held()
    assert held.parts == wanted
    assert held.parts.whole


def test_a_quarantine_that_was_stored_before_is_read(store: Store) -> None:
    with store.transaction() as tables:
        tables.rows(
            "INSERT INTO upkeep (lab, gear, state, reason, by_whom, since_s, evidence)"
            " VALUES ('mock', 'port:srv1.p0', 'quarantine', 'dark', 'ann', 1, '[]')"
        )
    (out,) = OutOfServiceStore(store, "mock").standing().values()
    assert (out.part, out.state) == (Part.port("srv1", "p0"), State.QUARANTINE)
