"""The controllers and PDUs of a mock rack, simulated: cutting power at any of them cuts it in rackd."""

from __future__ import annotations

import secrets
import shutil
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rackloop.clock import Clock
from rackloop.lab import BmcDriver, Lab, PduDriver
from rackloop_drivers.boxes import Account, Chassis, Outlets, PowerListener
from rackloop_drivers.power.ipmi import IpmiBmc
from rackloop_drivers.power.redfish import RedfishBmc, RedfishPdu, serve_tls
from rackloop_drivers.power.snmp import APC, CYBERPOWER, SnmpPdu
from rackloop_drivers.rackd import RackdLink

_FOLDER = "power"
_USER = "admin"
# IPMI takes 20 characters at most, SNMP communities any text: 16 of hexadecimal digits suit all.
_PASSWORD_BYTES = 8
_MIBS = {PduDriver.APC: APC, PduDriver.CYBERPOWER: CYBERPOWER}


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
    """The simulated controllers and PDUs of a rack.

    ``bmc`` and ``pdu`` say where they answer, by server and by PDU, as ``lab status --json`` prints it: ``driver``,
    ``address``, ``user`` (null for SNMP), ``password_file``, and ``ca_file`` for Redfish. ``controllers`` are the
    management controllers themselves, by server.
    """

    bmc: dict[str, dict[str, Any]] = field(default_factory=dict)
    pdu: dict[str, dict[str, Any]] = field(default_factory=dict)
    controllers: dict[str, RedfishBmc | IpmiBmc] = field(default_factory=dict)


@asynccontextmanager
async def power_peers(lab: Lab, link: RackdLink, state_directory: Path, clock: Clock) -> AsyncIterator[PowerPeers]:
    """Every controller and PDU that the description names, for as long as the context lasts.

    Passwords are new each time, in files of mode 600 below ``state_directory``, gone with the context.
    """
    folder = state_directory / _FOLDER
    shutil.rmtree(folder, ignore_errors=True)
    async with AsyncExitStack() as stack:
        folder.mkdir(mode=0o700)
        stack.callback(shutil.rmtree, folder)
        ca_file, context = serve_tls(folder, clock)
        switching = RackdSwitching(link)
        chassis = {name: Chassis(name, switching, clock) for name in lab.servers}
        opened = _Opened(stack, folder, ca_file, context, clock)
        peers = PowerPeers()
        for name, server in lab.servers.items():
            if server.bmc is not None:
                peers.controllers[name], peers.bmc[name] = await opened.bmc(server.bmc.driver, chassis[name])
        fed_by = {server.outlet: chassis[name] for name, server in lab.servers.items() if server.outlet is not None}
        for name, pdu in lab.pdus.items():
            feeds = {number: fed for (unit, number), fed in fed_by.items() if unit == name}
            peers.pdu[name] = await opened.pdu(pdu.driver, Outlets(name, pdu.outlets, feeds))
        yield peers


class _Opened:
    """Opens boxes on a stack, each with a password of its own."""

    def __init__(
        self, stack: AsyncExitStack, folder: Path, ca_file: Path, context: ssl.SSLContext, clock: Clock
    ) -> None:
        self._stack = stack
        self._folder = folder
        self._ca_file = ca_file
        self._context = context
        self._clock = clock

    async def bmc(self, driver: BmcDriver, chassis: Chassis) -> tuple[RedfishBmc | IpmiBmc, dict[str, Any]]:
        account, password_file = self._account(f"bmc-{chassis.server}")
        endpoint = {"driver": driver.value, "user": account.user, "password_file": str(password_file)}
        if driver is BmcDriver.IPMI:
            ipmi = await self._stack.enter_async_context(IpmiBmc(chassis, account))
            return ipmi, endpoint | {"address": ipmi.address}
        redfish = await self._stack.enter_async_context(RedfishBmc(chassis, account, self._context))
        return redfish, endpoint | {"address": redfish.url, "ca_file": str(self._ca_file)}

    async def pdu(self, driver: PduDriver, outlets: Outlets) -> dict[str, Any]:
        self._stack.callback(outlets.close)
        account, password_file = self._account(f"pdu-{outlets.name}")
        endpoint = {"driver": driver.value, "user": account.user, "password_file": str(password_file)}
        if driver is PduDriver.REDFISH:
            redfish = await self._stack.enter_async_context(RedfishPdu(outlets, account, self._context))
            return endpoint | {"address": redfish.url, "ca_file": str(self._ca_file)}
        agent = await self._stack.enter_async_context(SnmpPdu(outlets, _MIBS[driver], account.password))
        return endpoint | {"address": agent.address, "user": None}

    def _account(self, name: str) -> tuple[Account, Path]:
        password = secrets.token_hex(_PASSWORD_BYTES)
        path = self._folder / f"{name}.password"
        path.touch(mode=0o600)
        path.write_text(password)
        return Account(_USER, password, self._clock), path
