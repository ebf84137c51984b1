"""The configuration of a storage switch: which drive it is told of, and by which permission it may be written."""

from __future__ import annotations

from pathlib import Path

from rackloop.lab import Lab, load_lab
from rackloop_drivers.block import NbdExport
from rackloop_drivers.storage_switch import SwitchedTenant
from rackloop_drivers.storage_switch._configuration import configuration, drives_of
from tests.unit.harness.guard_case import Case
from tests.writable_drive import minted

LAB: Lab = load_lab("mock")


def test_an_export_is_reached_by_the_uri_of_the_permitted_drive_alone() -> None:
    export = NbdExport(Path("/run/nbd.sock"), "srv1.p0", 1 << 20, knows_drives=True)
    with minted(export) as drive:
        assert drives_of([drive]) == (
            {drive.drive_id: {"kind": "nbd", "uri": "nbd+unix:///srv1.p0.by-id.RL1?socket=/run/nbd.sock"}},
            [],
        )


def test_a_node_is_compared_with_its_identity_and_written_while_it_is_held() -> None:
    case = Case.sound(LAB)
    case.device.location = case.drive.location = "/dev/disk/by-id/wwn-0x5"
    case.device.reported = {"serial": case.identity.serial, **case.identity.identifiers, "by_path": "pci-0"}
    with case.mint() as drive:
        described, permission = drives_of([drive])
    assert described[case.drive_id] == {
        "kind": "device",
        "node": "/dev/disk/by-id/wwn-0x5",
        "serial": case.identity.serial,
        "size": case.identity.size_bytes,
        "wwn": case.identity.identifiers["wwn"],
    }
    assert permission == [f"--allow-write={case.identity.serial}", "--claimed"]
    case.device.claimable = False
    with case.mint() as drive:
        assert drives_of([drive])[1] == [f"--allow-write={case.identity.serial}"]


def test_several_drives_are_told_by_their_ids_and_each_is_permitted_by_its_serial() -> None:
    cases = [Case.sound(LAB, drive_id) for drive_id in ("d01", "d02")]
    for case in cases:
        case.device.location = case.drive.location = f"/dev/{case.drive_id}"
    with cases[0].mint() as one, cases[1].mint() as other:
        described, permission = drives_of([one, other])
        assert {name: found["node"] for name, found in described.items()} == {"d01": "/dev/d01", "d02": "/dev/d02"}
        allowed = [f"--allow-write={case.identity.serial}" for case in cases]
        assert permission == [*allowed, "--claimed"]
    cases[1].device.claimable = False
    with cases[0].mint() as one, cases[1].mint() as other:
        assert drives_of([one, other])[1] == allowed


def test_tenants_have_their_regions_weights_and_objectives() -> None:
    slo = {"iops": 500.0, "read_percent": 100.0, "p95_us": 2000.0}
    tenants = [
        SwitchedTenant("a", 0, 4096, weight=2, slo=slo),
        SwitchedTenant("b", 4096, 8192, drive="d01", read_only=True),
    ]
    made = configuration({"d01": {"kind": "memory"}}, {"kind": "reflex"}, tenants, control="/c", nbd="/n")
    assert made["drives"] == [{"name": "d01", "kind": "memory"}]
    assert (made["schema"], made["control"], made["nbd"], made["scheduler"]) == (1, "/c", "/n", {"kind": "reflex"})
    assert made["tenants"] == [
        {"name": "a", "region": {"offset": 0, "bytes": 4096}, "weight": 2, "slo": slo, "read_only": False},
        {
            "name": "b",
            "drive": "d01",
            "region": {"offset": 4096, "bytes": 8192},
            "weight": 1.0,
            "slo": None,
            "read_only": True,
        },
    ]
