"""The General Purpose logs of a SATA drive that count: device statistics (04h) and PHY events (11h)."""

from __future__ import annotations

from collections.abc import Sequence

from rackloop_labs.mock_hosts._view import AttachedDrive
from rackloop_labs.mock_hosts.tools._health import TEMPERATURE_C, DriveHealth, drive_health
from rackloop_labs.mock_hosts.tools._smart_report import Found, Report

NO_SELF_TESTS = ("No self-tests have been logged.  [To run self-tests, use: smartctl -t]", "")

# Address, name, sectors by the general purpose commands, sectors by the SMART commands.
_DIRECTORY = (
    (0x00, "Log Directory", 1, 1),
    (0x01, "Summary SMART error log", 0, 1),
    (0x03, "Ext. Comprehensive SMART error log", 1, 0),
    (0x04, "Device Statistics log", 8, 0),
    (0x06, "SMART self-test log", 0, 1),
    (0x07, "Extended self-test log", 1, 0),
    (0x11, "SATA Phy Event Counters log", 1, 0),
)
_STATISTIC_FLAGS = {
    "value": 0xC0,
    "string": "V--- ",
    "valid": True,
    "normalized": False,
    "supports_dsn": False,
    "monitored_condition_met": False,
}
_STATISTICS_LEGEND = """\
                                |||_ C monitored condition met
                                ||__ D supports DSN
                                |___ N normalized value
""".splitlines()
_SOLID_STATE_PAGE = 7

_Statistic = tuple[int, str, int, int]


def directory(report: Report) -> None:
    """Add the list of the logs there are."""
    table = []
    report.say(
        "General Purpose Log Directory Version 1",
        "SMART           Log Directory Version 1 [multi-sector log support]",
        "Address    Access  R/W   Size  Description",
    )
    for address, name, general, smart in _DIRECTORY:
        access = ",".join([*(["GPL"] if general else []), *(["SL"] if smart else [])])
        report.say(f"{address:#04x}       {access if general else f'{access:>6}':<6}  R/O {general or smart:6}  {name}")
        sectors = {**({"gp_sectors": general} if general else {}), **({"smart_sectors": smart} if smart else {})}
        table.append({"address": address, "name": name, "read": True, "write": False, **sectors})
    report.give(
        ata_log_directory={
            "gp_dir_version": 1,
            "smart_dir_version": 1,
            "smart_dir_multi_sector": True,
            "table": table,
        }
    )
    report.say("")


def statistics(report: Report, drive: AttachedDrive, *, all_pages: bool) -> None:
    """Add the device statistics: every page, or that of solid state devices alone, which a hard disk has not."""
    report.say("Device Statistics (GP Log 0x04)", "Page  Offset Size        Value Flags Description")
    chosen = [page for page in _pages(drive) if all_pages or page[0] == _SOLID_STATE_PAGE]
    if not chosen:
        report.found |= Found.COMMAND_FAILED
        report.say(f"Read Device Statistics page {_SOLID_STATE_PAGE:#04x} failed", "")
        return
    pages = []
    for number, name, values in chosen:
        report.say(f"{number:#04x}  =====  =               =  ===  == {name} (rev 1) ==")
        for offset, label, size, value in values:
            report.say(f"{number:#04x}  {offset:#05x}  {size} {value:15}  ---  {label}")
        table = [
            {"offset": offset, "name": label, "size": size, "value": value, "flags": _STATISTIC_FLAGS}
            for offset, label, size, value in values
        ]
        pages.append({"number": number, "name": name, "revision": 1, "table": table})
    report.give(ata_device_statistics={"pages": pages})
    report.say(*_STATISTICS_LEGEND, "")


def _pages(drive: AttachedDrive) -> list[tuple[int, str, Sequence[_Statistic]]]:
    health, sector = drive_health(drive), drive.sector_bytes
    general = (
        (0x08, "Lifetime Power-On Resets", 4, health.power_cycles),
        (0x10, "Power-on Hours", 4, health.power_on_hours),
        (0x18, "Logical Sectors Written", 6, health.bytes_written // sector),
        (0x20, "Number of Write Commands", 6, health.writes),
        (0x28, "Logical Sectors Read", 6, health.bytes_read // sector),
        (0x30, "Number of Read Commands", 6, health.reads),
    )
    errors = ((0x08, "Number of Reported Uncorrectable Errors", 4, health.media_errors),)
    temperature = ((0x08, "Current Temperature", 1, TEMPERATURE_C),)
    transport = (
        (0x08, "Number of Hardware Resets", 4, health.link_resets),
        (0x18, "Number of Interface CRC Errors", 4, 0),
    )
    endurance = ((0x08, "Percentage Used Endurance Indicator", 1, health.percentage_used),)
    pages: list[tuple[int, str, Sequence[_Statistic]]] = [
        (1, "General Statistics", general),
        (4, "General Errors Statistics", errors),
        (5, "Temperature Statistics", temperature),
        (6, "Transport Statistics", transport),
    ]
    return pages if drive.is_rotational else [*pages, (_SOLID_STATE_PAGE, "Solid State Device Statistics", endurance)]


def phy_events(report: Report, health: DriveHealth) -> None:
    """Add the SATA PHY event counters: each lost link is one COMRESET."""
    events = (
        (1, "Command failed due to ICRC error", 0),
        (9, "Transition from drive PhyRdy to drive PhyNRdy", health.link_resets),
        (10, "Device-to-host register FISes sent due to a COMRESET", health.link_resets),
        (11, "CRC errors within host-to-device FIS", 0),
    )
    report.say("SATA Phy Event Counters (GP Log 0x11)", "ID      Size     Value  Description")
    report.say(*(f"{number:#06x}  4 {value:12}  {name}" for number, name, value in events), "")
    table = [
        {"id": number, "name": name, "size": 4, "value": value, "overflow": False} for number, name, value in events
    ]
    report.give(sata_phy_event_counters={"table": table, "reset": False})
