"""The devices and kernel messages of mock servers, derived from rackd's truth records."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from rackloop.lab import Lab, Part, PartKind
from rackloop_labs.mock_hosts._kernel import Kernel, Place, PluggedExpander
from rackloop_labs.mock_hosts._view import HbaPort

Record = Mapping[str, Any]

EVENTS = frozenset(
    {
        *("phy_up", "phy_down", "online", "offline", "power", "miswired"),
        *("fault", "fault_cleared", "io_error", "held_timeout"),
    }
)
"""The events that a server notices; all others are passed over."""

_WRITES = frozenset({"write", "write_zeroes", "trim"})
# What a mock lab's rackd has where nothing else was asked for (docs/reference/rackd.md).
_LINK_TIMEOUT_S = 30.0
# As many as an NVMe error log of the drives has entries for.
_KEPT_LBAS = 64


class RackTruth:
    """The servers of a mock lab as rackd's truth log tells of them: apply every record since rackd's start, in order.

    Formats are those of ``docs/reference/rackd.md``; other events than :data:`EVENTS` are passed over.
    """

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self.kernels = {
            name: Kernel(
                HbaPort(port, index, switch_port or 0, _port_address(number, index), is_linked=False, phy_resets=0)
                for index, (port, switch_port) in enumerate(server.ports.items())
            )
            for number, (name, server) in enumerate(lab.servers.items())
        }
        self.off_slots: set[tuple[str, int]] = set()
        self.servers_off: set[str] = set()
        self._expanders_at = {
            expander.port: PluggedExpander(name, expander.slots, f"500605b1{number:08x}")
            for number, (name, expander) in enumerate(lab.expanders.items())
            if expander.port is not None
        }
        self._slots = {
            (drive.expander, drive.expander_slot): name
            for name, drive in lab.drives.items()
            if drive.expander is not None and drive.expander_slot is not None
        }
        self._faults: dict[str, dict[int, Record]] = {}
        self._failed_lbas: dict[str, deque[int]] = {}

    def apply(self, record: Record) -> None:
        """Take in one record."""
        t_ns = record["t_ns"]
        match record:
            case {"event": "phy_up", "server": str(server), "port": str(port), "switch_port": int(number)}:
                self.kernels[server].link_up(t_ns, port, self._expanders_at.get(number))
            case {"event": "phy_down", "server": str(server), "port": str(port)}:
                self.kernels[server].link_down(t_ns, port)
            case {"event": "online", "server": str(server), "port": str(port), "drive": str(drive), "slot": slot}:
                self.kernels[server].online(t_ns, (port, slot), drive, self._lab.drives[drive])
            case {"event": "offline", "server": str(server), "port": str(port), "slot": slot}:
                self.kernels[server].offline(t_ns, (port, slot))
            case {"event": "power", "target": str(target), "on": bool(is_on)}:
                self._power(Part.of_resource(target), is_on=is_on)
            case {"event": "miswired", "ports": [int(one), int(other)]}:
                at = self._expanders_at
                swapped = {other: at.pop(one, None), one: at.pop(other, None)}
                at.update({number: expander for number, expander in swapped.items() if expander is not None})
            case {"event": "fault", "drive": str(drive), "fault_id": int(number), "fault": fault}:
                self._faults.setdefault(drive, {})[number] = fault
            case {"event": "fault_cleared", "drive": str(drive), "fault_id": int(number)}:
                self._faults.get(drive, {}).pop(number, None)
            case {"event": "io_error", "drive": str(drive), "kind": str(kind), "lba": int(lba)}:
                self._io_error(t_ns, drive, lba, is_write=kind in _WRITES)
            case {"event": "held_timeout", "export": str(export), "kind": str(kind), "offset": int(offset)}:
                self._held_timeout(t_ns, export, offset, is_write=kind in _WRITES)

    def drive_in(self, expander: str, slot: int) -> str | None:
        """The drive that sits in an expander's slot, with power or without."""
        return self._slots.get((expander, slot))

    def failed_lbas(self, drive: str) -> tuple[int, ...]:
        """The places of the newest media errors of a drive, the newest last."""
        return tuple(self._failed_lbas.get(drive, ()))

    def _power(self, part: Part, *, is_on: bool) -> None:
        match part.kind:
            case PartKind.SERVER if is_on:
                self.servers_off.discard(part.name)
            case PartKind.SERVER:
                self.servers_off.add(part.name)
                self.kernels[part.name].halt()
            case PartKind.DRIVE:
                places = {place for place, drive in self._slots.items() if drive == part.name}
                self.off_slots = self.off_slots - places if is_on else self.off_slots | places

    def _io_error(self, t_ns: int, drive: str, lba: int, *, is_write: bool) -> None:
        is_dead = any(fault["kind"] == "dead" for fault in self._faults.get(drive, {}).values())
        if not is_dead:
            self._failed_lbas.setdefault(drive, deque(maxlen=_KEPT_LBAS)).append(lba)
        for kernel in self.kernels.values():
            kernel.failed(t_ns, drive, lba, is_medium=not is_dead, is_write=is_write)

    def _held_timeout(self, t_ns: int, export: str, offset: int, *, is_write: bool) -> None:
        server, port, *rest = export.removesuffix(".failfast").split(".")
        kernel = self.kernels.get(server)
        if kernel is None or port not in kernel.ports:
            return  # a drive's own export, which is no server's
        place: Place = (port, int(rest[0].removeprefix("s")) if rest else None)
        kernel.timed_out(t_ns, place, offset, _LINK_TIMEOUT_S, is_write=is_write)


def _port_address(server: int, port: int) -> str:
    """A SAS address in the format NAA 5, with the company number of LSI."""
    return f"500605b0{server:04x}{port:04x}"
