"""The controllers and PDUs of a mock or virtual rack, simulated: cutting power at any of them cuts it in the rack."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rackloop.clock import Clock
from rackloop.lab import Lab, Part, PartKind
from rackloop_drivers.boxes import (
    BmcDriver,
    Chassis,
    ConsoleDriver,
    Outlets,
    PduDriver,
    PhyDriver,
    PowerListener,
    PowerSwitching,
    SerialLine,
    SimulatedController,
    SimulatedPlace,
)
from rackloop_drivers.power.redfish import serve_tls
from rackloop_drivers.rackd import RackdLink

_FOLDER = "power"


class RackdSwitching:
    """The :class:`~rackloop_drivers.boxes.PowerSwitching` that is rackd: its truth is the truth of power.

    Listeners hear of each change once: from the truth log, or as soon as what was asked
    for here is answered, whichever comes first. Both have the stamp of the change.
    """

    def __init__(self, link: RackdLink) -> None:
        self._link = link
        self._listeners: list[PowerListener] = []
        self._known: dict[str, tuple[int, bool]] = {}
        link.follow(self._hear)

    async def set(self, target: str, *, on: bool) -> None:
        """Have rackd switch it."""
        answer = await self._link.request("power", target=target, on=on)
        self._tell(target, int(answer["t_ns"]), on=on)

    async def is_on(self, target: str) -> bool:
        """The state that rackd reports."""
        return bool((await self._link.request("power", target=target))["on"])

    def follow(self, listener: PowerListener) -> None:
        """Add a listener."""
        self._listeners.append(listener)

    def _hear(self, record: dict[str, Any]) -> None:
        if record["event"] == "power":
            self._tell(record["target"], record["t_ns"], on=record["on"])

    def _tell(self, target: str, t_ns: int, *, on: bool) -> None:
        known_ns, was_on = self._known.get(target, (0, True))
        if t_ns <= known_ns:
            return
        self._known[target] = t_ns, on
        if on != was_on:
            for listener in self._listeners:
                listener(target, on)


@dataclass(frozen=True)
class PowerPeers:
    """The simulated controllers and PDUs of a rack, and what takes signals from its ports.

    ``bmc``, ``pdu`` and ``phy`` say where they answer, by server and by PDU, as ``lab status --json`` prints it:
    ``driver``, and what the driver says of its simulation, such as ``address``, ``user`` (null for SNMP),
    ``password_file``, and ``ca_file`` for Redfish. ``controllers`` are the management controllers themselves, by
    server; ``consoles`` say where serial consoles are, ``lines`` are the servers' ends of them, and ``chassis`` is what
    servers are in. A box whose driver
    simulates none is not among them.
    """

    bmc: dict[str, dict[str, Any]] = field(default_factory=dict)
    pdu: dict[str, dict[str, Any]] = field(default_factory=dict)
    phy: dict[str, Any] = field(default_factory=dict)
    controllers: dict[str, SimulatedController] = field(default_factory=dict)
    consoles: dict[str, dict[str, Any]] = field(default_factory=dict)
    lines: dict[str, SerialLine] = field(default_factory=dict)
    chassis: dict[str, Chassis] = field(default_factory=dict)


@asynccontextmanager
async def power_peers(
    lab: Lab,
    link: RackdLink,
    state_directory: Path,
    clock: Clock,
    *,
    switching: PowerSwitching | None = None,
    chassis_of: Callable[[str], Chassis] | None = None,
) -> AsyncIterator[PowerPeers]:
    """Every controller and PDU that the description names, for as long as the context lasts.

    Passwords are new each time, in files of mode 600 below ``state_directory``, gone with the context. What is not
    rackd's power is switched by ``switching``; servers that have a chassis of their own, ``chassis_of``, have their
    consoles elsewhere.
    """
    folder = state_directory / _FOLDER
    shutil.rmtree(folder, ignore_errors=True)
    async with AsyncExitStack() as stack:
        folder.mkdir(mode=0o700)
        stack.callback(shutil.rmtree, folder)
        ca_file, context = serve_tls(folder, clock)
        switching = RackdSwitching(link) if switching is None else switching
        chassis = {name: chassis_of(name) if chassis_of else Chassis(name, switching, clock) for name in lab.servers}
        peers = PowerPeers(lines={name: box.line for name, box in chassis.items()}, chassis=chassis)

        def place(name: str) -> SimulatedPlace:
            return SimulatedPlace(name, clock, link, folder, ca_file, context)

        for name, server in lab.servers.items():
            if server.bmc is not None and server.bmc.is_simulated:
                bmc = BmcDriver.of(server.bmc)
                box = bmc.simulated(chassis[name], place(f"bmc-{name}"))
                peers.controllers[name], where = await stack.enter_async_context(box)
                peers.bmc[name] = {"driver": bmc.driver, **where}
            if chassis_of is None and server.console is not None and server.console.is_simulated:
                console = ConsoleDriver.of(server.console)
                served = console.simulated(chassis[name], place(f"console-{name}"), peers.controllers.get(name))
                where = await stack.enter_async_context(served)
                peers.consoles[name] = {"driver": console.driver, **where}
        fed_by = {server.outlet: chassis[name] for name, server in lab.servers.items() if server.outlet is not None}
        if lab.fabric.outlet is not None:
            switch = str(Part(PartKind.SWITCH))
            fed_by[lab.fabric.outlet] = Chassis(switch, switching, clock, target=switch)
        for name, described in lab.pdus.items():
            if described.is_simulated:
                pdu = PduDriver.of(described)
                feeds = {number: fed for (unit, number), fed in fed_by.items() if unit == name}
                outlets = Outlets(name, pdu.outlets, feeds)
                stack.callback(outlets.close)
                where = await stack.enter_async_context(pdu.simulated(outlets, place(f"pdu-{name}")))
                peers.pdu[name] = {"driver": pdu.driver, **where}
        if lab.phy is not None and lab.phy.is_simulated:
            phy = PhyDriver.of(lab.phy)
            where = await stack.enter_async_context(phy.simulated(place("phy")))
            peers.phy.update({"driver": phy.driver, **where})
        yield peers
