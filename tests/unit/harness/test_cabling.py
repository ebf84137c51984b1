"""The cabling check: a right rack has no disagreement, and a wrong one is told by its port, its plugs and its slots."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rackloop.abilities import DriveIdentity
from rackloop.abilities.inventory import HostInventory, SeenDrive
from rackloop.inspection.cabling import Disagreement, check_ports
from rackloop.lab import Lab
from rackloop.portmap import PortMap
from tests.unit.harness.cabled_rack import STATIC, SWITCHED, CabledRack, described, disagreements, seen


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    return described(SWITCHED, tmp_path_factory.mktemp("lab"))


@pytest.fixture(scope="module")
def fixed(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    return described(STATIC, tmp_path_factory.mktemp("lab"))


def wrong(rack: CabledRack) -> list[Disagreement]:
    return disagreements(rack.lab, rack.live, rack.inventories())


def at(found: list[Disagreement]) -> dict[str, Disagreement]:
    return {f"{one.server}.{one.port}": one for one in found}


def with_drives(rack: CabledRack, server: str, *drives: SeenDrive) -> dict[str, HostInventory]:
    """What the servers see, ``server`` these drives instead."""
    return {**rack.inventories(), server: HostInventory(server, drives)}


SERVER_SOCKETS = (1, 2, 5, 6, 9, 10)
FAR_SOCKETS = (21, 22, 23, 24, 25, 30)
SOCKETS = (*SERVER_SOCKETS, *FAR_SOCKETS)


@st.composite
def maps(draw: st.DrawFn) -> PortMap:
    """Maps that join server ports with what is on the other side."""
    near, far = draw(st.permutations(SERVER_SOCKETS)), draw(st.permutations(FAR_SOCKETS))
    count = draw(st.integers(0, len(near)))
    return PortMap.of(zip(near[:count], far[:count], strict=True))


@given(live=maps())
def test_a_right_rack_has_no_disagreement_whatever_is_mapped(lab: Lab, live: PortMap) -> None:
    assert wrong(CabledRack.of(lab, live)) == []


@given(live=maps(), swapped=st.permutations(SOCKETS).map(lambda order: order[:2]))
def test_any_swap_of_two_plugs_is_found_and_both_are_named(lab: Lab, live: PortMap, swapped: list[int]) -> None:
    rack = CabledRack.of(lab, live)
    right = rack.reached()
    names = [rack.sockets[socket] for socket in swapped]
    rack.swap(*swapped)
    assume(rack.reached() != right)
    found = wrong(rack)
    changed = {near for near in right.keys() | rack.reached().keys() if right.get(near) != rack.reached().get(near)}
    assert set(at(found)) == changed
    if live.ports().issuperset(swapped):
        told = " ".join(one.advice for one in found)
        one, other = sorted(swapped)
        first, second = (names[swapped.index(socket)] for socket in (one, other))
        assert f"the cables of {first} and {second} are swapped (switch ports {one} and {other})" in told


@given(live=maps(), swapped=st.permutations((0, 1, 5)).map(lambda order: order[:2]))
def test_any_swap_of_two_slots_is_found_and_both_are_named(lab: Lab, live: PortMap, swapped: list[int]) -> None:
    rack = CabledRack.of(lab, live)
    slots = rack.slots["exp1"]
    one, other = swapped
    slots[one], slots[other] = slots[other], slots[one]
    found = wrong(rack)
    if "exp1" not in rack.reached().values():
        assert found == []
        return
    assert len(found) == 2
    for slot, told in zip(
        (one, other), sorted(found, key=lambda told: f"in slot {one} of" not in told.expected), strict=True
    ):
        assert f"in slot {slot} of exp1" in told.expected
        assert "are swapped" in told.advice
        assert f"{one}" in told.advice
        assert f"{other}" in told.advice


def test_two_swaps_at_once_are_told_apart(lab: Lab) -> None:
    rack = CabledRack.of(lab)
    rack.swap(21, 23)
    rack.swap(22, 25)
    found = at(wrong(rack))
    assert set(found) == {"srv1.p0", "srv1.p1", "srv2.p0"}
    assert "the cables of d01 and d03 are swapped (switch ports 21 and 23)" in found["srv1.p0"].advice
    assert found["srv1.p1"].advice == "the cables of d02 and d05 are swapped (switch ports 22 and 25)"


def test_a_missing_drive_is_told_with_its_cables(lab: Lab) -> None:
    rack = CabledRack.of(lab)
    del rack.sockets[21]
    (found,) = wrong(rack)
    assert (found.server, found.port, found.switch_port, found.found) == ("srv1", "p0", 1, "nothing")
    assert found.expected == "d01 (RL SATA SSD, serial S1)"
    assert found.advice == (
        "is d01 powered, and are its cable in switch port 21 and the cable of srv1.p0 in switch port 1 where they "
        "belong? Or the cables of srv1.p0 and d05 are swapped (switch ports 1 and 25), or the cables of srv3.p1 and "
        "d01 are swapped (switch ports 10 and 21)"
    )


def test_a_drive_that_is_not_described_is_told_with_its_serial(lab: Lab) -> None:
    rack = CabledRack.of(lab)
    stranger = SeenDrive("/dev/sdz", DriveIdentity("ACME", "X9", "1", "sata", 1 << 33), ("pci-0000:11:00.0-ata-1",))
    (d04,) = rack.inventories()["srv3"].drives
    (found,) = disagreements(lab, rack.live, with_drives(rack, "srv3", d04, stranger))
    assert (found.port, found.expected) == ("p1", "nothing")
    assert found.found == "a drive that is not described (ACME, serial X9)"


def test_a_drive_at_a_port_that_should_be_open_is_told(lab: Lab) -> None:
    rack = CabledRack.of(lab)
    inventories = with_drives(rack, "srv3", seen(lab, "d04", "pci-0000:10:00.0"), seen(lab, "d05", "pci-0000:11:00.0"))
    (found,) = disagreements(lab, rack.live, inventories)
    assert (found.server, found.port, found.expected) == ("srv3", "p1", "nothing")
    assert found.advice.startswith("d05 belongs in switch port 25, which the map joins to no server")


def test_an_identity_that_is_there_twice_is_told_with_both_places(lab: Lab) -> None:
    rack = CabledRack.of(lab)
    inventories = with_drives(rack, "srv3", seen(lab, "d01", "pci-0000:10:00.0"))
    (found,) = disagreements(lab, rack.live, inventories)
    assert (found.server, found.port) == ("srv3", "p0")
    assert "d01 is seen at srv1:/dev/sda and srv3:/dev/sda" in found.advice


def test_a_drive_that_reports_otherwise_is_told_with_every_difference(lab: Lab) -> None:
    rack = CabledRack.of(lab)
    one, two = rack.inventories()["srv1"].drives
    other = replace(
        one, identity=replace(one.identity, model="ACME", size_bytes=5, identifiers={"wwn": "5000c500a0000009"})
    )
    (found,) = disagreements(lab, rack.live, with_drives(rack, "srv1", other, two))
    assert "the model is described as 'RL SATA SSD', the drive reports 'ACME'" in found.advice
    assert "the wwn is described as 5000c500a0000001, the drive reports 5000c500a0000009" in found.advice
    assert f"the size is described as {8 << 30} bytes, the drive has 5" in found.advice


def test_a_drive_that_cannot_be_read_is_told_as_such(lab: Lab) -> None:
    rack = CabledRack.of(lab)
    _, two = rack.inventories()["srv1"].drives
    node = "/dev/sda"
    inventory = HostInventory(
        "srv1", (two,), unreadable={node: "it hangs"}, unreadable_by_paths={node: ("pci-0000:10:00.0-ata-1",)}
    )
    (found,) = disagreements(lab, rack.live, {**rack.inventories(), "srv1": inventory})
    assert (found.port, found.found, found.advice) == ("p0", "a drive that cannot be read", "it hangs")


def test_a_drive_behind_the_expander_that_is_missing_or_unknown_is_told_by_its_slot(lab: Lab) -> None:
    rack = CabledRack.of(lab)
    del rack.slots["exp1"][1]
    (found,) = wrong(rack)
    assert (found.server, found.port) == ("srv2", "p1")
    assert found.expected == "d07 (RL SAS HDD, serial S7) in slot 1 of exp1"
    assert found.advice == "is d07 seated in slot 1 of exp1, and has it power?"
    rack.slots["exp1"][3] = "d07"
    (found,) = wrong(rack)
    assert found.advice == "move d07 from slot 3 to slot 1 of exp1, or correct the description"


def test_a_described_drive_where_no_port_has_a_path_is_told_by_its_own(lab: Lab) -> None:
    rack = CabledRack.of(lab)
    (d04,) = rack.inventories()["srv3"].drives
    inventories = with_drives(rack, "srv3", d04, seen(lab, "d05", "pci-0000:77:00.0"))
    (found,) = disagreements(lab, rack.live, inventories)
    assert (found.server, found.port, found.switch_port) == ("srv3", "pci-0000:77:00.0-ata-1", None)


def test_a_servers_own_drives_are_nobodys_business(lab: Lab) -> None:
    rack = CabledRack.of(lab)
    own = SeenDrive("/dev/sdq", DriveIdentity("BOOT", "B1", "1", "sata", 1 << 33), ("pci-0000:00:17.0-ata-1",))
    assert disagreements(lab, rack.live, with_drives(rack, "srv3", *rack.inventories()["srv3"].drives, own)) == []


def test_without_paths_the_server_is_told_and_a_port_that_lacks_something(lab: Lab) -> None:
    servers = {name: server.model_copy(update={"paths": {}}) for name, server in lab.servers.items()}
    rack = CabledRack.of(lab)
    rack.swap(21, 23)
    found = at(disagreements(lab.model_copy(update={"servers": servers}), rack.live, rack.inventories()))
    assert set(found) == {"srv1.p0", "srv2.p0"}
    assert "the cables of d01 and d03 are swapped" in found["srv2.p0"].advice


def test_swapped_cables_of_a_rack_without_a_switch_are_told_by_server_port(fixed: Lab) -> None:
    paths = ["pci-0000:10:00.0", "pci-0000:11:00.0"]
    right = {
        "srv1": HostInventory("srv1", (seen(fixed, "d01", paths[0]), seen(fixed, "d02", paths[1]))),
        "srv2": HostInventory("srv2", (seen(fixed, "d03", paths[0]),)),
    }
    assert disagreements(fixed, PortMap(), right) == []
    swapped = {
        "srv1": HostInventory("srv1", (seen(fixed, "d01", paths[0]), seen(fixed, "d03", paths[1]))),
        "srv2": HostInventory("srv2", (seen(fixed, "d02", paths[0]),)),
    }
    found = at(disagreements(fixed, PortMap(), swapped))
    assert {place: told.advice for place, told in found.items()} == dict.fromkeys(
        ["srv1.p1", "srv2.p0"], "the cables of srv1.p1 and srv2.p0 are swapped"
    )


def test_every_port_has_a_row(lab: Lab) -> None:
    rack = CabledRack.of(lab)
    rows = check_ports(lab, rack.live, rack.inventories())
    assert [f"{row.server}.{row.port}" for row in rows] == [
        "srv1.p0",
        "srv1.p1",
        "srv2.p0",
        "srv2.p1",
        "srv3.p0",
        "srv3.p1",
    ]
    assert [row.expected for row in rows][3:] == ["exp1", "d04 (RL SATA SSD, serial S4)", "nothing"]
    assert rows[3].found.count("serial") == 3
    assert rows[-1].found == "nothing"
    assert not any(row.disagreements for row in rows)


def test_a_disagreement_reads_as_a_sentence(lab: Lab) -> None:
    rack = CabledRack.of(lab)
    rack.swap(22, 25)
    (found,) = wrong(rack)
    assert str(found) == (
        "srv1.p1 (switch port 2): expected d02 (RL NVMe SSD, serial 002), found d05 (RL SATA SSD, serial S5); "
        "the cables of d02 and d05 are swapped (switch ports 22 and 25)"
    )
