"""The drivers of a rack's boxes, each where its box answers: as described, or where its simulation says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rackloop.lab import Bmc, Driven, Fabric, Pdu, Phy, SerialConsole
from rackloop_drivers.boxes import BmcDriver, ConsoleDriver, FabricDriver, PduDriver, PhyDriver

Where = Mapping[str, Any] | None


def fabric_driver(fabric: Fabric, where: Where = None) -> FabricDriver:
    """The driver of the fabric; ``where`` is what its simulation says of itself, None for one of equipment."""
    if not isinstance(fabric, FabricDriver):
        raise _no_driver(fabric)
    return fabric if where is None else fabric.at(where)


def phy_driver(phy: Phy, where: Where = None) -> PhyDriver:
    """The driver of what takes the signal from ports; as :func:`fabric_driver`."""
    if not isinstance(phy, PhyDriver):
        raise _no_driver(phy)
    return phy if where is None else phy.at(where)


def pdu_driver(pdu: Pdu, where: Where = None) -> PduDriver:
    """The driver of a unit; as :func:`fabric_driver`."""
    if not isinstance(pdu, PduDriver):
        raise _no_driver(pdu)
    return pdu if where is None else pdu.at(where)


def bmc_driver(bmc: Bmc, where: Where = None) -> BmcDriver:
    """The driver of a management controller; as :func:`fabric_driver`."""
    if not isinstance(bmc, BmcDriver):
        raise _no_driver(bmc)
    return bmc if where is None else bmc.at(where)


def console_driver(console: SerialConsole, where: Where = None) -> ConsoleDriver:
    """The driver of a serial console; as :func:`fabric_driver`."""
    if not isinstance(console, ConsoleDriver):
        raise _no_driver(console)
    return console if where is None else console.at(where)


def _no_driver(described: Driven) -> TypeError:
    return TypeError(f"{type(described).__name__} is registered as {described.driver}, and cannot be opened")
