"""Drives read through a server's tools: recordings of real ones, their errors, and formats nobody has seen."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rackloop.abilities import DriveIdentity
from rackloop.abilities.inventory import HostInventory, SeenPhy
from rackloop.clock import Deadline, VirtualClock
from rackloop.contracts import drive as contract
from rackloop.errors import DeadlineExceeded, LabError, ProtocolError, ToolError, UnknownFormat
from rackloop_drivers.drive import HostDrive
from rackloop_drivers.host_tools import identify_drive, read_drive, survey_host
from rackloop_drivers.host_tools._lsblk import parse_lsblk
from tests.transcripts.drift import recording
from tests.unit.harness.recorded_server import RECORDED, RecordedServer, answered, changed

SOON = Deadline.after(VirtualClock(), 10)
MIB = 1 << 20


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where what is printed in an unknown format is kept."""
    monkeypatch.setenv("RACKLOOP_STATE_HOME", str(tmp_path))
    return tmp_path


def surveyed(server: RecordedServer) -> HostInventory:
    return survey_host(server, SOON)


def test_every_drive_is_read_in_one_command() -> None:
    server = RecordedServer()
    found = surveyed(server)
    assert len(server.ran) == 1
    assert found.host == "srv9"
    assert found.unreadable == {}
    assert [drive.device for drive in found.drives] == ["/dev/sda", "/dev/sdb", "/dev/nvme0n1"]


def test_identities_are_those_that_the_tools_report() -> None:
    sas, sata, nvme = (drive.identity for drive in surveyed(RecordedServer()).drives)
    assert sas == DriveIdentity(
        "QEMU SAS-HDD",
        "SASDRIVE01",
        "2.5+",
        "sas",
        256 * MIB,
        {"wwn": "5000c50000000abc", "by_path": "pci-0000:00:07.0-sas-phy0-lun-0", "slot": "7"},
    )
    assert sata == DriveIdentity(
        "QEMU HARDDISK",
        "SATADRIVE01",
        "2.5+",
        "sata",
        256 * MIB,
        {"wwn": "5000c50000000def", "by_path": "pci-0000:00:1f.2-ata-2"},
    )
    assert nvme == DriveIdentity(
        "QEMU NVMe Ctrl",
        "NVMEDRIVE01",
        "7.2.22",
        "nvme",
        256 * MIB,
        {"by_path": "pci-0000:01:00.0-nvme-1", "slot": "0"},
    )


def test_what_udev_and_sysfs_say_is_there() -> None:
    sas, sata, _ = surveyed(RecordedServer()).drives
    assert sata.by_paths == ("pci-0000:00:1f.2-ata-2", "pci-0000:00:1f.2-ata-2.0")
    assert sata.is_at("pci-0000:00:1f.2-ata-2")
    assert not sata.is_at("pci-0000:00:1f.2-ata-20")
    assert (sas.is_rotational, sata.is_rotational) == (True, False)
    assert surveyed(RecordedServer()).phys == (
        SeenPhy(
            "phy-6:0", "0x5000c50000000abc", "3.0 Gbit", True, {"invalid_dword_count": 3, "phy_reset_problem_count": 0}
        ),
    )


def test_identifiers_of_a_namespace_are_read() -> None:
    server = changed("id-ns nvme0n1", eui64="0025385b71b00009", nguid="01000000000000000025385b71b00009")
    *_, nvme = surveyed(server).drives
    expected = {"eui64": "0025385b71b00009", "nguid": "01000000000000000025385b71b00009"}
    assert expected.items() <= nvme.identity.identifiers.items()


def test_nvme_counters_have_the_names_of_the_specification() -> None:
    *_, nvme = surveyed(RecordedServer()).drives
    assert nvme.counters == {
        "available_spare": 0,
        "available_spare_threshold": 0,
        "controller_busy_time": 0,
        "critical_warning": 0,
        "data_units_read": 5,
        "data_units_written": 0,
        "error_log_entries": 0,
        "host_read_commands": 100,
        "host_write_commands": 0,
        "media_errors": 0,
        "percentage_used": 0,
        "power_cycles": 0,
        "power_on_hours": 0,
        "temperature_c": 50,
        "unsafe_shutdowns": 0,
    }


def test_ata_counters_have_the_names_that_health_knows() -> None:
    _, sata, _ = surveyed(RecordedServer()).drives
    expected = {"reallocated_sectors": 0, "power_cycles": 0, "power_on_hours": 1, "temperature_c": 31}
    assert expected.items() <= sata.counters.items()


def attribute(name: str, value: int) -> dict[str, Any]:
    return {"id": 1, "name": name, "raw": {"value": value, "string": str(value)}}


def test_ata_attributes_and_phy_events_are_counted_under_one_name_whoever_made_the_drive() -> None:
    table = [attribute("UDMA_CRC_Error_Count", 3), attribute("Current_Pending_Sector", 4)]
    table += [attribute("Reported_Uncorrect", 5), attribute("Unexpect_Power_Loss_Ct", 6), attribute("ACME_Magic", 7)]
    server = changed(
        "smartctl sdb",
        ata_smart_attributes={"table": table},
        sata_phy_event_counters={"table": [{"id": 10, "value": 8}, {"id": 1, "value": 9}]},
    )
    _, sata, _ = surveyed(server).drives
    expected = {"crc_errors": 3, "pending_sectors": 4, "uncorrectable_errors": 5, "unsafe_shutdowns": 6}
    assert {**expected, "acme_magic": 7, "phy_resets": 8}.items() <= sata.counters.items()


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("Reallocate_NAND_Blk_Cnt", "reallocated_sectors"),
        ("Reallocated_Block_Count", "reallocated_sectors"),
        ("Later_Bad_Block", "reallocated_sectors"),
        ("Reported_UE_Counts", "uncorrectable_errors"),
        ("Total_Unc_NAND_Reads", "uncorrectable_errors"),
        ("Pending_Sector_Count", "pending_sectors"),
        ("Unexpected_Power_Loss_Count", "unsafe_shutdowns"),
        ("POR_Recovery_Count", "unsafe_shutdowns"),
    ],
)
def test_flash_drives_have_names_of_their_own_for_what_health_looks_at(theirs: str, ours: str) -> None:
    table = {"table": [attribute(theirs, 3)]}
    _, sata, _ = surveyed(changed("smartctl sdb", ata_smart_attributes=table)).drives
    assert sata.counters[ours] == 3


@pytest.mark.parametrize("log", ["summary", "extended"])
def test_entries_of_either_ata_error_log_are_counted(log: str) -> None:
    _, sata, _ = surveyed(changed("smartctl sdb", ata_smart_error_log={log: {"revision": 1, "count": 3}})).drives
    assert sata.counters["error_log_entries"] == 3


def test_scsi_errors_are_counted() -> None:
    errors = {"read": {"total_uncorrected_errors": 2}, "write": {"total_uncorrected_errors": 1}}
    phys = {"loss_of_dword_synchronization_count": 5, "invalid_dword_count": 6}
    server = changed(
        "smartctl sda",
        scsi_grown_defect_list=4,
        scsi_error_counter_log=errors,
        scsi_start_stop_cycle_counter={"accumulated_start_stop_cycles": 7},
        scsi_sas_port_0={"phy_0": phys},
        scsi_sas_port_1={"phy_0": phys},
    )
    sas, *_ = surveyed(server).drives
    assert {"grown_defects": 4, "media_errors": 3, "start_stop_count": 7}.items() <= sas.counters.items()
    assert {"phy_resets": 10, "invalid_dwords": 12, "phy_reset_problems": 0}.items() <= sas.counters.items()


def with_status(status: int, *messages: str) -> RecordedServer:
    document = RECORDED["smartctl sdb"].document["smartctl"]
    told = [{"string": text, "severity": "error"} for text in messages]
    return changed("smartctl sdb", smartctl={**document, "exit_status": status, "messages": told})


@pytest.mark.parametrize(
    ("bit", "finding"),
    [
        (3, "SMART status: the drive is failing"),
        (4, "an attribute is at or below its threshold"),
        (5, "an attribute was at or below its threshold in the past"),
        (6, "the drive's error log has entries"),
        (7, "the drive's self-test log has errors"),
    ],
)
def test_the_upper_bits_of_smartctls_status_are_findings(bit: int, finding: str) -> None:
    _, sata, _ = surveyed(with_status(1 << bit)).drives
    assert sata.findings == (finding,)


@pytest.mark.parametrize("status", [1, 2, 3])
def test_the_lower_bits_say_that_the_drive_could_not_be_asked(status: int) -> None:
    found = surveyed(with_status(status, "Permission denied"))
    assert found.unreadable == {"/dev/sdb": "srv9:/dev/sdb: smartctl could not ask the drive: Permission denied"}
    assert found.unreadable_by_paths["/dev/sdb"][0] == "pci-0000:00:1f.2-ata-2"
    assert [drive.device for drive in found.drives] == ["/dev/sda", "/dev/nvme0n1"]


def test_a_drive_that_went_away_is_told_in_smartctls_words() -> None:
    gone = recording("smartctl-no-such.json")
    found = surveyed(RecordedServer(answers={**RECORDED, "smartctl sdb": gone}))
    assert found.unreadable["/dev/sdb"].endswith("Smartctl open device: /dev/sdz failed: No such device")


def test_a_drive_that_warns_is_a_finding() -> None:
    *_, nvme = surveyed(changed("smart-log nvme0n1", critical_warning=4)).drives
    assert nvme.findings == ("the drive warns: critical_warning is 0x4",)


def test_a_tool_that_hangs_costs_its_own_drive_only() -> None:
    found = surveyed(RecordedServer(answers={**RECORDED, "id-ns nvme0n1": answered("", status=-1)}))
    assert found.unreadable["/dev/nvme0n1"].startswith("srv9:/dev/nvme0n1: nvme did not end in time")
    assert len(found.drives) == 2


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("smartctl sdb", "srv9:/dev/sdb: smartctl printed nothing: Killed"),
        ("smart-log nvme0n1", "srv9:/dev/nvme0n1: nvme failed at smart-log: Killed"),
    ],
)
def test_a_tool_that_is_killed_costs_its_own_drive_only(asked: str, told: str) -> None:
    found = surveyed(RecordedServer(answers={**RECORDED, asked: answered("", "Killed\n", 137)}))
    assert list(found.unreadable.values()) == [told]
    assert len(found.drives) == 2


def test_a_failing_drive_whose_smartctl_ends_as_if_it_was_late_is_read() -> None:
    """Its exit status is a sum, and 124 where a command failed, the drive is failing, and an error log has entries."""
    report = json.loads(RECORDED["smartctl sdb"].stdout)
    report["smartctl"]["exit_status"] = 124
    report["smart_status"] = {"passed": False}
    found = surveyed(RecordedServer(answers={**RECORDED, "smartctl sdb": answered(json.dumps(report), status=124)}))
    assert not found.unreadable
    [failing] = [drive for drive in found.drives if drive.device == "/dev/sdb"]
    assert failing.counters["critical_warning"] == 1
    assert "SMART status: the drive is failing" in failing.findings


def test_a_controller_that_refuses_is_told_in_its_words() -> None:
    found = surveyed(RecordedServer(answers={**RECORDED, "id-ctrl nvme0n1": recording("nvme-no-such")}))
    assert "/dev/nvme9: No such file or directory" in found.unreadable["/dev/nvme0n1"]


@pytest.mark.parametrize(
    ("asked", "tool", "package"),
    [
        ("lsblk -", "lsblk", "util-linux"),
        ("smartctl sdb", "smartctl", "smartmontools"),
        ("smart-log nvme0n1", "nvme", "nvme-cli"),
    ],
)
def test_a_missing_tool_is_named_with_its_host_and_package(asked: str, tool: str, package: str) -> None:
    missing = RecordedServer(answers={**RECORDED, asked: answered("", "not found\n", 127)})
    with pytest.raises(ToolError, match=f"{tool} was not found on srv9: install its package {package} there"):
        surveyed(missing)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"serial_number": None}, "smartctl 7.3 got no serial_number of the drive"),
        ({"user_capacity": None}, "smartctl 7.3 got no user_capacity.bytes of the drive"),
        ({"model_name": None, "firmware_version": None}, "smartctl 7.3 got no model_name, firmware_version of the"),
        ({"device": {"protocol": "NVMe"}}, "smartctl asks the drive by NVMe, neither ATA nor SCSI"),
    ],
)
def test_a_drive_that_does_not_say_who_it_is_costs_no_other(fields: dict[str, Any], told: str) -> None:
    server = changed("smartctl sdb", **fields)
    found = surveyed(server)
    assert [drive.device for drive in found.drives] == ["/dev/sda", "/dev/nvme0n1"]
    assert found.unreadable["/dev/sdb"].startswith(f"srv9:/dev/sdb: {told}")
    with pytest.raises(ProtocolError, match=told):
        identify_drive(server, "/dev/sdb", SOON)


def test_a_survey_that_breaks_off_is_an_error_of_the_host() -> None:
    with pytest.raises(LabError, match="srv9: the survey of its drives failed: sh: out of memory"):
        surveyed(RecordedServer(ended="sh: out of memory"))


def disk(**fields: Any) -> dict[str, Any]:
    return {"name": "sda", "kname": "sda", "type": "disk", "size": 5, "rota": False, "mountpoints": [None], **fields}


def usage_of(sda: dict[str, Any]) -> tuple[tuple[str, ...], bool]:
    others = [entry for entry in RECORDED["lsblk -"].document["blockdevices"] if entry["kname"] != "sda"]
    used = surveyed(changed("lsblk -", blockdevices=[sda, *others])).drives[0].usage
    return used.claims, used.is_boot_drive


def part(**fields: Any) -> dict[str, Any]:
    return {"name": "sda1", "kname": "sda1", "type": "part", "size": 5, "rota": False, "mountpoints": [None], **fields}


@pytest.mark.parametrize(
    ("sda", "claims", "is_boot_drive"),
    [
        (disk(), (), False),
        (disk(children=[part(mountpoints=["/"])]), ("sda1 is mounted at /",), True),
        (disk(children=[part(mountpoints=["[SWAP]"])]), ("sda1 is swap",), False),
        (disk(fstype="zfs_member"), ("sda is a ZFS pool's member",), False),
        (
            disk(children=[part(fstype="linux_raid_member", children=[part(name="md0", type="raid1")])]),
            ("sda1 is an md array's member", "md0 (raid1) is built on it"),
            False,
        ),
        (disk(children=[part(name="bcache0", type="disk")]), ("bcache0 (disk) is built on it",), False),
        (disk(children=[part(fstype="btrfs")]), ("sda1 is a device of a Btrfs file system",), False),
        (disk(fstype="bcache"), ("sda is a backing or cache device of bcache",), False),
        (disk(fstype="drbd"), ("sda is a DRBD backing device",), False),
        (disk(fstype="ceph_bluestore"), ("sda is a Ceph OSD's device",), False),
        (disk(children=[part(fstype="bcachefs")]), ("sda1 is a device of a bcachefs file system",), False),
        (disk(children=[part(fstype="jbd")]), ("sda1 is the journal of an ext4 file system",), False),
        (disk(fstype="xfs_external_log"), ("sda is the log of an XFS file system",), False),
        (disk(children=[part(fstype="oracleasm")]), ("sda1 is a disk of Oracle ASM",), False),
        (disk(fstype="stratis"), ("sda is a device of a Stratis pool",), False),
        (disk(fstype="vdo"), ("sda is a VDO volume's device",), False),
        (disk(fstype="DM_integrity"), ("sda is a device of dm-integrity",), False),
        (disk(fstype="LVM1_member"), ("sda is an LVM physical volume",), False),
        (
            disk(fstype="silicon_medley_raid_member"),
            ("sda is a member of something (silicon_medley_raid_member)",),
            False,
        ),
    ],
)
def test_who_uses_a_drive_is_told(sda: dict[str, Any], claims: tuple[str, ...], is_boot_drive: bool) -> None:
    assert usage_of(sda) == (claims, is_boot_drive)


def test_mounts_are_found_as_versions_before_2_37_print_them() -> None:
    used = parse_lsblk(recording("lsblk-2.36.json").stdout, "srv9")["sda"].usage
    assert used.claims == ("sda1 is mounted at /boot/efi", "sda2 is mounted at /", "sda3 is swap")
    assert used.is_boot_drive


def test_without_a_word_of_mounts_nobody_can_tell_who_uses_a_drive() -> None:
    lacking = disk(children=[{key: value for key, value in part().items() if key != "mountpoints"}])
    with pytest.raises(UnknownFormat, match="mountpoint"):
        parse_lsblk(json.dumps({"blockdevices": [lacking]}), "srv9")


def test_one_drive_is_read_by_its_node() -> None:
    server = RecordedServer()
    assert read_drive(server, "/dev/nvme0n1", SOON).device == "/dev/nvme0n1"
    assert server.ran[0][5:] == ("/dev/nvme0n1",)


def test_one_drive_is_read_by_the_path_of_its_port() -> None:
    assert read_drive(RecordedServer(), "pci-0000:00:1f.2-ata-2", SOON).device == "/dev/sdb"
    assert read_drive(RecordedServer(), "pci-0000:01:00.0", SOON).device == "/dev/nvme0n1"


def test_a_path_is_read_to_the_end_of_its_number() -> None:
    with pytest.raises(LabError, match="no drive at pci-0000:00:1"):
        read_drive(RecordedServer(), "pci-0000:00:1", SOON)


def test_a_path_with_several_drives_is_no_drive() -> None:
    server = RecordedServer()
    server.listings["by-path"] += "pci-0000:01:00.0-sas-exp0x5000c500a00000ff-phy5-lun-0 ../../sda\n"
    with pytest.raises(LabError, match=r"srv9: 2 drives are at pci-0000:01:00\.0: sda, nvme0n1; name one"):
        read_drive(server, "pci-0000:01:00.0", SOON)


def test_a_node_without_a_drive_is_told() -> None:
    with pytest.raises(LabError, match="srv9: no drive at /dev/sdz; is it plugged in and mapped"):
        read_drive(RecordedServer(), "/dev/sdz", SOON)


def test_a_drive_says_where_it_is() -> None:
    assert HostDrive(RecordedServer(), "/dev/sda").location == "srv9:/dev/sda"


@pytest.mark.parametrize("device", ["/dev/sda", "/dev/sdb", "/dev/nvme0n1"])
@pytest.mark.parametrize("clause", contract.CONTRACT, ids=lambda clause: clause.__name__)
def test_recorded_drives_keep_the_contract(device: str, clause: Any) -> None:
    clause(lambda: HostDrive(RecordedServer(), device))


def test_a_deadline_that_is_over_is_refused() -> None:
    late = VirtualClock()
    deadline = Deadline.after(late, 1)
    late.advance(2)
    with pytest.raises(DeadlineExceeded):
        survey_host(RecordedServer(), deadline)
