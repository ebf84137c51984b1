"""Diagrams of the state machines in the documents, drawn from their transition tables.

    python tools/state_diagrams.py

Writes each diagram again.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any

from rackloop_drivers.fabric.flexfabric.peer.control_lock import TRANSITIONS

#: For each image the table that it shows: the events of each state, and the states that follow.
DIAGRAMS: dict[Path, Mapping[Any, Mapping[Any, Any]]] = {
    Path(__file__).parents[1] / "docs" / "reference" / "images" / "control-lock.svg": TRANSITIONS
}
_APART, _WIDTH, _HEIGHT, _TOP, _BELOW, _LINE = 340, 120, 44, 110, 60, 17
_STYLE = """  <style>
    text { font-family: sans-serif; font-size: 13px; fill: #1b2733; text-anchor: middle }
    .state { font-family: monospace; font-size: 15px; font-weight: bold }
    rect { fill: #e8f0f7; stroke: #35618e; stroke-width: 1.5 }
    path.edge { stroke: #35618e; stroke-width: 1.5; fill: none; marker-end: url(#head) }
  </style>
  <defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">\
<path d="M0 0 L8 4 L0 8 z" fill="#35618e"/></marker></defs>
"""


def main() -> None:
    """Write each diagram."""
    for image, table in DIAGRAMS.items():
        image.write_text(diagram(table), encoding="utf-8")


def diagram(table: Mapping[Any, Mapping[Any, Any]]) -> str:
    """An SVG image: states from left to right, edges to the right above them, to the left below."""
    states = {state: 180 + number * _APART for number, state in enumerate(table)}
    parts = [_state(state, x) for state, x in states.items()]
    for state, events in table.items():
        for following in dict.fromkeys(events.values()):
            labels = [_said(event) for event, reached in events.items() if reached is following]
            parts.append(_edge(states[state], states[following], labels))
    width, height = 360 + (len(states) - 1) * _APART, _TOP + _HEIGHT + _BELOW
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">\n'
    ground = f'  <rect style="fill: #ffffff; stroke: none" width="{width}" height="{height}"/>\n'
    return head + _STYLE + ground + "".join(parts) + "</svg>\n"


def _state(state: Enum, x: int) -> str:
    box = f'<rect x="{x - _WIDTH // 2}" y="{_TOP}" width="{_WIDTH}" height="{_HEIGHT}" rx="6"/>'
    return f'  {box}<text class="state" x="{x}" y="{_TOP + 27}">{_said(state)}</text>\n'


def _edge(start: int, end: int, labels: list[str]) -> str:
    middle, bottom = (start + end) // 2, _TOP + _HEIGHT
    if start == end:
        path, first = f"M{start - 25} {_TOP} C{start - 45} 50 {start + 45} 50 {start + 25} {_TOP - 2}", 56
    elif start < end:
        path, first = f"M{start + 60} {_TOP + 12} Q{middle} {_TOP - 16} {end - 62} {_TOP + 12}", _TOP - 12
    else:
        path, first = f"M{start - 60} {bottom - 12} Q{middle} {bottom + 16} {end + 62} {bottom - 12}", bottom + 20
    if start >= end and start != end:
        first += (len(labels) - 1) * _LINE
    texts = [
        f'<text x="{middle}" y="{first - number * _LINE}">{label}</text>'
        for number, label in enumerate(reversed(labels))
    ]
    return f'  <path class="edge" d="{path}"/>{"".join(texts)}\n'


def _said(name: Enum) -> str:
    return name.name.lower().replace("_", " ")


if __name__ == "__main__":
    main()
