"""``smartctl`` on a SAS drive: what its log pages say (SPC-4, SBC-4, SPL-4)."""

from __future__ import annotations

from typing import Any

from rackloop_labs.mock_hosts._kernel_log import scsi_names
from rackloop_labs.mock_hosts._view import AttachedDrive
from rackloop_labs.mock_hosts.tools._health import TEMPERATURE_C, DriveHealth, drive_health, rotation_rate
from rackloop_labs.mock_hosts.tools._smart_report import INFORMATION, Found, Report, capacity

_TRIP_C = 70
_SPECIFIED_STARTS = 50_000
_SPECIFIED_LOADS = 600_000
_FAILURE = "DATA CHANNEL IMPENDING FAILURE DATA ERROR RATE TOO HIGH"
_FAILURE_ASC, _FAILURE_ASCQ = 0x5D, 0x32
_ERROR_COLUMNS = {
    "errors_corrected_by_eccfast": 8,
    "errors_corrected_by_eccdelayed": 8,
    "errors_corrected_by_rereads_rewrites": 9,
    "total_errors_corrected": 9,
    "correction_algorithm_invocations": 10,
    "gigabytes_processed": 14,
    "total_uncorrected_errors": 11,
}


def report_scsi(report: Report, drive: AttachedDrive) -> None:
    """Add what smartctl prints of a SAS drive."""
    health = drive_health(drive)
    if report.wants("info"):
        _information(report, drive)
    if report.wants("settings"):
        report.say("Read Cache is:        Enabled", "Writeback Cache is:   Enabled")
    if report.wants("info"):
        report.say("")
    if report.wants("health", "attributes", "error", "selftest", "background", "sasphy", "ssd"):
        report.say("=== START OF READ SMART DATA SECTION ===")
    if report.wants("health"):
        _health(report, health)
    if report.wants("ssd") and not drive.is_rotational:
        report.give(scsi_percentage_used_endurance_indicator=health.percentage_used)
        report.say(f"Percentage used endurance indicator: {health.percentage_used}%")
    if report.wants("attributes"):
        _attributes(report, health)
    if report.wants("error"):
        _errors(report, health)
    if report.wants("selftest"):
        report.say("No Self-tests have been logged", "")
    if report.wants("background"):
        _background(report, health)
    if report.wants("sasphy"):
        _phy(report, drive, health)


def _information(report: Report, drive: AttachedDrive) -> None:
    vendor, product = scsi_names(drive)
    rpm, rotation = rotation_rate(drive)
    form = {"scsi_value": 2, "name": "3.5 inches"} if drive.is_rotational else {"scsi_value": 3, "name": "2.5 inches"}
    unit = f"0x{drive.wwn or '0' * 16}"
    report.give(
        scsi_vendor=vendor,
        scsi_product=product,
        scsi_model_name=f"{vendor} {product}",
        scsi_revision=drive.firmware,
        scsi_version="SPC-4",
        user_capacity={"blocks": drive.size_bytes // drive.sector_bytes, "bytes": drive.size_bytes},
        logical_block_size=drive.sector_bytes,
        scsi_lb_provisioning={
            "name": "fully provisioned",
            "value": 0,
            "management_enabled": {"name": "LBPME", "value": -1},
            "read_zeros": {"name": "LBPRZ", "value": 0},
        },
        rotation_rate=rpm,
        form_factor=form,
        logical_unit_id=unit,
        serial_number=drive.serial,
        device_type={"scsi_terminology": "Peripheral Device Type [PDT]", "scsi_value": 0, "name": "disk"},
        scsi_transport_protocol={"name": "SAS (SPL-4)", "value": 6},
        smart_support={"available": True, "enabled": True},
        temperature_warning={"enabled": False},
    )
    report.say(
        INFORMATION,
        f"Vendor:               {vendor}",
        f"Product:              {product}",
        f"Revision:             {drive.firmware}",
        "Compliance:           SPC-4",
        f"User Capacity:        {drive.size_bytes:,} bytes [{capacity(drive.size_bytes)}]",
        f"Logical block size:   {drive.sector_bytes} bytes",
        "LU is fully provisioned",
        f"Rotation Rate:        {rotation}",
        f"Form Factor:          {form['name']}",
        f"Logical Unit id:      {unit}",
        f"Serial number:        {drive.serial}",
        "Device type:          disk",
        "Transport protocol:   SAS (SPL-4)",
        f"Local Time is:        {report.local_time}",
        "SMART support is:     Available - device has SMART capability.",
        "SMART support is:     Enabled",
        "Temperature Warning:  Disabled or Not Supported",
    )


def _health(report: Report, health: DriveHealth) -> None:
    status: dict[str, Any] = {"passed": not health.is_failing}
    shown = "OK"
    if health.is_failing:
        report.found |= Found.FAILING
        status["scsi"] = {"asc": _FAILURE_ASC, "ascq": _FAILURE_ASCQ, "ie_string": _FAILURE}
        shown = f"{_FAILURE} [asc={_FAILURE_ASC:x}, ascq={_FAILURE_ASCQ:x}]"
    report.give(smart_status=status)
    report.say(f"SMART Health Status: {shown}", "")


def _attributes(report: Report, health: DriveHealth) -> None:
    report.give(temperature={"current": TEMPERATURE_C, "drive_trip": _TRIP_C})
    report.say(
        f"Current Drive Temperature:     {TEMPERATURE_C} C",
        f"Drive Trip Temperature:        {_TRIP_C} C",
        "",
    )
    if not report.wants("background"):
        hours, minutes = divmod(health.power_on_minutes, 60)
        report.give(power_on_time={"hours": hours, "minutes": minutes})
        report.say(f"Accumulated power on time, hours:minutes {hours}:{minutes:02}")
    report.give(
        scsi_start_stop_cycle_counter={
            "specified_cycle_count_over_device_lifetime": _SPECIFIED_STARTS,
            "accumulated_start_stop_cycles": health.power_cycles,
            "specified_load_unload_count_over_device_lifetime": _SPECIFIED_LOADS,
            "accumulated_load_unload_cycles": health.power_cycles,
        },
        scsi_grown_defect_list=health.reallocated_sectors,
    )
    report.say(
        f"Specified cycle count over device lifetime:  {_SPECIFIED_STARTS}",
        f"Accumulated start-stop cycles:  {health.power_cycles}",
        f"Specified load-unload count over device lifetime:  {_SPECIFIED_LOADS}",
        f"Accumulated load-unload cycles:  {health.power_cycles}",
        f"Elements in grown defect list: {health.reallocated_sectors}",
        "",
    )


def _errors(report: Report, health: DriveHealth) -> None:
    reads = (0, 0, health.reread_blocks, health.reread_blocks, health.unreadable_at_first)
    counters = {
        "read": [*reads, f"{health.bytes_read / 1e9:.3f}", health.media_errors],
        "write": [0, 0, 0, 0, 0, f"{health.bytes_written / 1e9:.3f}", 0],
    }
    report.give(
        scsi_error_counter_log={
            name: dict(zip(_ERROR_COLUMNS, values, strict=True)) for name, values in counters.items()
        }
    )
    report.say(
        "Error counter log:",
        "           Errors Corrected by           Total   Correction     Gigabytes    Total",
        "               ECC          rereads/    errors   algorithm      processed    uncorrected",
        "           fast | delayed   rewrites  corrected  invocations   [10^9 bytes]  errors",
    )
    for name, values in counters.items():
        cells = [f"{value:>{width}}" for value, width in zip(values, _ERROR_COLUMNS.values(), strict=True)]
        report.say(f"{name + ':':<7} {' '.join(cells)}")
    report.say("", "Non-medium error count:        0", "")


def _background(report: Report, health: DriveHealth) -> None:
    hours, minutes = divmod(health.power_on_minutes, 60)
    report.give(
        scsi_background_scan={
            "status": {
                "value": 0,
                "string": "no scans active",
                "number_scans_performed": 0,
                "scan_progress": "0.00%",
                "number_medium_scans_performed": 0,
            }
        },
        power_on_time={"hours": hours, "minutes": minutes},
    )
    report.say(
        "Background scan results log",
        "  Status: no scans active",
        f"    Accumulated power on time, hours:minutes {hours}:{minutes:02} [{health.power_on_minutes} minutes]",
        "    Number of background scans performed: 0,  scan progress: 0.00%",
        "    Number of background medium scans performed: 0",
        "",
    )


def _phy(report: Report, drive: AttachedDrive, health: DriveHealth) -> None:
    """The drive's one PHY, and the PHY at the other end: the HBA's, or that of its slot in an expander."""
    far, far_type, far_phy = drive.port.sas_address, "SAS or SATA device", 0
    if drive.expander is not None:
        far, far_type, far_phy = drive.expander.sas_address, "expander device", drive.slot or 0
    initiator = "111" if drive.expander is None else "001"
    own = drive.wwn or "0" * 16
    report.give(
        scsi_sas_port_0={
            "relative_target_port_id": 1,
            "generation_code": 1,
            "number_of_phys": 1,
            "phy_0": {
                "identifier": 0,
                "attached_device_type": far_type,
                "attached_reason": "unknown",
                "reason": "unknown",
                "negotiated_logical_link_rate": "phy enabled; 12 Gbps",
                "attached_initiator_port": {"ssp_stp_smp": initiator},
                "attached_target_port": {"ssp_stp_smp": "000"},
                "sas_address": f"0x{own}",
                "attached_sas_address": f"0x{far}",
                "attached_phy_identifier": far_phy,
                "invalid_dword_count": 0,
                "running_disparity_error_count": 0,
                "loss_of_dword_synchronization_count": health.link_resets,
                "phy_reset_problem_count": 0,
            },
        }
    )
    report.say(
        "",
        "Protocol Specific port log page for SAS SSP",
        "relative target port id = 1",
        "  generation code = 1",
        "  number of phys = 1",
        "  phy identifier = 0",
        f"    attached device type: {far_type}",
        "    attached reason: unknown",
        "    reason: unknown",
        "    negotiated logical link rate: phy enabled; 12 Gbps",
        f"    attached initiator port: ssp={initiator[0]} stp={initiator[1]} smp={initiator[2]}",
        "    attached target port: ssp=0 stp=0 smp=0",
        f"    SAS address = 0x{own}",
        f"    attached SAS address = 0x{far}",
        f"    attached phy identifier = {far_phy}",
        "    Invalid DWORD count = 0",
        "    Running disparity error count = 0",
        f"    Loss of DWORD synchronization count = {health.link_resets}",
        "    Phy reset problem count = 0",
        "",
    )
