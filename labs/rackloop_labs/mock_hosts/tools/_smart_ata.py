"""``smartctl`` on a SATA drive: who it is, whether it is well, and in which order its logs follow."""

from __future__ import annotations

from rackloop_labs.mock_hosts._view import AttachedDrive
from rackloop_labs.mock_hosts.tools import _smart_ata_errors, _smart_ata_logs
from rackloop_labs.mock_hosts.tools._health import drive_health, rotation_rate
from rackloop_labs.mock_hosts.tools._smart_ata_attributes import AttributeTable
from rackloop_labs.mock_hosts.tools._smart_report import INFORMATION, Found, Report, capacity

# The same for every drive: none runs a self-test or collects data offline. Some lines end in a space.
_CAPABILITIES = """\
General SMART Values:
Offline data collection status:  (0x82)\tOffline data collection activity
\t\t\t\t\twas completed without error.
\t\t\t\t\tAuto Offline Data Collection: Enabled.
Self-test execution status:      (   0)\tThe previous self-test routine completed
\t\t\t\t\twithout error or no self-test has ever\x20
\t\t\t\t\tbeen run.
Total time to complete Offline\x20
data collection: \t\t(  288) seconds.
Offline data collection
capabilities: \t\t\t (0x19) SMART execute Offline immediate.
\t\t\t\t\tNo Auto Offline data collection support.
\t\t\t\t\tSuspend Offline collection upon new
\t\t\t\t\tcommand.
\t\t\t\t\tOffline surface scan supported.
\t\t\t\t\tSelf-test supported.
\t\t\t\t\tNo Conveyance Self-test supported.
\t\t\t\t\tNo Selective Self-test supported.
SMART capabilities:            (0x0003)\tSaves SMART data before entering
\t\t\t\t\tpower-saving mode.
\t\t\t\t\tSupports SMART auto save timer.
Error logging capability:        (0x01)\tError logging supported.
\t\t\t\t\tGeneral Purpose Logging supported.
Short self-test routine\x20
recommended polling time: \t (   2) minutes.
Extended self-test routine
recommended polling time: \t (  54) minutes.
""".splitlines()

_SPEED = {"string": "6.0 Gb/s", "units_per_second": 60, "bits_per_unit": 100_000_000}


def report_ata(report: Report, drive: AttachedDrive) -> None:
    """Add what smartctl prints of a SATA drive."""
    attributes = AttributeTable(drive, is_brief=report.wants("brief"))
    if report.wants("info"):
        _information(report, drive)
    if report.wants("settings"):
        _settings(report)
    if report.wants("info"):
        report.say("")
    data_section = ("health", "capabilities", "attributes", "error", "xerror", "selftest", "xselftest", "selective")
    if report.wants(*data_section, "scttemp"):
        report.say("=== START OF READ SMART DATA SECTION ===")
    if report.wants("health"):
        _health(report, attributes)
    if report.wants("capabilities"):
        _capabilities(report)
    if report.wants("attributes"):
        attributes.report(report)
    if report.wants("directory"):
        _smart_ata_logs.directory(report)
    if report.wants("xerror"):
        _smart_ata_errors.extended(report, drive)
    if report.wants("error"):
        _smart_ata_errors.summary(report, drive)
    if report.wants("xselftest"):
        report.give(ata_smart_self_test_log={"extended": {"revision": 1, "sectors": 1, "count": 0}})
        report.say("SMART Extended Self-test Log Version: 1 (1 sectors)", *_smart_ata_logs.NO_SELF_TESTS)
    if report.wants("selftest"):
        report.give(ata_smart_self_test_log={"standard": {"revision": 1, "count": 0}})
        report.say("SMART Self-test log structure revision number 1", *_smart_ata_logs.NO_SELF_TESTS)
    for section, missing in (
        ("selective", "Selective Self-tests/Logging not supported"),
        ("scttemp", "SCT Commands not supported"),
        ("scterc", "SCT Commands not supported"),
    ):
        if section == "scterc" and drive.firmware_state.limits is not None:
            if report.wants(section):
                error_recovery_control(report, *drive.firmware_state.limits)
        elif report.wants(section) and not (section == "scterc" and report.wants("scttemp")):
            report.say(missing, "")
    if report.wants("devstat", "ssd"):
        _smart_ata_logs.statistics(report, drive, all_pages=report.wants("devstat"))
    if report.wants("defects"):
        report.say("Pending Defects log (GP Log 0x0c) not supported", "")
    if report.wants("sataphy"):
        _smart_ata_logs.phy_events(report, drive_health(drive))


def error_recovery_control(report: Report, reads: int, writes: int, *, is_set: bool = False) -> None:
    """SCT Error Recovery Control, in tenths of a second, as it is or as it was set."""
    report.say(f"SCT Error Recovery Control{' set to' if is_set else ''}:")
    control: dict[str, dict[str, object]] = {}
    for name, limit in (("read", reads), ("write", writes)):
        control[name] = {"enabled": True, "deciseconds": limit} if limit else {"enabled": False}
        shown = f"{limit:6} ({limit / 10:.1f} seconds)" if limit else "Disabled"
        report.say(f"{name.capitalize():>15}: {shown}")
    report.give(ata_sct_erc=control)
    report.say("")


def _information(report: Report, drive: AttachedDrive) -> None:
    rpm, rotation = rotation_rate(drive)
    form = {"ata_value": 2, "name": "3.5 inches"} if drive.is_rotational else {"ata_value": 3, "name": "2.5 inches"}
    sector = drive.sector_bytes
    report.give(model_name=drive.model, serial_number=drive.serial)
    report.say(
        INFORMATION,
        f"Device Model:     {drive.model}",
        f"Serial Number:    {drive.serial}",
    )
    if drive.wwn:
        wwn = int(drive.wwn, 16)
        naa, oui, number = wwn >> 60, wwn >> 36 & 0xFF_FFFF, wwn & 0xF_FFFF_FFFF
        report.give(wwn={"naa": naa, "oui": oui, "id": number})
        report.say(f"LU WWN Device Id: {naa:x} {oui:06x} {number:09x}")
    report.give(
        firmware_version=drive.firmware,
        user_capacity={"blocks": drive.size_bytes // sector, "bytes": drive.size_bytes},
        logical_block_size=sector,
        physical_block_size=sector,
        rotation_rate=rpm,
        form_factor=form,
    )
    report.say(
        f"Firmware Version: {drive.firmware}",
        f"User Capacity:    {drive.size_bytes:,} bytes [{capacity(drive.size_bytes)}]",
        f"Sector Size:      {sector} bytes logical/physical",
        f"Rotation Rate:    {rotation}",
        f"Form Factor:      {form['name']}",
    )
    report.give(trim={"supported": False})
    if not drive.is_rotational:
        report.give(trim={"supported": True, "deterministic": True, "zeroed": True})
        report.say("TRIM Command:     Available, deterministic, zeroed")
    report.give(
        in_smartctl_database=False,
        ata_version={"string": "ACS-4, ACS-3 T13/2161-D revision 5", "major_value": 0x0FF0, "minor_value": 0x6D},
        sata_version={"string": "SATA 3.2", "value": 0xFF},
        interface_speed={"max": {"sata_value": 14, **_SPEED}, "current": {"sata_value": 3, **_SPEED}},
        smart_support={"available": True, "enabled": True},
    )
    report.say(
        "Device is:        Not in smartctl database 7.3/5319",
        "ATA Version is:   ACS-4, ACS-3 T13/2161-D revision 5",
        "SATA Version is:  SATA 3.2, 6.0 Gb/s (current: 6.0 Gb/s)",
        f"Local Time is:    {report.local_time}",
        "SMART support is: Available - device has SMART capability.",
        "SMART support is: Enabled",
    )


def _settings(report: Report) -> None:
    report.give(read_lookahead={"enabled": True}, write_cache={"enabled": True})
    report.say(
        "AAM feature is:   Unavailable",
        "APM feature is:   Unavailable",
        "Rd look-ahead is: Enabled",
        "Write cache is:   Enabled",
        "DSN feature is:   Unavailable",
        "ATA Security is:  Unavailable",
        "Wt Cache Reorder: Unavailable",
    )


def _health(report: Report, attributes: AttributeTable) -> None:
    report.give(smart_status={"passed": not attributes.failing})
    if not attributes.failing:
        report.say("SMART overall-health self-assessment test result: PASSED", "")
        return
    report.found |= Found.FAILING | Found.PREFAIL_BELOW_THRESHOLD
    report.say(
        "SMART overall-health self-assessment test result: FAILED!",
        "Drive failure expected in less than 24 hours. SAVE ALL DATA.",
    )
    if report.wants("attributes"):
        report.say("See vendor-specific Attribute list for failed Attributes.", "")
    else:
        report.say("Failed Attributes:", *attributes.rows(attributes.failing), "")


def _capabilities(report: Report) -> None:
    report.give(
        ata_smart_data={
            "offline_data_collection": {
                "status": {"value": 130, "string": "was completed without error", "passed": True},
                "completion_seconds": 288,
            },
            "self_test": {
                "status": {"value": 0, "string": "completed without error", "passed": True},
                "polling_minutes": {"short": 2, "extended": 54},
            },
            "capabilities": {
                "values": [25, 3],
                "exec_offline_immediate_supported": True,
                "offline_is_aborted_upon_new_cmd": False,
                "offline_surface_scan_supported": True,
                "self_tests_supported": True,
                "conveyance_self_test_supported": False,
                "selective_self_test_supported": False,
                "attribute_autosave_enabled": True,
                "error_logging_supported": True,
                "gp_logging_supported": True,
            },
        }
    )
    report.say(*_CAPABILITIES, "")
