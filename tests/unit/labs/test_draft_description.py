"""A first lab description: what was seen is in it, what was not is a comment, and it passes the check."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from socket import gethostname

import pytest

from rackloop.abilities import BlockUsage, BoxIdentity
from rackloop.abilities.inventory import HostInventory, SeenDrive
from rackloop.clock import Deadline, VirtualClock
from rackloop.errors import DescriptionError
from rackloop.lab import EnvironmentSecret, FileSecret, Lab, LabKind, VaultSecret, load_lab
from rackloop.portmap import PortMap
from rackloop_drivers.fabric.flexfabric import FlexFabricDriver
from rackloop_drivers.host import SshAccess
from rackloop_drivers.host_tools import survey_host
from rackloop_labs.draft_description import FILL_IN, DraftDescription, FoundServer, FoundSwitch
from rackloop_labs.ssh_access import ssh_accesses
from tests.unit.harness.cabled_rack import SWITCHED, CabledRack, described, disagreements, seen
from tests.unit.harness.recorded_server import RecordedServer

AT = datetime(2026, 1, 2, tzinfo=UTC)
SWITCH = BoxIdentity("ACME", "Flex 160", "FX1", "1.0")


def access(name: str) -> SshAccess:
    return SshAccess(name, f"{name}.lab.example", Path("/etc/known hosts"), port=2222)


def written(found: DraftDescription, folder: Path) -> tuple[str, Lab]:
    """The text, and the lab it describes; loading it checks it whole."""
    text = found.text(AT)
    path = folder / "found.yaml"
    path.write_text(text, encoding="utf-8")
    return text, load_lab(path)


@pytest.fixture
def known(tmp_path: Path) -> Lab:
    return described(SWITCHED, tmp_path)


def of_rack(rack: CabledRack, name: str = "found") -> DraftDescription:
    servers = [FoundServer(access(server), inventory) for server, inventory in rack.inventories().items()]
    switch = FoundSwitch(SWITCH, ("tcp", "10.0.0.2:5025"), 40, rack.live)
    return DraftDescription(name, servers, switch, rack.lab)


def test_a_described_rack_is_found_as_it_is(known: Lab, tmp_path: Path) -> None:
    text, found = written(of_rack(CabledRack.of(known)), tmp_path)
    assert (found.name, found.kind, found.fabric.ports) == ("found", LabKind.PHYSICAL, 40)
    assert isinstance(found.fabric, FlexFabricDriver)
    assert found.fabric.control.tcp == "10.0.0.2:5025"
    assert found.baseline == known.baseline
    assert {name: server.ports for name, server in found.servers.items()} == {
        name: server.ports for name, server in known.servers.items()
    }
    assert {name: server.paths for name, server in found.servers.items()} == {
        name: server.paths for name, server in known.servers.items()
    }
    joined = set(known.drives) - {"d05"}
    assert set(found.drives) == joined
    for name in joined:
        one, other = found.drives[name], known.drives[name]
        assert (one.serial, one.wwn, one.eui64, one.size) == (other.serial, other.wwn, other.eui64, other.size)
        assert (one.port, one.expander, one.expander_slot) == (other.port, other.expander, other.expander_slot)
    assert found.expanders["exp1"].port == 30
    assert found.expanders["exp1"].slots == 8
    assert f"# {FILL_IN} the drives that no server is joined to" in text


def test_a_rack_of_which_one_server_has_no_paths_is_described_as_attached(known: Lab, tmp_path: Path) -> None:
    found = of_rack(CabledRack.of(known))
    bare = {"srv2": known.servers["srv2"].model_copy(update={"paths": {}})}
    found.known = known.model_copy(update={"servers": {**known.servers, **bare}})
    _, lab = written(found, tmp_path)
    assert not lab.has_switch
    assert set(lab.servers["srv1"].ports.values()) == {None}
    assert lab.servers["srv1"].paths == known.servers["srv1"].paths
    assert lab.drives["d01"].attached == ("srv1", "p0")


def test_an_expander_that_is_attached_for_good_keeps_its_name_and_slots(tmp_path: Path) -> None:
    path = "pci-0000:10:00.0"
    fixed = f"""
name: fixed
kind: mock
fabric: {{driver: static}}
servers: {{srv1: {{ports: {{p0}}, paths: {{p0: '{path}'}}}}}}
expanders: {{shelf: {{attached: srv1/p0, slots: 24}}}}
drives:
  d01: {{profile: sas-hdd, serial: S1, wwn: 5000c500a0000001, size: 8 GiB, expander: shelf, slot: 2, scratch: true}}
"""
    known = described(fixed, tmp_path)
    inventory = HostInventory("srv1", (seen(known, "d01", path, slot=2),))
    _, lab = written(DraftDescription("found", [FoundServer(access("srv1"), inventory)], None, known), tmp_path)
    assert {name: expander.slots for name, expander in lab.expanders.items()} == {"shelf": 24}
    assert (lab.drives["d01"].expander, lab.drives["d01"].expander_slot) == ("shelf", 2)


def test_a_server_is_described_by_the_way_it_was_reached(known: Lab, tmp_path: Path) -> None:
    bastion = SshAccess("bastion", "10.0.0.1", Path("/etc/known hosts"), user="ann", password=FileSecret(Path("/pw")))
    found = of_rack(CabledRack.of(known))
    ways = {
        "srv1": replace(access("srv1"), jump=bastion, password=EnvironmentSecret("ROOT_PASSWORD")),
        "srv2": replace(access("srv2"), jump=bastion, password=VaultSecret(Path("/v.yaml"), "root of srv2")),
    }
    found.servers = [replace(server, access=ways.get(server.access.name, server.access)) for server in found.servers]
    _, lab = written(found, tmp_path)
    reached = ssh_accesses(lab)
    for name, way in ways.items():
        assert reached[name].password == way.password
        jump = reached[name].jump
        assert jump is not None
        assert (jump.name, jump.address, jump.user, jump.password) == (
            "bastion",
            "10.0.0.1:22",
            "ann",
            bastion.password,
        )
    assert reached["srv3"].jump is None


def test_behind_a_switch_no_drive_is_told_by_the_port_it_was_at(known: Lab, tmp_path: Path) -> None:
    found = of_rack(CabledRack.of(known))
    one = seen(known, "d01", known.servers["srv1"].paths["p0"])
    nameless = replace(one, identity=replace(one.identity, model="QEMU NVMe Ctrl", protocol="nvme", identifiers={}))
    found.servers[0] = FoundServer(access("srv1"), HostInventory("srv1", (nameless,)))
    _, lab = written(found, tmp_path)
    drive = lab.drives["d01"]
    assert (drive.profile, drive.port, drive.by_path) == ("qemu-nvme", known.drives["d01"].port, None)


def test_a_rack_is_worked_on_from_the_machine_that_discovered_it(known: Lab, tmp_path: Path) -> None:
    rack = CabledRack.of(known)
    assert written(of_rack(rack), tmp_path)[1].controllers == (gethostname(),)
    described_elsewhere = replace(of_rack(rack), controller="12e4")
    assert written(described_elsewhere, tmp_path)[1].controllers == ("12e4",)


def test_no_drive_is_ever_marked_for_erasing(known: Lab, tmp_path: Path) -> None:
    text, found = written(of_rack(CabledRack.of(known)), tmp_path)
    assert not any(drive.scratch for drive in found.drives.values())
    assert "whether a byte on it is worth keeping cannot be read" in text


def test_what_was_found_is_a_rack_without_disagreement(known: Lab, tmp_path: Path) -> None:
    rack = CabledRack.of(known)
    _, found = written(of_rack(rack), tmp_path)
    assert disagreements(found, rack.live, rack.inventories()) == []


def test_a_new_drive_gets_a_name_that_no_other_has(known: Lab, tmp_path: Path) -> None:
    rack = CabledRack.of(known)
    found = of_rack(rack)
    one = seen(known, "d01", "pci-0000:10:00.0")
    new = replace(one, identity=replace(one.identity, serial="NEW", identifiers={"wwn": "5000c500a00000aa"}))
    found.servers[0] = FoundServer(access("srv1"), HostInventory("srv1", (new,)))
    _, lab = written(found, tmp_path)
    assert lab.drives["d09"].serial == "NEW"
    assert "d01" not in lab.drives


def test_a_drive_at_a_port_that_the_switch_says_is_open_is_left_to_people(known: Lab, tmp_path: Path) -> None:
    found = replace(
        of_rack(CabledRack.of(known)), switch=FoundSwitch(SWITCH, ("tcp", "a:1"), 40, PortMap.of([(2, 22)]))
    )
    text, lab = written(found, tmp_path)
    assert set(lab.drives) == {"d02"}
    assert "serial S1 is seen at srv1.p0, which the switch says is joined to nothing" in text


def test_without_every_path_nobody_knows_the_switch_ports(known: Lab, tmp_path: Path) -> None:
    servers = {name: server.model_copy(update={"paths": {}}) for name, server in known.servers.items()}
    found = replace(of_rack(CabledRack.of(known)), known=known.model_copy(update={"servers": servers}))
    text, lab = written(found, tmp_path)
    assert not lab.has_switch
    assert lab.drives["d01"].attached == ("srv1", "p0")
    assert "ACME Flex 160, serial FX1 answered, but which server port is in which" in text


def recorded() -> FoundServer:
    inventory = survey_host(RecordedServer(name="srv1"), Deadline.after(VirtualClock(), 10))
    return FoundServer(access("srv1"), inventory)


def test_recorded_drives_are_described_where_they_are_seen(tmp_path: Path) -> None:
    text, lab = written(DraftDescription("rack7", [recorded()]), tmp_path)
    server = lab.servers["srv1"]
    assert server.paths == {
        "p0": "pci-0000:00:07.0-sas-phy0",
        "p1": "pci-0000:00:1f.2-ata-2",
        "p2": "pci-0000:01:00.0",
    }
    assert (server.ssh, str(server.known_hosts), server.user) == ("srv1.lab.example:2222", "/etc/known hosts", "root")
    assert [(drive.profile, drive.model, drive.attached) for drive in lab.drives.values()] == [
        ("sas-hdd", "QEMU SAS-HDD", ("srv1", "p0")),
        ("qemu-sata", "QEMU HARDDISK", ("srv1", "p1")),
        ("qemu-nvme", "QEMU NVMe Ctrl", ("srv1", "p2")),
    ]
    # The namespace reports no identifier, so where it is has to tell it.
    assert lab.drives["d03"].by_path == "pci-0000:01:00.0-nvme-1"
    assert "No switch was asked" in text


def test_a_drive_behind_an_adapter_without_phys_is_at_its_target(tmp_path: Path) -> None:
    server = recorded()
    sas, *_ = server.inventory.drives
    drives = tuple(
        replace(sas, by_paths=(f"pci-0000:03:00.0-scsi-0:2:{target}:0",), device=f"/dev/sd{letter}")
        for target, letter in ((0, "a"), (11, "b"))
    )
    text = DraftDescription("rack7", [replace(server, inventory=replace(server.inventory, drives=drives))]).text(AT)
    assert "paths: {p0: 'pci-0000:03:00.0-scsi-0:2:0', p1: 'pci-0000:03:00.0-scsi-0:2:11'}" in text


@pytest.mark.parametrize(
    ("protocol", "is_rotational", "profile"),
    [
        ("nvme", False, "nvme-ssd"),
        ("sata", False, "sata-ssd"),
        ("sata", True, "sata-hdd"),
        ("sas", False, "sas-ssd"),
        ("sas", True, "sas-hdd"),
    ],
)
def test_a_drive_has_the_profile_of_its_protocol_and_medium(
    protocol: str, is_rotational: bool, profile: str, known: Lab, tmp_path: Path
) -> None:
    one = seen(known, "d01", known.servers["srv1"].paths["p0"])
    drive = replace(one, identity=replace(one.identity, model="X1", protocol=protocol), is_rotational=is_rotational)
    found = DraftDescription("found", [FoundServer(access("srv1"), HostInventory("srv1", (drive,)))])
    text, lab = written(found, tmp_path)
    assert lab.drives["d01"].profile == profile, text


def test_a_drive_behind_vmd_is_at_the_address_below_the_controllers(tmp_path: Path) -> None:
    server = recorded()
    *_, nvme = server.inventory.drives
    drive = replace(nvme, by_paths=("pci-0000:00:0e.0-pci-10000:e1:00.0-nvme-1",))
    text, lab = written(
        DraftDescription("rack7", [replace(server, inventory=HostInventory("srv1", (drive,)))]), tmp_path
    )
    assert lab.servers["srv1"].paths == {"p0": "pci-0000:00:0e.0-pci-10000:e1:00.0"}, text


def test_a_switch_whose_ports_nobody_knows_is_a_comment(tmp_path: Path) -> None:
    switch = FoundSwitch(SWITCH, ("serial", "/dev/ttyUSB0"), 160, PortMap.of([(1, 101)]))
    text, lab = written(DraftDescription("rack7", [recorded()], switch), tmp_path)
    assert not lab.has_switch
    assert "# Joined now: 1!101" in text
    assert "# fabric: {driver: flexfabric, ports: 160, control: {serial: /dev/ttyUSB0}}" in text


def test_the_boot_drive_is_left_out_and_a_drive_in_use_is_told(tmp_path: Path) -> None:
    server = recorded()
    sas, sata, nvme = server.inventory.drives
    drives: tuple[SeenDrive, ...] = (
        replace(sas, usage=BlockUsage(("sda1 is mounted at /",), is_boot_drive=True)),
        replace(sata, usage=BlockUsage(("sdb is swap",))),
        replace(nvme, by_paths=()),
    )
    found = FoundServer(server.access, replace(server.inventory, drives=drives, unreadable={"/dev/sdc": "it hangs\nx"}))
    text, lab = written(DraftDescription("rack7", [found]), tmp_path)
    assert [drive.serial for drive in lab.drives.values()] == ["SATADRIVE01"]
    assert "# left out: /dev/sda (QEMU SAS-HDD, serial SASDRIVE01) is its boot drive" in text
    assert "# in use: sdb is swap" in text
    assert f"# {FILL_IN}: /dev/nvme0n1 (QEMU NVMe Ctrl, serial NVMEDRIVE01) is at no port" in text
    assert f"# {FILL_IN}: /dev/sdc cannot be read: it hangs\n" in text


@pytest.mark.parametrize(
    ("size", "told"),
    [(8 << 30, "8 GiB"), (1_600_000_000_000, "1600 GB"), (2 << 40, "2 TiB"), (960_197_124_096, "960197124096 B")],
)
def test_sizes_are_exact(size: int, told: str, tmp_path: Path) -> None:
    server = recorded()
    sas, *_ = server.inventory.drives
    drive = replace(sas, identity=replace(sas.identity, size_bytes=size))
    found = FoundServer(server.access, replace(server.inventory, drives=(drive,)))
    text, lab = written(DraftDescription("rack7", [found]), tmp_path)
    assert lab.drives["d01"].size == size
    assert f"size: {told}," in text


def test_an_expander_nobody_knows_has_as_many_slots_as_are_seen(known: Lab, tmp_path: Path) -> None:
    drives = tuple(
        replace(seen(known, name, "pci-0000:10:00.0", slot=slot), device=f"/dev/sd{slot}")
        for name, slot in (("d06", 0), ("d08", 5))
    )
    server = FoundServer(access("srv1"), HostInventory("srv1", drives))
    text, lab = written(DraftDescription("rack7", [server]), tmp_path)
    assert lab.expanders["exp1"].slots == 6
    assert lab.expanders["exp1"].attached == ("srv1", "p0")
    assert [(drive.expander, drive.slot) for drive in lab.drives.values()] == [("exp1", "0"), ("exp1", "5")]
    assert f"# {FILL_IN} how many slots it has: the highest with a drive is 5" in text


def test_a_model_that_yaml_would_misread_is_quoted(tmp_path: Path) -> None:
    server = recorded()
    sas, *_ = server.inventory.drives
    drive = replace(sas, identity=replace(sas.identity, model="O'Drive: #1, {big}"))
    found = FoundServer(server.access, replace(server.inventory, drives=(drive,)))
    _, lab = written(DraftDescription("rack7", [found]), tmp_path)
    assert lab.drives["d01"].model == "O'Drive: #1, {big}"


def test_what_a_drive_says_of_itself_stays_on_its_line(tmp_path: Path) -> None:
    server = recorded()
    sas, *others = server.inventory.drives
    odd = replace(sas, identity=replace(sas.identity, model="odd\n  'model'\x01"))
    hidden = replace(odd, usage=BlockUsage(("sda1 is mounted at /",), is_boot_drive=True))
    found = FoundServer(server.access, replace(server.inventory, drives=(hidden, *others)))
    text, lab = written(DraftDescription("rack7", [found]), tmp_path)
    assert len(lab.drives) == len(others)
    assert "(odd?  'model'?, serial SASDRIVE01) is its boot drive" in text
    shown = FoundServer(server.access, replace(server.inventory, drives=(odd, *others)))
    with pytest.raises(DescriptionError, match=r"drives\.d01\.model: expected a text"):
        written(DraftDescription("rack7", [shown]), tmp_path)
