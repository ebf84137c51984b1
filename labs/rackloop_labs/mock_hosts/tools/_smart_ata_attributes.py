"""The SMART attributes of a SATA drive: the table, as smartctl prints it, and what is failing in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rackloop_labs.mock_hosts._view import AttachedDrive
from rackloop_labs.mock_hosts.tools._health import (
    READ_ERROR_THRESHOLD,
    TEMPERATURE_C,
    drive_health,
)
from rackloop_labs.mock_hosts.tools._smart_report import Report

_FLAGS = ("prefailure", "updated_online", "performance", "error_rate", "event_count", "auto_keep")
_LETTERS = "POSRCK"
_LONG_TITLE = "ID# ATTRIBUTE_NAME          FLAG     VALUE WORST THRESH TYPE      UPDATED  WHEN_FAILED RAW_VALUE"
_BRIEF_TITLE = "ID# ATTRIBUTE_NAME          FLAGS    VALUE WORST THRESH FAIL RAW_VALUE"
_LEGEND = """\
                            ||||||_ K auto-keep
                            |||||__ C event count
                            ||||___ R error rate
                            |||____ S speed/performance
                            ||_____ O updated online
                            |______ P prefailure warning""".splitlines()


@dataclass(frozen=True)
class Attribute:
    """One attribute; ``value`` is normalized, and at ``threshold`` or below it has failed. A threshold 0 never is."""

    id: int
    name: str
    flags: int
    value: int
    threshold: int
    raw: int
    shown: str

    @property
    def is_failing(self) -> bool:
        """Whether it is at its threshold or below."""
        return 0 < self.value <= self.threshold

    @property
    def letters(self) -> str:
        """The flags as letters, a dash for each that is not set."""
        return "".join(letter if self.flags >> bit & 1 else "-" for bit, letter in enumerate(_LETTERS))


class AttributeTable:
    """The attributes a drive has, by the health of it."""

    def __init__(self, drive: AttachedDrive, *, is_brief: bool) -> None:
        self._is_brief = is_brief
        self._health = drive_health(drive)
        self._attributes = _attributes(drive)

    @property
    def failing(self) -> list[Attribute]:
        """Those that say that the drive is about to fail."""
        return [attribute for attribute in self._attributes if attribute.is_failing]

    def rows(self, attributes: Sequence[Attribute]) -> list[str]:
        """The title and a row for each of these."""
        title = _BRIEF_TITLE if self._is_brief else _LONG_TITLE
        return [title, *(self._row(attribute) for attribute in attributes)]

    def report(self, report: Report) -> None:
        """Add the whole table."""
        report.give(
            ata_smart_attributes={"revision": 1, "table": [_described(one) for one in self._attributes]},
            power_on_time={"hours": self._health.power_on_hours},
            power_cycle_count=self._health.power_cycles,
            temperature={"current": TEMPERATURE_C},
        )
        report.say(
            "SMART Attributes Data Structure revision number: 1",
            "Vendor Specific SMART Attributes with Thresholds:",
            *self.rows(self._attributes),
            *(_LEGEND if self._is_brief else []),
            "",
        )

    def _row(self, one: Attribute) -> str:
        values = f"{one.value:03}   {one.value:03}   {one.threshold:03}    "
        if self._is_brief:
            failed = "NOW" if one.is_failing else "-"
            return f"{one.id:3} {one.name:<24}{one.letters}   {values}{failed:<4} {one.shown}"
        kind = "Pre-fail" if one.flags & 1 else "Old_age"
        updated = "Always" if one.flags & 2 else "Offline"
        failed = "FAILING_NOW" if one.is_failing else "    -"
        return f"{one.id:3} {one.name:<24}{one.flags:#06x}   {values}{kind:<10}{updated:<9}{failed:<12}{one.shown}"


def _attributes(drive: AttachedDrive) -> list[Attribute]:
    health = drive_health(drive)
    temperature = TEMPERATURE_C | TEMPERATURE_C << 16 | TEMPERATURE_C << 32  # now, lowest, highest
    shown_temperature = f"{TEMPERATURE_C} (Min/Max {TEMPERATURE_C}/{TEMPERATURE_C})"
    errors, rate = health.media_errors, health.read_error_rate
    disk = [(3, "Spin_Up_Time", 0x27, 100, 0, 0), (4, "Start_Stop_Count", 0x32, 100, 0, health.power_cycles)]
    flash = [(177, "Wear_Leveling_Count", 0x13, max(1, 100 - health.percentage_used), 1, health.erase_count)]
    rows = [
        (1, "Raw_Read_Error_Rate", 0x0B, rate, READ_ERROR_THRESHOLD, 0),
        *(disk if drive.is_rotational else []),
        (5, "Reallocated_Sector_Ct", 0x33, 100, 10, health.reallocated_sectors),
        (9, "Power_On_Hours", 0x32, 100, 0, health.power_on_hours),
        (12, "Power_Cycle_Count", 0x32, 100, 0, health.power_cycles),
        *([] if drive.is_rotational else flash),
        (187, "Reported_Uncorrect", 0x32, rate, 0, errors),
        (194, "Temperature_Celsius", 0x22, 100 - TEMPERATURE_C, 0, temperature),
        (197, "Current_Pending_Sector", 0x32, 100, 0, errors),
        (198, "Offline_Uncorrectable", 0x30, 100, 0, errors),
        (199, "UDMA_CRC_Error_Count", 0x3E, 100, 0, 0),
        (241, "Total_LBAs_Written", 0x32, 100, 0, health.bytes_written // drive.sector_bytes),
        (242, "Total_LBAs_Read", 0x32, 100, 0, health.bytes_read // drive.sector_bytes),
    ]
    return [Attribute(*row, shown=shown_temperature if row[0] == 194 else str(row[-1])) for row in rows]


def _described(one: Attribute) -> dict[str, Any]:
    return {
        "id": one.id,
        "name": one.name,
        "value": one.value,
        "worst": one.value,
        "thresh": one.threshold,
        "when_failed": "now" if one.is_failing else "",
        "flags": {
            "value": one.flags,
            "string": f"{one.letters} ",
            **{name: bool(one.flags >> bit & 1) for bit, name in enumerate(_FLAGS)},
        },
        "raw": {"value": one.raw, "string": one.shown},
    }
