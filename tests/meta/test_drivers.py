"""Every driver that a lab description can name keeps the contract of its ability."""

from __future__ import annotations

import ast
from importlib.metadata import EntryPoint, entry_points
from inspect import get_annotations
from pathlib import Path

import pytest

from rackloop.abilities import (
    BlockDevice,
    Breakable,
    Drive,
    Fabric,
    Host,
    LinkReset,
    PhyControl,
    PowerPort,
    Sanitizer,
    SystemEventLog,
)
from tests.meta.tree import ROOT

# For each kind of driver its ability, and the module of its contract.
ABILITIES: dict[str, tuple[type, str]] = {
    "block": (BlockDevice, "block_device"),
    "breakable": (Breakable, "breakable"),
    "drive": (Drive, "drive"),
    "event_log": (SystemEventLog, "system_event_log"),
    "fabric": (Fabric, "fabric"),
    "host": (Host, "host"),
    "link_reset": (LinkReset, "link_reset"),
    "phy": (PhyControl, "phy_control"),
    "power": (PowerPort, "power_port"),
    "sanitizer": (Sanitizer, "sanitizer"),
}
DRIVERS = sorted(
    (entry for entry in entry_points(group="rackloop.drivers") if entry.value.startswith("rackloop_drivers.")),
    key=lambda entry: entry.name,
)

NAMES = {entry.name for entry in DRIVERS}


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
    assert {"block.nbd", "drive.rackd", "fabric.flexfabric", "phy.flexfabric", "power.rackd"} <= NAMES


@pytest.mark.parametrize("entry", DRIVERS, ids=lambda entry: entry.name)
def test_a_registered_driver_has_the_ability_of_its_kind(entry: EntryPoint) -> None:
    kind = entry.name.partition(".")[0]
    assert kind in ABILITIES, f"{entry.name} is to be named KIND.NAME, with KIND one of {sorted(ABILITIES)}"
    ability, _ = ABILITIES[kind]
    asked = {name for name in vars(ability) if not name.startswith("_")}
    driver = entry.load()
    # A field of a dataclass is an annotation until there is an instance.
    missing = sorted(asked - {*dir(driver), *get_annotations(driver)})
    assert not missing, f"{entry.value} lacks {missing}"


@pytest.mark.parametrize("entry", DRIVERS, ids=lambda entry: entry.name)
def test_a_registered_driver_has_a_contract_test(entry: EntryPoint) -> None:
    _, contract = ABILITIES[entry.name.partition(".")[0]]
    keeping = [
        path.name
        for path, modules in TESTS.items()
        if f"rackloop.contracts.{contract}" in modules and f"{entry.module}.{entry.attr}" in modules
    ]
    assert keeping, f"no file in tests/contracts imports both rackloop.contracts.{contract} and {entry.value}"
