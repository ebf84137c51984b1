"""Every driver that a lab description can name keeps the contract of its ability."""

from __future__ import annotations

import ast
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

import pytest

from tests.meta.tree import ROOT

CONTRACTS = {
    "block": "block_device",
    "drive": "drive",
    "fabric": "fabric",
    "host": "executor",
    "phy": "phy_control",
    "power": "power_port",
}
DRIVERS = sorted(
    (entry for entry in entry_points(group="rackloop.drivers") if entry.value.startswith("rackloop_drivers.")),
    key=lambda entry: entry.name,
)


def modules_imported(path: Path) -> set[str]:
    """Every module that a test names in an import, by its full name."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


TESTS = {path: modules_imported(path) for path in sorted((ROOT / "tests" / "contracts").glob("test_*.py"))}


def test_drivers_are_registered() -> None:
    assert "fabric.flexfabric" in {entry.name for entry in DRIVERS}


@pytest.mark.parametrize("entry", DRIVERS, ids=lambda entry: entry.name)
def test_a_registered_driver_is_there_and_in_its_place(entry: EntryPoint) -> None:
    kind, _, name = entry.name.partition(".")
    assert kind in CONTRACTS, f"{entry.name} is named KIND.NAME, with KIND one of {sorted(CONTRACTS)}"
    assert entry.module.startswith(f"rackloop_drivers.{kind}.{name}")
    assert callable(entry.load())


@pytest.mark.parametrize("entry", DRIVERS, ids=lambda entry: entry.name)
def test_a_registered_driver_has_a_contract_test(entry: EntryPoint) -> None:
    contract = f"rackloop.contracts.{CONTRACTS[entry.name.partition('.')[0]]}"
    keeping = [
        path.name
        for path, modules in TESTS.items()
        if contract in modules and any(module.startswith(entry.module) for module in modules)
    ]
    assert keeping, f"no file in tests/contracts imports both {contract} and {entry.module}"
