"""The emulated tools and /sys of mock servers against what a guest of a virtual rack was recorded to print.

``tests/virtual`` records anew and compares with what is kept here; ``record_guest.py`` keeps it.
"""

from __future__ import annotations

import json
import posixpath
from pathlib import Path

import pytest

from rackloop_labs.mock_hosts._sysfs_ports import build_tree
from rackloop_labs.mock_hosts._tree import Link
from rackloop_labs.mock_hosts.tools import TOOLS
from tests.transcripts.drift import Declared, Recording, undeclared
from tests.transcripts.guest import drift
from tests.transcripts.guest_commands import COMMANDS, RETURNS
from tests.transcripts.record_guest import drifted, keep, kept_recordings
from tests.transcripts.test_smartctl_drift import SATA_DISK_WITH_LOGS
from tests.transcripts.virtual_guest import virtual_guest

_MORE = "the drive reports more than QEMU's"
_NO_SELF_TEST = "QEMU's drive cannot log self-tests, or not in this log, and says so by the status"
_ONE_NAMESPACE = "the drive has one namespace, so that its size is the controller's; QEMU's may have 256"
_ROOT = "the guest's root is on one more, virtual disk, of which these are unknown"
_NEWER = "the drive is of a newer standard than QEMU's"
_PLACE = "a mock server's SCSI hosts are numbered by its ports, those of a kernel in the order in which they came"
_GEOMETRY = "words of IDENTIFY that nothing here needs and rackd does not model"
_SECURITY = "QEMU's drive has no Security feature set, by which drives of a mock server erase themselves"
_NO_CHECKSUM = "QEMU's drive has no checksum in what it identifies itself by"
_NO_HOST_ID = "a guest has no /etc/nvme/hostid, which all would share, until a playbook gives it one of its own"
_TRIP = "smartctl puts a trip temperature that is not 0 under temperature"

DECLARED: dict[str, Declared] = {
    "hdparm-I": {
        **dict.fromkeys(
            (
                "missing \tUsed: ATA/ATAPI-*",
                "*Supported: # # #*",
                "extra \tLikely used: #",
                "missing \tLogical\t\tmax\tcurrent",
                "missing \tcylinders*",
                "missing \theads*",
                "missing \tsectors/track*",
                "missing \t--",
                "missing \tCHS current addressable sectors: #",
                "missing \tLBA    user addressable sectors: #",
                "missing \tcache/buffer size *",
                "missing Capabilities:",
                "missing \tLBA, IORDY*",
                "missing \tQueue depth: #",
                "missing \tStandby timer values*",
                "missing \tR/W multiple sector transfer*",
                "missing \tDMA: *",
                "missing \t     Cycle time: *",
                "missing \tPIO: *",
            ),
            _GEOMETRY,
        ),
        **dict.fromkeys(("extra \t    \tSecurity Mode feature set", "extra Security: ", "extra \t*"), _SECURITY),
        **dict.fromkeys(
            ("missing HW reset results:", "missing \tCBLID- above Vih", "missing \tDevice num = #"), _GEOMETRY
        ),
        "missing Integrity word not set *": _NO_CHECKSUM,
        "extra Checksum: correct": _NO_CHECKSUM,
        "stderr: missing SG_IO: bad/missing sense data*": "QEMU's drive refuses a command that hdparm tries first",
    },
    "nvme-list-v.json": {"extra Devices[].HostID": _NO_HOST_ID},
    "lsblk.json": dict.fromkeys(
        (
            f"type blockdevices[].{name}: string, not null|string"
            for name in ("serial", "tran", "model", "wwn", "state")
        ),
        _ROOT,
    ),
    "lsscsi": {"* disk    QEMU     QEMU HARDDISK *": _PLACE},
    "lsscsi-s": {"* disk    QEMU     QEMU HARDDISK *": _PLACE},
    "smartctl-x-nvme.json": dict.fromkeys(
        ("extra nvme_total_capacity", "extra nvme_unallocated_capacity"), _ONE_NAMESPACE
    ),
    "smartctl-x-sas.json": {
        **dict.fromkeys(
            (
                "extra form_factor",
                "extra temperature_warning",
                "extra smart_status",
                "extra smart_support.enabled",
                "extra power_on_time",
                "extra scsi_start_stop_cycle_counter",
                "extra scsi_grown_defect_list",
                "extra scsi_error_counter_log",
                "extra scsi_background_scan",
                "extra scsi_sas_port_0",
            ),
            _MORE,
        ),
        "missing scsi_temperature": _TRIP,
        "extra temperature.drive_trip": _TRIP,
        "status 0, not 4": _NO_SELF_TEST,
    },
    "smartctl-x-sata.json": SATA_DISK_WITH_LOGS,
}

NOT_EMULATED = {
    "udevadm": "no udev runs on a mock server, and nothing asks it there",
}
"""The tools of the recordings that a mock server has not, with the reason."""

FOLDERS = {
    "sysfs-nvme": "class/nvme/nvme0",
    "sysfs-block": "block/sda",
    "sysfs-queue": "block/sda/queue",
    "sysfs-scsi": "block/sda/device",
}
"""The folders of /sys whose attributes are recorded, by the name of the recording."""
EXTRA: dict[str, Declared] = {
    "sysfs-scsi": {
        "extra sas_address": "a SAS adapter's driver says its drives' addresses, the guest's is no SAS adapter"
    }
}

KEPT = kept_recordings()
EMULATED = sorted(name for name, kept in KEPT.items() if kept.argv[0] in TOOLS)


@pytest.mark.parametrize("name", EMULATED)
def test_an_emulated_tool_answers_as_the_guests_did(name: str) -> None:
    assert undeclared(drift(KEPT[name], virtual_guest()), DECLARED.get(name, {})) == []


def test_every_tool_that_was_recorded_is_emulated_or_declared_not_to_be() -> None:
    recorded = {command.split()[0] for command in COMMANDS.values()} - {"find"}
    assert recorded - TOOLS.keys() == NOT_EMULATED.keys()
    assert KEPT.keys() == COMMANDS.keys() | RETURNS.keys()
    assert DECLARED.keys() <= set(EMULATED)


@pytest.mark.parametrize("name", sorted(FOLDERS))
def test_the_attributes_of_a_mock_server_are_those_of_a_kernel(name: str) -> None:
    entries = build_tree(virtual_guest()).entries
    folder = ""
    for part in FOLDERS[name].split("/"):
        above, folder = folder, posixpath.join(folder, part)
        if isinstance(link := entries.get(folder), Link):
            folder = posixpath.normpath(posixpath.join(above, link.target))
    emulated = {
        posixpath.basename(path)
        for path, entry in entries.items()
        if posixpath.dirname(path) == folder and entry is not None and not isinstance(entry, Link)
    }
    assert emulated, folder
    findings = [f"extra {attribute}" for attribute in sorted(emulated - set(KEPT[name].stdout.split()))]
    assert undeclared(findings, EXTRA.get(name, {})) == []


@pytest.mark.parametrize("name", sorted(RETURNS))
def test_events_of_a_drive_say_what_an_attach_log_takes_from_them(name: str) -> None:
    told = json.loads(KEPT[name].stdout)
    disk = told["udev"]["add block disk"]
    assert {"ACTION", "DEVPATH", "DEVNAME", "DEVTYPE", "SEQNUM", "SUBSYSTEM"} <= disk.keys()
    assert any(link.startswith("/dev/disk/by-path/pci-") for link in disk["DEVLINKS"].split())
    node = told["kernel"]["add nvme" if "nvme" in name else "add scsi scsi_device"]
    assert told["kernel"]["add block disk"]["DEVPATH"].startswith(node["DEVPATH"])


def test_a_recording_is_kept_anew_where_more_than_its_values_changed(tmp_path: Path) -> None:
    first = {"a": Recording(("tool", "-j"), '{"size": 1}', "", 0), "b": Recording(("tool",), "1 GB\n", "", 0)}
    assert keep(first, tmp_path) == ["a", "b"]
    again = {"a": Recording(("tool", "-j"), '{"size": 2}', "", 0), "b": Recording(("tool",), "2 GB\n", "", 0)}
    assert keep(again, tmp_path) == []
    assert kept_recordings(tmp_path) == first
    drift_of = {"a": Recording(("tool", "-j"), '{"size": "1"}', "", 1)}
    assert drifted(drift_of, first) == {
        "a": ["type size: string, not integer", "status 1, not 0"],
        "b": ["it is recorded no more"],
    }
    assert keep(drift_of, tmp_path) == ["a", "b"]
    assert kept_recordings(tmp_path) == drift_of
