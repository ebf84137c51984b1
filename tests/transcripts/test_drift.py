"""The drift check itself: whatever the emulation loses, adds or changes is found."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from tests.transcripts.drift import json_drift, recording, text_drift, undeclared

REAL = {"name": "sda", "size": 8, "tables": [{"id": 1, "flags": {"on": True}}, {"id": 2, "raw": None}], "serial": "S"}


def _changed(path: list[str | int], value: Any) -> Any:
    changed = copy.deepcopy(REAL)
    place: Any = changed
    for step in path[:-1]:
        place = place[step]
    if value is None:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return changed


def test_the_same_structure_with_other_values_is_no_drift() -> None:
    other = {"name": "sdb", "size": 9, "tables": [{"id": 3, "flags": {"on": False}, "raw": None}], "serial": ""}
    assert json_drift(REAL, other) == []


@pytest.mark.parametrize(
    ("path", "value", "finding"),
    [
        (["serial"], None, "missing serial"),
        (["tables", 0, "flags", "on"], None, "missing tables[].flags.on"),
        (["tables", 1, "raw"], 0, "type tables[].raw: integer, not null"),
        (["tables", 0, "flags", "on"], 1, "type tables[].flags.on: integer, not boolean"),
        (["size"], "8", "type size: string, not integer"),
        (["size"], 8.0, "type size: number, not integer"),
        (["tables"], [], "missing tables[]"),
        (["tables", 0, "flags", "off"], {"deep": 1}, "extra tables[].flags.off"),
    ],
)
def test_a_field_that_is_lost_or_added_or_of_another_type_is_found(
    path: list[str | int], value: Any, finding: str
) -> None:
    assert json_drift(REAL, _changed(path, value)) == [finding]


def test_fields_in_another_order_are_found() -> None:
    assert json_drift(REAL, dict(reversed(REAL.items()))) == ["order ."]


def _fields(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The paths of all fields; a list is told by its first element."""
    if isinstance(value, dict):
        for key, child in value.items():
            yield (*path, key)
            yield from _fields(child, (*path, key))
    elif value and isinstance(value, list):
        yield from _fields(value[0], (*path, "[]"))


def _without(value: Any, path: tuple[str, ...]) -> Any:
    step, *rest = path
    if step == "[]":
        return [_without(element, tuple(rest)) for element in value]
    if rest:
        return {**value, step: _without(value[step], tuple(rest))}
    return {key: child for key, child in value.items() if key != step}


@pytest.mark.parametrize(
    "name", ["nvme-id-ctrl.json", "nvme-list-v.json", "smartctl-a-sda.json", "smartctl-a-sdb.json"]
)
def test_every_field_of_a_recording_is_held_however_deep_it_is(name: str) -> None:
    real = recording(name).document
    fields = list(_fields(real))
    assert len(fields) > 20
    for path in fields:
        assert json_drift(real, _without(real, path)) == [f"missing {'.'.join(path).replace('.[]', '[]')}"]


def test_text_is_held_line_by_line_whatever_its_numbers_and_dates() -> None:
    real = "Power On Hours:      1,234\nLocal Time is:  Fri Nov 20 20:59:48 2026 UTC\nLogical: 0x5000c5\n"
    same = "Power On Hours:          5\nLocal Time is:  Sat Nov  1 00:00:00 2031 UTC\nLogical: 0x5000abcd\n"
    assert text_drift(real, same) == []
    assert text_drift(real, same.replace("Hours:", "Hour:")) == ["missing Power On Hours: #", "extra Power On Hour: #"]
    assert text_drift(real, same.replace("is:  ", "is: ")) == [
        "missing Local Time is:  DATE",
        "extra Local Time is: DATE",
    ]
    assert text_drift(real, "".join(same.splitlines(keepends=True)[:2])) == ["missing Logical: #"]


def test_a_declared_difference_passes_until_nothing_needs_it() -> None:
    findings = json_drift({"a": 1, "b": 2}, {"a": 1})
    assert undeclared(findings, {}) == ["missing b"]
    assert undeclared(findings, {"missing b": "no drive here has it"}) == []
    assert undeclared(findings, {"missing *": "no drive here has any"}) == []
    assert undeclared(findings, {"missing a*": "no drive here has it"}) == [
        "missing b",
        "declared but not so: missing a*",
    ]
    assert undeclared([], {"missing b": "no drive here has it"}) == ["declared but not so: missing b"]
