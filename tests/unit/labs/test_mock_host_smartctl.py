from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from rackloop_labs.mock_hosts._view import AttachedDrive, AttachedExpander, HostView
from tests.transcripts.guest import GUEST, NVME, PORTS, SAS, SATA_HDD, SATA_SSD, run, with_counters


def _json(*argv: str, view: HostView = GUEST) -> Any:
    return json.loads(run("smartctl", "-j", *argv, view=view).stdout)


def test_a_drive_that_is_gone_is_not_scanned_and_cannot_be_opened() -> None:
    without = replace(GUEST, drives=tuple(drive for drive in GUEST.drives if drive is not SAS))
    assert "/dev/sda" not in run("smartctl", "--scan", view=without).stdout
    answer = run("smartctl", "-a", "/dev/sda", view=without)
    assert "Smartctl open device: /dev/sda failed: No such device" in answer.stdout
    assert answer.status == 2
    assert "devices" not in _json("--scan", view=replace(GUEST, drives=()))


@pytest.mark.parametrize(
    ("drive", "device", "status"), [(NVME, "nvme0", 8), (SAS, "sda", 8), (SATA_SSD, "sdb", 8 | 16)]
)
def test_a_drive_with_many_media_errors_is_failing(drive: AttachedDrive, device: str, status: int) -> None:
    failing = with_counters(drive, media_errors=94)
    assert _json("-H", f"/dev/{device}", view=failing)["smart_status"]["passed"] is False
    assert run("smartctl", "-H", f"/dev/{device}", view=failing).status == status
    well = with_counters(drive, media_errors=93)
    assert _json("-H", f"/dev/{device}", view=well)["smart_status"]["passed"] is True
    assert run("smartctl", "-H", f"/dev/{device}", view=well).status == 0


def test_media_errors_are_in_the_attributes_and_the_error_log_of_a_sata_drive() -> None:
    view = with_counters(SATA_HDD, media_errors=2, failed_lbas=(7, 0x1_2345_6789))
    document = _json("-A", "-l", "error", "-l", "xerror", "/dev/sdc", view=view)
    raw = {row["id"]: row["raw"]["value"] for row in document["ata_smart_attributes"]["table"]}
    assert [raw[number] for number in (187, 197, 198)] == [2, 2, 2]
    log = document["ata_smart_error_log"]
    assert [error["completion_registers"]["lba"] for error in log["extended"]["table"]] == [0x1_2345_6789, 7]
    assert [error["completion_registers"]["lba"] for error in log["summary"]["table"]] == [0x45_6789, 7]
    assert document["smartctl"]["exit_status"] == 64
    text = run("smartctl", "-l", "xerror", "/dev/sdc", view=view).stdout
    assert "40 -- 51 00 01 00 01 23 45 67 89 40 00  Error: UNC" in text


def test_reallocated_sectors_are_an_attribute_of_a_sata_drive_and_grown_defects_of_a_sas_drive() -> None:
    sata = _json("-A", "/dev/sdc", view=with_counters(SATA_HDD, reallocated_sectors=3))
    raw = {row["id"]: row["raw"]["value"] for row in sata["ata_smart_attributes"]["table"]}
    assert raw[5] == 3
    view = with_counters(SAS, reallocated_sectors=3)
    assert _json("-a", "/dev/sda", view=view)["scsi_grown_defect_list"] == 3
    assert "Elements in grown defect list: 3" in run("smartctl", "-a", "/dev/sda", view=view).stdout


def test_logs_hold_the_newest_errors_alone() -> None:
    lbas = tuple(range(100, 110))
    view = with_counters(SATA_SSD, media_errors=10, failed_lbas=lbas)
    log = _json("-l", "error", "-l", "xerror", "/dev/sdb", view=view)["ata_smart_error_log"]
    assert [error["error_number"] for error in log["summary"]["table"]] == [10, 9, 8, 7, 6]
    assert [error["log_index"] for error in log["extended"]["table"]] == [1, 0, 3, 2]
    assert (
        "(device log contains only the most recent 4 errors)"
        in run("smartctl", "-l", "xerror", "/dev/sdb", view=view).stdout
    )


def test_lost_links_are_counted_at_the_phy() -> None:
    sata = _json("-l", "sataphy", "/dev/sdb", view=with_counters(SATA_SSD, phy_resets=7))
    assert [event["value"] for event in sata["sata_phy_event_counters"]["table"]] == [0, 7, 7, 0]
    sas = _json("-l", "sasphy", "/dev/sda", view=with_counters(SAS, phy_resets=7))
    assert sas["scsi_sas_port_0"]["phy_0"]["loss_of_dword_synchronization_count"] == 7


def test_a_sas_drive_names_what_it_is_attached_to() -> None:
    assert _json("-l", "sasphy", "/dev/sda")["scsi_sas_port_0"]["phy_0"]["attached_sas_address"] == "0x5000c50000000000"
    expander = AttachedExpander("exp1", PORTS[0], 12, "500605b000000010", "sg9")
    view = replace(GUEST, drives=(replace(SAS, expander=expander, slot=4),))
    phy = _json("-l", "sasphy", "/dev/sda", view=view)["scsi_sas_port_0"]["phy_0"]
    assert phy["attached_sas_address"] == "0x500605b000000010"
    assert phy["attached_phy_identifier"] == 4
    assert phy["attached_device_type"] == "expander device"


def test_wear_shows_on_each_protocol_and_on_no_disk() -> None:
    nvme = _json("-A", "/dev/nvme0", view=with_counters(NVME, erase_count_mean=1500))
    assert nvme["nvme_smart_health_information_log"]["percentage_used"] == 50
    table = _json("-A", "/dev/sdb", view=with_counters(SATA_SSD, erase_count_mean=1510))["ata_smart_attributes"][
        "table"
    ]
    assert [(row["value"], row["raw"]["value"]) for row in table if row["id"] == 177] == [(50, 1510)]
    disk = _json("-A", "/dev/sdc")["ata_smart_attributes"]["table"]
    assert [row["id"] for row in disk if row["id"] == 177] == []
    assert run("smartctl", "-l", "ssd", "/dev/sdc").status == 4


def test_sizes_are_in_three_digits_cut_off() -> None:
    view = replace(GUEST, drives=(replace(SATA_SSD, size_bytes=8 << 30, sector_bytes=4096),))
    text = run("smartctl", "-i", "/dev/sdb", view=view).stdout
    assert "User Capacity:    8,589,934,592 bytes [8.58 GB]\n" in text
    assert "Sector Size:      4096 bytes logical/physical\n" in text


@pytest.mark.parametrize(("drive", "device"), [(SAS, "sda"), (SATA_HDD, "sdc")])
def test_a_disk_turns_as_fast_as_its_model(drive: AttachedDrive, device: str) -> None:
    view = replace(GUEST, drives=(replace(drive, rpm=15000),))
    assert _json("-i", f"/dev/{device}", view=view)["rotation_rate"] == 15000
    assert "15000 rpm" in run("smartctl", "-i", f"/dev/{device}", view=view).stdout
    assert _json("-i", f"/dev/{device}")["rotation_rate"] == 7200


@pytest.mark.parametrize("option", ["-t", "--test=short", "-s", "-X", "--frobnicate"])
def test_what_would_change_a_drive_is_an_unknown_option(option: str) -> None:
    answer = run("smartctl", option, "/dev/sda")
    assert "=======> UNRECOGNIZED OPTION: " in answer.stdout
    assert answer.status == 1


def test_a_device_of_another_type_is_not_opened() -> None:
    assert run("smartctl", "-H", "-d", "nvme", "/dev/sda").status == 2
    assert run("smartctl", "-H", "-d", "auto", "/dev/sda").status == 0
    assert run("smartctl", "-H", "-d", "scsi", "/dev/sda").status == 0


def test_the_same_drive_answers_by_its_generic_name() -> None:
    view = replace(GUEST, drives=(replace(SAS, generic="sg3"),))
    document = _json("-i", "/dev/sg3", view=view)
    assert document["device"]["name"] == "/dev/sg3"
    assert document["serial_number"] == SAS.serial


def test_links_below_dev_disk_lead_to_the_drive() -> None:
    by_path = f"/dev/disk/by-path/{SAS.by_path}"
    assert _json("-i", by_path)["serial_number"] == SAS.serial
    assert _json("-i", by_path)["device"]["name"] == by_path
    assert run("smartctl", "-i", "/dev/disk/by-path/pci-0000:99:00.0-ata-1").status == 1
