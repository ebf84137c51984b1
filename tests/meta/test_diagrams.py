"""Diagrams of the documents: state machines and layers as in the code."""

from __future__ import annotations

import re
from collections import defaultdict
from enum import Enum, auto

from state_diagrams import DIAGRAMS, diagram
from tests.meta.tree import ROOT, check, files, project, shown


class Door(Enum):
    """States of a made-up machine."""

    SHUT = auto()
    OPEN = auto()


class Push(Enum):
    """Events of a made-up machine."""

    SOFT_PUSH = auto()
    PULL = auto()


def test_state_diagrams_are_those_of_the_tables() -> None:
    check(
        f"{shown(image)}: not that of its table: run python tools/state_diagrams.py"
        for image, table in DIAGRAMS.items()
        if image.read_text(encoding="utf-8") != diagram(table)
    )


def test_every_transition_table_has_a_diagram() -> None:
    # Each is drawn, and so compared with its table.
    tables = re.compile(r"^(?:\w+_)?TRANSITIONS\b", re.MULTILINE)
    sources = [path for path in files(".py") if path.parts[len(ROOT.parts)] not in {"tests", "tools"}]
    assert sum(len(tables.findall(path.read_text(encoding="utf-8"))) for path in sources) == len(DIAGRAMS)


def test_a_diagram_shows_each_state_and_transition() -> None:
    drawn = diagram({Door.SHUT: {Push.SOFT_PUSH: Door.OPEN, Push.PULL: Door.SHUT}, Door.OPEN: {Push.PULL: Door.SHUT}})
    assert re.findall(r'class="state"[^>]*>([^<]+)<', drawn) == ["shut", "open"]
    assert re.findall(r'<text x="(\d+)"[^>]*>([^<]+)<', drawn) == [
        ("350", "soft push"),
        ("180", "pull"),
        ("350", "pull"),
    ]


def test_the_layers_are_drawn_as_import_linter_has_them() -> None:
    image = (ROOT / "docs" / "explanations" / "images" / "layers.svg").read_text(encoding="utf-8")
    rows: dict[int, set[str]] = defaultdict(set)
    for y, name in re.findall(r'class="name" x="\d+" y="(\d+)">([^<]+)<', image):
        rows[int(y)] |= {name}
    contract = next(found for found in project()["tool"]["importlinter"]["contracts"] if found["type"] == "layers")
    layers = [{name.strip() for name in layer.split("|")} for layer in contract["layers"]]
    assert [rows[y] for y in sorted(rows)][: len(layers)] == layers, "correct docs/explanations/images/layers.svg"
