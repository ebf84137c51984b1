"""A drive's identity card, and its health before and after a test, as tables."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from rackloop.inspection.health import COUNTERS, CounterChange, health_changes
from rackloop.record import DriveSeen, Measured
from rackloop.units import format_quantity
from rackloop_reports.record import TestRecord

_BEFORE, _AFTER = "health.before", "health.after"
HEALTH = (_BEFORE, _AFTER, "health.change")
# NVM Express Base Specification 2.0, Figure 207, and what ATA drives count in.
_UNITS = {
    "available_spare": "%",
    "available_spare_threshold": "%",
    "controller_busy_time": "min",
    "data_units_read": "512,000 B",
    "data_units_written": "512,000 B",
    "percentage_used": "%",
    "power_on_hours": "h",
    "power_on_ns": "ns",
    "temperature_c": "°C",
    "total_lbas_read": "sectors",
    "total_lbas_written": "sectors",
}
#: A drive's state, which its card shows: title, counter, unit.
_STATE = (
    ("Temperature", "temperature_c", "°C"),
    ("Wear", "percentage_used", "% used"),
    ("Spare", "available_spare", "%"),
    ("Spare threshold", "available_spare_threshold", "%"),
    ("Power-on time", "power_on_hours", "h"),
    ("Power cycles", "power_cycles", ""),
)

Counters = Mapping[str, int]


def identity_card_html(seen: DriveSeen, state: Counters | None = None) -> str:
    """The identity that a drive reported, its location, its ``state``, and what the lab description adds."""
    facts = {
        "Drive": seen.drive,
        "Reached at": f"{seen.server}.{seen.port}",
        "Model": seen.model,
        "Serial number": seen.serial,
        "Firmware": seen.firmware,
        "Protocol": seen.protocol,
        "Size": f"{format_quantity(seen.size_bytes, 'B')} ({seen.size_bytes:,} bytes)",
        **seen.facts,
        **{name: value for name, value in seen.identifiers.items() if value},
        **{title: f"{state[name]:,} {unit}".strip() for title, name, unit in _STATE if state and name in state},
        "Matches lab description": f"no: {'; '.join(seen.differs)}" if seen.differs else "yes",
    }
    rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in facts.items())
    return f"<h4>Identity card</h4><table>{rows}</table>"


def health_html(measurements: Sequence[Measured], before: Counters, after: Counters) -> str:
    """Every health counter with its unit before, after and the difference, what alarms in bold; empty without any.

    What the test measured stands for what the snapshots ``before`` and ``after`` it say of the same counter.
    """
    measured = health_of(measurements)
    told = {change.counter for change in measured}
    if not measured:
        return ""
    # Of a drive that could not be read before nothing is known to be new.
    rest = [change for change in health_changes(before, after) if before and change.counter not in told]
    heads = "".join(f"<th>{head}</th>" for head in ("Counter", "Unit", "Before", "After", "Difference", "Judged"))
    rows = "".join(_row(change) for change in sorted([*measured, *rest], key=lambda change: change.counter))
    return f"<h4>Health</h4><table><tr>{heads}</tr>{rows}</table>"


def health_of(measurements: Sequence[Measured]) -> list[CounterChange]:
    """The counters among the measurements of a test, by name."""
    sides: dict[str, dict[str, int]] = {_BEFORE: {}, _AFTER: {}}
    for measured in measurements:
        if measured.name in sides and "counter" in measured.labels:
            sides[measured.name][measured.labels["counter"]] = round(measured.value)
    return health_changes(sides[_BEFORE], sides[_AFTER])


def snapshots_of(test: TestRecord, drive: str, run_dir: Path | None) -> tuple[Counters, Counters]:
    """The counters of ``drive`` in the snapshots of health before and after ``test``; empty without snapshots."""
    health = test.health
    if run_dir is None or health is None:
        return {}, {}
    return _counters(run_dir, health.before, drive), _counters(run_dir, health.after, drive)


def _counters(run_dir: Path, path: str | None, drive: str) -> Counters:
    place = (run_dir / (path or "")).resolve()
    # A path of an edited stream must not pull files from elsewhere into a report that is passed around.
    if not path or not place.is_relative_to(run_dir.resolve()):
        return {}
    try:
        found = json.loads(place.read_text(encoding="utf-8"))["drives"].get(drive, {})
        return {str(name): round(value) for name, value in found.items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}


def _row(change: CounterChange) -> str:
    cells = [f"{value:,}" if value is not None else "" for value in (change.before, change.after)]
    difference = f"{change.difference:+,}" if change.difference else "0" if change.difference == 0 else ""
    judged = f"<b>{escape(change.alarm)}</b>" if change.alarm else "ok" if change.counter in COUNTERS else "not judged"
    columns = "".join(f"<td>{cell}</td>" for cell in (unit_of(change.counter), *cells, difference, judged))
    return f"<tr><td>{escape(change.counter)}</td>{columns}</tr>"


def unit_of(counter: str) -> str:
    """The unit that a counter counts in; empty for events."""
    return _UNITS.get(counter) or ("B" if "bytes" in counter.split("_") else "")
