"""The power ports and event logs of a rack, by the controllers and PDUs of its description."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rackloop.abilities import PowerPort, SystemEventLog
from rackloop.lab import Bmc, BmcDriver, FileSecret, Lab, Part, Pdu, PduDriver, Secret
from rackloop_drivers.boxes import Login
from rackloop_drivers.power.ipmi import IpmiEventLog, IpmiPowerPort, Ipmitool
from rackloop_drivers.power.redfish import RedfishEventLog, RedfishOutlet, RedfishPowerPort, RedfishService
from rackloop_drivers.power.snmp import ApcOutlet, CyberPowerOutlet, SnmpAgent

_SECURE = "https://"


@dataclass(frozen=True)
class _Box:
    """The address of a controller or PDU, and the account there."""

    address: str
    user: str | None
    password: Secret | None
    verify: bool | Path = True

    @classmethod
    def described(cls, box: Bmc | Pdu) -> _Box:
        return cls(str(box.address), box.user, box.password, box.verify and (box.ca_file or True))

    @classmethod
    def running(cls, endpoint: Mapping[str, Any]) -> _Box:
        password = FileSecret(Path(endpoint["password_file"]))
        verify = Path(endpoint["ca_file"]) if "ca_file" in endpoint else True
        return cls(endpoint["address"], endpoint["user"], password, verify)

    def login(self) -> Login:
        return Login(self.address, self.user, self.password)

    def redfish(self) -> RedfishService:
        url = self.address if "://" in self.address else _SECURE + self.address
        return RedfishService(url, self.login(), verify=self.verify)


class RackPower:
    """The power ports of a rack, and the event logs of its controllers. Nothing is asked before it is used.

    ``ports`` has ``server:NAME`` for each server that has a controller (it is switched there) or an outlet (it is
    switched there instead), and ``outlet:PDU/NUMBER`` for each outlet that feeds a server; ``event_logs`` has the
    servers with a controller. ``endpoints`` are those of a lab that is up; a physical lab's are in its description.
    """

    def __init__(self, lab: Lab, endpoints: Mapping[str, Any] | None = None) -> None:
        self.ports: dict[str, PowerPort] = {}
        self.event_logs: dict[str, SystemEventLog] = {}
        self._services: list[RedfishService] = []
        pdus = {
            name: self._outlets(pdu, _Box.running(endpoints["pdu"][name]) if endpoints else _Box.described(pdu))
            for name, pdu in lab.pdus.items()
        }
        for name, server in lab.servers.items():
            if server.outlet is not None:
                unit, number = server.outlet
                self.ports[str(Part.outlet(unit, number))] = self.ports[str(Part.server(name))] = pdus[unit](number)
            if server.bmc is not None:
                running = endpoints["servers"][name]["bmc"] if endpoints else None
                box = _Box.running(running) if running else _Box.described(server.bmc)
                self.ports[str(Part.server(name))], self.event_logs[name] = self._controller(server.bmc, box)

    def close(self) -> None:
        """Log out of boxes that were logged in to."""
        for service in self._services:
            service.close()

    def _controller(self, bmc: Bmc, box: _Box) -> tuple[PowerPort, SystemEventLog]:
        if bmc.driver is BmcDriver.IPMI:
            ipmitool = Ipmitool(box.address, box.login(), cipher_suite=bmc.cipher_suite)
            return IpmiPowerPort(ipmitool), IpmiEventLog(ipmitool)
        service = self._opened(box)
        return RedfishPowerPort(service), RedfishEventLog(service)

    def _outlets(self, pdu: Pdu, box: _Box) -> Callable[[int], PowerPort]:
        if pdu.driver is PduDriver.REDFISH:
            service = self._opened(box)
            return lambda number: RedfishOutlet(service, number)
        agent = SnmpAgent(box.address, box.login())
        driver = ApcOutlet if pdu.driver is PduDriver.APC else CyberPowerOutlet
        return lambda number: driver(agent, number)

    def _opened(self, box: _Box) -> RedfishService:
        service = box.redfish()
        self._services.append(service)
        return service
