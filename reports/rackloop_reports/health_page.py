"""The health of the rack before and after a test, as a table."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from rackloop.record import HealthChange, HealthCompared, Judgement
from rackloop.units import counted

_HEADS = ("Subject", "What", "Before", "After", "Difference", "Judged", "Why")


def health_compared_html(health: HealthCompared) -> str:
    """The changes in health, unexpected ones in bold, others folded; and what could not be read, with the reason."""
    by_judgement = {
        judgement: [change for change in health.changes if change.judgement is judgement] for judgement in Judgement
    }
    alarms = by_judgement[Judgement.UNEXPECTED]
    others = [*by_judgement[Judgement.EXPECTED], *by_judgement[Judgement.NOTED]]
    parts = ["<h4>Health of the rack, before and after</h4>"]
    if health.since:
        tests = "".join(f"<li>{escape(test)}</li>" for test in (*health.since, health.test))
        told = f"These {len(health.since) + 1} tests asked nothing of the rack: it was read before the first and after"
        parts.append(f"<details><summary>{told} the last of them.</summary><ul>{tests}</ul></details>")
    if health.before is None:
        parts.append("<p>Health was not read.</p>")
    elif not alarms:
        parts.append("<p>No unexpected changes.</p>")
    if alarms:
        parts.append(_table(alarms))
    if others:
        told = f"{counted(len(others), 'change')} that are expected or informational"
        parts.append(f"<details><summary>{told}</summary>{_table(others)}</details>")
    if health.unread:
        rows = "".join(f"<li>{escape(what)}: {escape(why)}</li>" for what, why in health.unread.items())
        parts.append(f"<p>Not read:</p><ul>{rows}</ul>")
    return "".join(parts)


def _table(changes: Iterable[HealthChange]) -> str:
    heads = "".join(f"<th>{head}</th>" for head in _HEADS)
    return f"<table><tr>{heads}</tr>{''.join(map(_row, changes))}</table>"


def _row(change: HealthChange) -> str:
    why = change.why if not change.sample else f"{change.why} ({change.sample})" if change.why else change.sample
    difference = "" if change.difference is None else f"{change.difference:+,}"
    cells = (change.subject, change.what, _value(change.before), _value(change.after), difference)
    judged = f"{change.judgement}, {change.cause}" if change.cause else str(change.judgement)
    mark = "b" if change.judgement is Judgement.UNEXPECTED else "span"
    texts = [escape(cell) for cell in (*cells, judged, why)]
    return "<tr>" + "".join(f"<td><{mark}>{text}</{mark}></td>" for text in texts) + "</tr>"


def _value(value: int | str | None) -> str:
    return f"{value:,}" if isinstance(value, int) else value or ""
