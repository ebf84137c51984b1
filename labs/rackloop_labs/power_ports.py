"""The power ports and event logs of a rack, by the controllers and PDUs of its description."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from rackloop.abilities import PowerPort, SystemEventLog
from rackloop.clock import Clock
from rackloop.lab import Lab, Part
from rackloop_drivers.boxes import BmcDriver, DiagnosticInterrupt, Opening, PduDriver


class RackPower:
    """The power ports of a rack, and the event logs of its controllers. Nothing is asked before it is used.

    ``ports`` has ``server:NAME`` for each server that has a controller (it is switched there) or an outlet (it is
    switched there instead), and ``outlet:PDU/NUMBER`` for each outlet that feeds a server or the switch, whose is
    ``switch``; ``event_logs`` has the
    servers whose controller keeps one, ``interrupts`` those whose controller pulses NMIs, and ``controllers`` the
    controllers. ``endpoints`` are those of a lab that is
    up; a physical lab's are in its description.
    """

    def __init__(self, lab: Lab, clock: Clock, endpoints: Mapping[str, Any] | None = None) -> None:
        self.ports: dict[str, PowerPort] = {}
        self.event_logs: dict[str, SystemEventLog] = {}
        self.interrupts: dict[str, DiagnosticInterrupt] = {}
        self.controllers: dict[str, BmcDriver] = {}
        self._closing = ExitStack()
        opening = Opening(clock, self._closing)
        units = (endpoints or {}).get("pdu") or {}
        pdus = {name: PduDriver.of(pdu, units.get(name)).open(opening) for name, pdu in lab.pdus.items()}
        self.switch: str | None = None
        if lab.has_switch and lab.fabric.outlet is not None:
            unit, number = lab.fabric.outlet
            self.switch = str(Part.outlet(unit, number))
            self.ports[self.switch] = pdus[unit](number)
        for name, server in lab.servers.items():
            if server.outlet is not None:
                unit, number = server.outlet
                self.ports[str(Part.outlet(unit, number))] = self.ports[str(Part.server(name))] = pdus[unit](number)
            if server.bmc is not None:
                running = endpoints["servers"][name]["bmc"] if endpoints else None
                # A copy has a login of its own, so that what was refused once may be tried by the next who opens it.
                self.controllers[name] = bmc = BmcDriver.of(server.bmc, running).model_copy()
                opened = bmc.open(opening)
                self.ports[str(Part.server(name))] = opened.power
                if opened.event_log is not None:
                    self.event_logs[name] = opened.event_log
                if opened.interrupt is not None:
                    self.interrupts[name] = opened.interrupt

    def close(self) -> None:
        """Log out of boxes that were logged in to."""
        self._closing.close()
