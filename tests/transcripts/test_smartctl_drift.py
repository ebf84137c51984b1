"""Emulated ``smartctl`` against smartmontools 7.3 on a real kernel."""

from __future__ import annotations

import pytest

from tests.transcripts.drift import RECORDED, Declared, recording, undeclared
from tests.transcripts.guest import drift

_MORE = "the drive reports more than QEMU's"
_NO_SELF_TEST = "QEMU's drive cannot log self-tests, or not in this log, and says so by the status"
_ONE_NAMESPACE = "the drive has one namespace, so that its size is the controller's; QEMU's may have 256"
_NO_TRIM = "a hard disk knows no TRIM, QEMU's does"
_FEWER = "smartctl has more logs and types of devices than are emulated"

_NVME: Declared = dict.fromkeys(
    (
        "extra nvme_total_capacity",
        "extra nvme_unallocated_capacity",
        "extra nvme_namespaces",
        "extra user_capacity",
        "extra logical_block_size",
    ),
    _ONE_NAMESPACE,
)
_SATA: Declared = dict.fromkeys(("extra form_factor", "extra sata_version", "extra interface_speed"), _MORE)
_SATA_DISK: Declared = {**_SATA, "missing trim.deterministic": _NO_TRIM, "missing trim.zeroed": _NO_TRIM}
_SATA_LOGS: Declared = {
    **dict.fromkeys(
        (
            "extra read_lookahead",
            "extra ata_log_directory",
            "extra ata_device_statistics",
            "extra sata_phy_event_counters",
            "extra ata_smart_error_log.extended",
            "extra ata_smart_self_test_log.extended",
        ),
        _MORE,
    ),
    "missing ata_smart_error_log.summary": "the extended log stands for it where the drive has one",
    "missing ata_smart_self_test_log.standard": "the extended log stands for it where the drive has one",
    "status 0, not 4": _NO_SELF_TEST,
}
_SAS: Declared = {
    **dict.fromkeys(
        (
            "extra form_factor",
            "extra scsi_transport_protocol",
            "extra temperature_warning",
            "extra smart_status",
            "extra smart_support.enabled",
            "extra power_on_time",
            "extra scsi_start_stop_cycle_counter",
            "extra scsi_grown_defect_list",
            "extra scsi_error_counter_log",
        ),
        _MORE,
    ),
    "missing scsi_temperature": "smartctl puts a trip temperature that is not 0 under temperature",
    "extra temperature.drive_trip": "smartctl puts a trip temperature that is not 0 under temperature",
    "status 0, not 4": _NO_SELF_TEST,
}
_VALID: Declared = {"missing =======> VALID ARGUMENTS ARE: *": _FEWER, "extra =======> VALID ARGUMENTS ARE: *": _FEWER}

SATA_DISK_WITH_LOGS = {**_SATA_DISK, **_SATA_LOGS}

DECLARED: dict[str, Declared] = {
    "smartctl-a-nvme0.json": _NVME,
    "smartctl-x-nvme0.json": _NVME,
    "smartctl-iHA-nvme0.json": _NVME,
    "smartctl-a-sda.json": _SAS,
    "smartctl-x-sda.json": {**_SAS, "extra scsi_background_scan": _MORE, "extra scsi_sas_port_0": _MORE},
    "smartctl-a-sdb.json": _SATA,
    "smartctl-x-sdb.json": {**_SATA, **_SATA_LOGS},
    "smartctl-a-sdc.json": _SATA_DISK,
    "smartctl-x-sdc.json": SATA_DISK_WITH_LOGS,
    "smartctl-d-bad": _VALID,
    "smartctl-log-no-such": _VALID,
    "smartctl-option-no-arg": _VALID,
}


@pytest.mark.parametrize("name", sorted(path.stem for path in RECORDED.glob("smartctl-*.cmd")))
def test_smartctl_answers_as_the_real_one(name: str) -> None:
    assert undeclared(drift(recording(name)), DECLARED.get(name, {})) == []
