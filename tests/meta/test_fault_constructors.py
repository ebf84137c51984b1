"""The functions that make faults, as tools/fault_constructors.py writes them from the catalogue."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from fault_constructors import MODULE, module
from rackloop.faults import KINDS
from rackloop_fixtures import fault
from tests.meta.tree import ROOT


def test_the_functions_are_those_of_the_catalogue() -> None:
    assert MODULE.read_text(encoding="utf-8") == module(), (
        f"run python {ROOT / 'tools' / 'fault_constructors.py'}: the catalogue has changed"
    )


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_given_reaches_the_fault_and_what_is_not_is_left_to_the_catalogue(kind: str) -> None:
    make: Any = getattr(fault, kind)
    assert make("x", **dict.fromkeys(_required(make), 1)).parameters.keys() == {
        name.rstrip("_") for name in _required(make)
    }
    every = {name: 1 for name in inspect.signature(make).parameters if name != "target"}
    made = make("x", **every)
    assert (made.kind, made.target) == (kind, "x")
    assert made.parameters.keys() == KINDS[kind].parameters.keys()


def _required(make: Any) -> list[str]:
    arguments = inspect.signature(make).parameters.values()
    return [each.name for each in arguments if each.default is each.empty and each.name != "target"]
