"""Registered drivers: their models, their abilities and contract tests."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points
from inspect import get_annotations
from pathlib import Path

from rackloop.abilities import (
    BlockDevice,
    Breakable,
    Console,
    Drive,
    Fabric,
    Host,
    LinkReset,
    PhyControl,
    PowerPort,
    Sanitizer,
    SystemEventLog,
)
from rackloop.lab import Bmc, Driven, Pdu, Phy, SerialConsole, load_driver
from rackloop.lab import Fabric as Fabric_
from rackloop_drivers.boxes import BmcDriver, ConsoleDriver, FabricDriver, PduDriver, PhyDriver
from tests.meta.tree import ROOT, check, parsed

# For each kind of driver its ability, and the module of its contract.
ABILITIES: dict[str, tuple[type, str]] = {
    "block": (BlockDevice, "block_device"),
    "breakable": (Breakable, "breakable"),
    "console": (Console, "console"),
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
    (entry for entry in entry_points(group="rackloop.abilities") if entry.value.startswith("rackloop_drivers.")),
    key=lambda entry: entry.name,
)

DESCRIBED: dict[str, type[Driven]] = {
    "bmc": BmcDriver,
    "console": ConsoleDriver,
    "fabric": FabricDriver,
    "pdu": PduDriver,
    "phy": PhyDriver,
}
"""For each kind of driver that a lab description names, what it is derived from."""

BASES: dict[str, type[Driven]] = {"bmc": Bmc, "console": SerialConsole, "fabric": Fabric_, "pdu": Pdu, "phy": Phy}

NAMES = {entry.name for entry in DRIVERS}


def modules_imported(path: Path) -> set[str]:
    """Every module that a test names in an import, by its full name."""
    found: set[str] = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


TESTS = {path: modules_imported(path) for path in sorted((ROOT / "tests" / "contracts").glob("test_*.py"))}


def test_drivers_are_registered() -> None:
    assert {"block.nbd", "drive.rackd", "fabric.flexfabric", "phy.flexfabric", "power.rackd"} <= NAMES


def test_what_a_description_names_is_a_driver_of_its_kind() -> None:
    found = [entry for entry in entry_points(group="rackloop.drivers") if entry.value.startswith("rackloop_drivers.")]
    assert {"bmc.ipmi", "fabric.static", "pdu.apc", "phy.host"} <= {entry.name for entry in found}
    for entry in found:
        kind, _, name = entry.name.partition(".")
        assert issubclass(load_driver(BASES[kind], name), DESCRIBED[kind])


def without_ability(drivers: Iterable[EntryPoint]) -> Iterator[str]:
    """Drivers that lack a method of the ability of their kind."""
    for entry in drivers:
        kind = entry.name.partition(".")[0]
        if kind not in ABILITIES:
            yield f"{entry.name}: name it KIND.NAME, with KIND one of {sorted(ABILITIES)}"
            continue
        driver = entry.load()
        # A field of a dataclass is an annotation until there is an instance.
        existing = {*dir(driver), *get_annotations(driver)}
        if missing := sorted(name for name in vars(ABILITIES[kind][0]) if name[0] != "_" and name not in existing):
            yield f"{entry.name}: {entry.value} lacks {missing}"


def without_contract(drivers: Iterable[EntryPoint], tests: Mapping[Path, set[str]]) -> Iterator[str]:
    """Drivers that no test file imports together with the contract of their ability."""
    for entry in drivers:
        contract = f"rackloop.contracts.{ABILITIES[entry.name.partition('.')[0]][1]}"
        if not any({contract, f"{entry.module}.{entry.attr}"} <= modules for modules in tests.values()):
            yield f"{entry.name}: no file in tests/contracts imports both {contract} and {entry.value}: write its test"


def test_registered_drivers_have_the_ability_of_their_kind() -> None:
    check(without_ability(DRIVERS))


def test_registered_drivers_have_a_contract_test() -> None:
    check(without_contract(DRIVERS, TESTS))


def test_a_driver_without_its_ability_or_contract_is_found() -> None:
    stray = EntryPoint("power.fraction", "fractions:Fraction", "rackloop.abilities")
    nameless = EntryPoint("plug.fraction", "fractions:Fraction", "rackloop.abilities")
    assert _names(without_ability([*DRIVERS, stray, nameless])) == [
        "power.fraction",
        "plug.fraction",
    ]
    assert _names(without_contract([*DRIVERS, stray], TESTS)) == ["power.fraction"]


def _names(offenders: Iterable[str]) -> list[str]:
    return [offender.partition(":")[0] for offender in offenders]
