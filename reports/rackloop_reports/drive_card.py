"""A drive's identity card, and its health before and after a test, as tables."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from rackloop.inspection.health import CounterChange, health_changes
from rackloop.record import DriveSeen, Measured
from rackloop.units import format_quantity

_BEFORE, _AFTER = "health.before", "health.after"
HEALTH = (_BEFORE, _AFTER, "health.change")


def identity_card_html(seen: DriveSeen) -> str:
    """The identity that a drive reported, its location, and what the lab description adds."""
    facts = {
        "Drive": seen.drive,
        "Reached at": f"{seen.server}.{seen.port}",
        "Model": seen.model,
        "Serial number": seen.serial,
        "Firmware": seen.firmware,
        "Protocol": seen.protocol,
        "Size": f"{format_quantity(seen.size_bytes, 'B')} ({seen.size_bytes:,} bytes)",
        **{name: value for name, value in seen.identifiers.items() if value},
        "Lab description": "; ".join(seen.differs) or "says the same",
    }
    rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in facts.items())
    return f"<h4>Identity card</h4><table>{rows}</table>"


def health_html(measurements: Sequence[Measured]) -> str:
    """Every health counter before, after and the difference, what alarms in bold; empty where none was measured."""
    changes = health_of(measurements)
    if not changes:
        return ""
    heads = "".join(f"<th>{head}</th>" for head in ("Counter", "Before", "After", "Difference", "Judged"))
    rows = "".join(_row(change) for change in changes)
    return f"<h4>Health</h4><table><tr>{heads}</tr>{rows}</table>"


def health_of(measurements: Sequence[Measured]) -> list[CounterChange]:
    """The counters among the measurements of a test, by name."""
    sides: dict[str, dict[str, int]] = {_BEFORE: {}, _AFTER: {}}
    for measured in measurements:
        if measured.name in sides and "counter" in measured.labels:
            sides[measured.name][measured.labels["counter"]] = round(measured.value)
    return health_changes(sides[_BEFORE], sides[_AFTER])


def _row(change: CounterChange) -> str:
    cells = [f"{value:,}" if value is not None else "" for value in (change.before, change.after)]
    difference = f"{change.difference:+,}" if change.difference else "0" if change.difference == 0 else ""
    judged = f"<b>{escape(change.alarm)}</b>" if change.alarm else ""
    columns = "".join(f"<td>{cell}</td>" for cell in (*cells, difference, judged))
    return f"<tr><td>{escape(change.counter)}</td>{columns}</tr>"
