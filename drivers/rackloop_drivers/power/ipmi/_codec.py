"""Parser for ipmitool's output."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from rackloop.abilities import SystemEvent
from rackloop.errors import ProtocolError

_POWER = re.compile(r"Chassis Power is (on|off)\b")
_DATE = re.compile(r"(\d{2})/(\d{2})/(\d{4}|\d{2})")
_TIME = re.compile(r"(\d{2}):(\d{2}):(\d{2})(?: (?:GMT|UTC))?")

_CLOCK_NOT_SET = ("Pre-Init", "Unknown", "Unspecified")


def power_state(printed: str) -> bool:
    """Whether ``chassis power status`` says on."""
    if (found := _POWER.search(printed)) is None:
        raise ProtocolError(f"ipmitool chassis power status printed no power state: {printed[:200]!r}")
    return found[1] == "on"


def moment(date: str, time: str) -> datetime | None:
    """A date and a time of ipmitool's (in UTC, as with ``-Z``), None where it prints something else instead."""
    day, clock = _DATE.fullmatch(date.strip()), _TIME.fullmatch(time.strip())
    if day is None or clock is None:
        return None
    year = int(day[3]) + (2000 if len(day[3]) == 2 else 0)
    try:
        return datetime(year, int(day[1]), int(day[2]), int(clock[1]), int(clock[2]), int(clock[3]), tzinfo=UTC)
    except ValueError:
        return None


def log_time(printed: str) -> datetime:
    """The time that ``sel time get`` prints."""
    date, _, time = printed.strip().partition(" ")
    if (now := moment(date, time)) is None:
        raise ProtocolError(f"ipmitool sel time get printed no time: {printed[:200]!r}")
    return now


def log_events(printed: str) -> list[SystemEvent]:
    """The events of ``-c sel list``: number, date, time, sensor, event and direction between commas, the number in hex.

    Entries of before the controller's clock was set, and records of a manufacturer without a time, have none.
    """
    return [_event(line) for line in printed.splitlines() if line.strip()]


def _event(line: str) -> SystemEvent:
    number, *fields = line.split(",")
    try:
        counted = int(number, 16)
    except ValueError:
        raise ProtocolError(f"ipmitool sel list printed a line that is no entry: {line[:200]!r}") from None
    at = None
    if len(fields) > 1 and (_DATE.fullmatch(fields[0].strip()) or fields[0].startswith(_CLOCK_NOT_SET)):
        at = moment(fields[0], fields[1])
        fields = fields[2:]
    sensor = fields[0].strip() if fields else ""
    return SystemEvent(counted, at, sensor, ", ".join(field.strip() for field in fields[1:] if field.strip()))
