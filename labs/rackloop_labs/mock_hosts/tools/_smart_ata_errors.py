"""The error logs of a SATA drive: the Summary Error log (01h) and the Extended Comprehensive one (GP log 03h).

Each media error whose block is known has an entry: a READ DMA EXT of that one sector, uncorrectable; that of another is
empty. When it happened is not known, so its lifetime hours and its time since power-on stay 0.
"""

from __future__ import annotations

from typing import Any

from rackloop_labs.mock_hosts._view import AttachedDrive
from rackloop_labs.mock_hosts.tools._health import drive_health
from rackloop_labs.mock_hosts.tools._smart_report import Found, Report

_SUMMARY_ENTRIES = 5
_EXTENDED_ENTRIES = 4
_LBA_28 = 0x0FFF_FFFF
_LBA_REGISTERS = 0xFF_FFFF  # the rest of an address is in the device register, which the document leaves there

_SUMMARY_LEGEND = """\
\tCR = Command Register [HEX]
\tFR = Features Register [HEX]
\tSC = Sector Count Register [HEX]
\tSN = Sector Number Register [HEX]
\tCL = Cylinder Low Register [HEX]
\tCH = Cylinder High Register [HEX]
\tDH = Device/Head Register [HEX]
\tDC = Device Command Register [HEX]
\tER = Error register [HEX]
\tST = Status register [HEX]""".splitlines()
_EXTENDED_LEGEND = """\
\tCR     = Command Register
\tFEATR  = Features Register
\tCOUNT  = Count (was: Sector Count) Register
\tLBA_48 = Upper bytes of LBA High/Mid/Low Registers ]  ATA-8
\tLH     = LBA High (was: Cylinder High) Register    ]   LBA
\tLM     = LBA Mid (was: Cylinder Low) Register      ] Register
\tLL     = LBA Low (was: Sector Number) Register     ]
\tDV     = Device (was: Device/Head) Register
\tDC     = Device Control Register
\tER     = Error register
\tST     = Status register""".splitlines()
_TIME_LEGEND = """\
Powered_Up_Time is measured from power on, and printed as
DDd+hh:mm:SS.sss where DD=days, hh=hours, mm=minutes,
SS=sec, and sss=millisec. It "wraps" after 49.710 days.
""".splitlines()


def summary(report: Report, drive: AttachedDrive) -> None:
    """Add the Summary Error log: the newest five errors, their addresses cut to 28 bits."""
    count = drive_health(drive).media_errors
    report.say("SMART Error Log Version: 1")
    errors = _numbered(drive, count, _SUMMARY_ENTRIES)
    fields: dict[str, Any] = {"revision": 1, "count": count}
    if not count:
        report.say("No Errors Logged", "")
    else:
        report.found |= Found.ERRORS_LOGGED
        older = " (device log contains only the most recent five errors)" if count > _SUMMARY_ENTRIES else ""
        report.say(f"ATA Error Count: {count}{older}", *_SUMMARY_LEGEND, *_TIME_LEGEND, "")
        table = []
        for number, full_lba in errors:
            lba = full_lba & _LBA_28
            shown, device = lba & _LBA_REGISTERS, 0x40 | lba >> 24
            registers = f"{shown.to_bytes(3, 'little').hex(' ')} {device:02x}"
            report.say(
                f"Error {number} occurred at disk power-on lifetime: 0 hours (0 days + 0 hours)",
                "  When the command that caused the error occurred, the device was active or idle.",
                "",
                "  After command completion occurred, registers were:",
                "  ER ST SC SN CL CH DH",
                "  -- -- -- -- -- -- --",
                f"  40 51 01 {registers}  {_described(lba)}",
                "",
                "  Commands leading to the command that caused the error were:",
                "  CR FR SC SN CL CH DH DC   Powered_Up_Time  Command/Feature_Name",
                "  -- -- -- -- -- -- -- --  ----------------  --------------------",
                f"  25 00 01 {registers} 00      00:00:00.000  READ DMA EXT",
                "",
            )
            table.append(
                {
                    "error_number": number,
                    "lifetime_hours": 0,
                    "completion_registers": {"error": 64, "status": 81, "count": 1, "lba": shown, "device": device},
                    "error_description": _described(lba),
                    "previous_commands": [_command(shown, device)],
                }
            )
        fields |= {"logged_count": min(count, _SUMMARY_ENTRIES), "table": table}
    report.give(ata_smart_error_log={"summary": fields})


def extended(report: Report, drive: AttachedDrive) -> None:
    """Add the Extended Comprehensive Error log: the newest four errors."""
    count = drive_health(drive).media_errors
    report.say("SMART Extended Comprehensive Error Log Version: 1 (1 sectors)")
    fields: dict[str, Any] = {"revision": 1, "sectors": 1, "count": count}
    if not count:
        report.say("No Errors Logged", "")
    else:
        report.found |= Found.ERRORS_LOGGED
        limit = f" (device log contains only the most recent {_EXTENDED_ENTRIES} errors)"
        report.say(f"Device Error Count: {count}{limit if count > _EXTENDED_ENTRIES else ''}")
        report.say(*_EXTENDED_LEGEND, *_TIME_LEGEND, "")
        table = []
        for number, lba in _numbered(drive, count, _EXTENDED_ENTRIES):
            index = (number - 1) % _EXTENDED_ENTRIES
            upper, lower = lba >> 24, lba & 0xFF_FFFF
            registers = f"00 01 {upper.to_bytes(3).hex(' ')} {lower.to_bytes(3).hex(' ')} 40 00"
            report.say(
                f"Error {number} [{index}] occurred at disk power-on lifetime: 0 hours (0 days + 0 hours)",
                "  When the command that caused the error occurred, the device was active or idle.",
                "",
                "  After command completion occurred, registers were:",
                "  ER -- ST COUNT  LBA_48  LH LM LL DV DC",
                "  -- -- -- == -- == == == -- -- -- -- --",
                f"  40 -- 51 {registers}  {_described(lba)}",
                "",
                "  Commands leading to the command that caused the error were:",
                "  CR FEATR COUNT  LBA_48  LH LM LL DV DC  Powered_Up_Time  Command/Feature_Name",
                "  -- == -- == -- == == == -- -- -- -- --  ---------------  --------------------",
                f"  25 00 00 {registers}     00:00:00.000  READ DMA EXT",
                "",
            )
            completed = {"error": 64, "status": 81, "count": 1, "lba": lba, "device": 64, "device_control": 0}
            table.append(
                {
                    "error_number": number,
                    "log_index": index,
                    "lifetime_hours": 0,
                    "device_state": {"value": 3, "string": "active or idle"},
                    "completion_registers": completed,
                    "error_description": _described(lba),
                    "previous_commands": [_command(lba, 64)],
                }
            )
        for number in range(count - len(table), max(0, count - _EXTENDED_ENTRIES), -1):
            index = (number - 1) % _EXTENDED_ENTRIES
            report.say(f"Error {number} [{index}] log entry is empty")
            table.append({"error_number": number, "log_index": index})
        fields |= {"logged_count": min(count, _EXTENDED_ENTRIES), "table": table}
    report.give(ata_smart_error_log={"extended": fields})


def _numbered(drive: AttachedDrive, count: int, entries: int) -> list[tuple[int, int]]:
    """The newest errors whose block is known, the newest first, each with its number since the factory."""
    newest = reversed(drive.failed_lbas[-entries:])
    return [(count - age, lba) for age, lba in enumerate(newest) if age < count]


def _described(lba: int) -> str:
    return f"Error: UNC 1 sectors at LBA = {lba:#010x} = {lba}"


def _command(lba: int, device: int) -> dict[str, Any]:
    return {
        "registers": {
            "command": 0x25,
            "features": 0,
            "count": 1,
            "lba": lba,
            "device": device,
            "device_control": 0,
        },
        "powerup_milliseconds": 0,
        "command_name": "READ DMA EXT",
    }
