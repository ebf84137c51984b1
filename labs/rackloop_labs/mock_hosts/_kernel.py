"""The kernel of a mock server: its devices and its messages."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import count
from typing import TypeAlias

from rackloop.lab import Drive
from rackloop_labs.mock_hosts import _kernel_log as says
from rackloop_labs.mock_hosts._kernel_log import Message
from rackloop_labs.mock_hosts._view import AttachedDrive, AttachedExpander, HbaPort, KernelLine

# As many lines as a ring buffer of 1 MiB has.
_LOG_LINES = 10_000

Place: TypeAlias = tuple[str, int | None]
"""The place of a drive: a port, and the slot of the expander there."""


@dataclass(frozen=True)
class PluggedExpander:
    """An expander as the lab describes it."""

    name: str
    slots: int
    sas_address: str


class Kernel:
    """Names for the drives that come and go at a server's ports, and the log of it.

    It is told what happens at the links, in order; while the server is not booted it finds nothing and says nothing.
    ``tell`` is called with what it says, as it says it. ``changes`` counts what it was told. ``switched_off`` are the
    drives in slots that were switched off, by port.
    Names are the lowest free ones in order of attachment, at boot in order of ports and slots.
    """

    def __init__(self, ports: Iterable[HbaPort]) -> None:
        self.ports = {port.name: port for port in ports}
        self.boot_id: str | None = None
        self.boot_ns = 0
        self.changes = 0
        self.switched_off: dict[str, str] = {}
        self.tell: Callable[[tuple[KernelLine, ...]], object] = lambda _lines: None
        self._online: dict[Place, tuple[str, Drive]] = {}
        self._plugged: dict[str, PluggedExpander] = {}
        self._drives: dict[Place, AttachedDrive] = {}
        self._expanders: dict[str, AttachedExpander] = {}
        self._last_at: dict[Place, AttachedDrive] = {}
        self._log: deque[KernelLine] = deque(maxlen=_LOG_LINES)

    def boot(self, t_ns: int, boot_id: str) -> None:
        """Begin anew: what is there now is found again, the log and every name start afresh."""
        self.halt()
        self.boot_id, self.boot_ns = boot_id, t_ns
        self.ports = {name: replace(port, is_present=True) for name, port in self.ports.items()}
        self._say(t_ns, says.booting(list(self.ports.values())))
        for port in self._plugged:
            self._find_expander(t_ns, port)
        order = {name: port.index for name, port in self.ports.items()}
        for place in sorted(self._online, key=lambda place: (order[place[0]], place[1] or 0)):
            self._find(t_ns, place)

    def halt(self) -> None:
        """The server lost its power or crashed: everything its kernel knew is gone."""
        self.changes += 1
        self.boot_id = None
        for known in (self._drives, self._expanders, self._last_at, self._log):
            known.clear()

    def link_up(self, t_ns: int, port: str, plugged: PluggedExpander | None) -> None:
        """The port's PHY is up; ``plugged`` is the expander at its other end. Both ends may tell of it, in turn."""
        self.changes += 1
        self.ports[port] = replace(self.ports[port], is_linked=True)
        if plugged is not None:
            self._plugged[port] = plugged
            self._find_expander(t_ns, port)

    def link_down(self, t_ns: int, port: str) -> None:
        """The port's PHY was lost. Both ends may tell of it, in turn."""
        known = self.ports[port]
        if not known.is_linked:
            return
        self.changes += 1
        self.ports[port] = replace(known, is_linked=False, phy_resets=known.phy_resets + 1)
        self._plugged.pop(port, None)
        if (drive := self._drives.get((port, None))) is not None:
            self._say(t_ns, says.link_lost(drive))
        if (expander := self._expanders.pop(port, None)) is not None:
            self._say(t_ns, says.expander_detached(expander))

    def enable(self, port: str, *, is_enabled: bool) -> None:
        """A link was disabled on request, or enabled again."""
        self.changes += 1
        self.ports[port] = replace(self.ports[port], is_enabled=is_enabled)

    def online(self, t_ns: int, place: Place, drive_id: str, drive: Drive) -> None:
        """A drive answers at a place."""
        self.changes += 1
        self._online[place] = drive_id, drive
        self._find(t_ns, place)

    def offline(self, t_ns: int, place: Place) -> None:
        """The drive at a place answers no longer."""
        self.changes += 1
        self._online.pop(place, None)
        if (drive := self._drives.pop(place, None)) is not None:
            self._say(t_ns, says.detached(drive))

    def remove(self, t_ns: int, kernel_name: str) -> None:
        """Forget a drive, on request."""
        self.changes += 1
        for place, drive in list(self._drives.items()):
            if drive.kernel_name == kernel_name:
                del self._drives[place]
                self._say(t_ns, says.removed(drive))

    def rescan(self, t_ns: int, port: str, target: int | None = None) -> None:
        """Find again what was forgotten at a port, or at one target of it."""
        self.changes += 1
        for place in sorted(self._online, key=lambda place: place[1] or 0):
            if place[0] == port and target in {None, place[1] or 0}:
                self._find(t_ns, place, tell=says.found_again)

    def remove_function(self, t_ns: int, port: str) -> None:
        """Forget a port's PCI function and all at it, on request."""
        self.changes += 1
        self.ports[port] = replace(self.ports[port], is_present=False)
        self._expanders.pop(port, None)
        for place, drive in list(self._drives.items()):
            if place[0] == port:
                del self._drives[place]
                self._say(t_ns, says.removed(drive))

    def rescan_bus(self, t_ns: int, only: str | None = None) -> None:
        """Find again the functions that were forgotten, or that of one port, and what is at them."""
        for name, port in self.ports.items():
            if not port.is_present and only in {None, name}:
                self.ports[name] = replace(port, is_present=True)
                if name in self._plugged:
                    self._find_expander(t_ns, name)
                self.rescan(t_ns, name)

    def switch_slot(self, port: str, *, is_on: bool) -> str | None:
        """The slot at a port is switched on or off on request; the NVMe drive that this is about, if there is one.

        A slot that is switched on finds again what was forgotten there.
        """
        online = self._online.get((port, None))
        if is_on:
            drive_id = self.switched_off.pop(port, None)
        elif online is not None and online[1].traits.protocol == "nvme":
            drive_id = self.switched_off[port] = online[0]
        else:
            drive_id = None
        if drive_id is not None:
            self.changes += 1
            self.ports[port] = replace(self.ports[port], is_slot_on=is_on, is_present=True)
        return drive_id

    def reset_controller(self, t_ns: int, kernel_name: str) -> None:
        """Say that an NVMe controller was reset."""
        for drive in self._drives.values():
            if drive.kernel_name == kernel_name:
                self._say(t_ns, says.controller_reset(drive))

    def failed(self, t_ns: int, drive_id: str, lba: int, *, is_medium: bool, is_write: bool) -> None:
        """A drive failed a request; nothing is said where it is not this server's."""
        for drive in self._drives.values():
            if drive.drive_id == drive_id:
                self.changes += 1
                told = says.medium_error if is_medium else says.device_error
                self._say(t_ns, told(drive, lba, is_write=is_write))

    def timed_out(self, t_ns: int, place: Place, offset: int, after_s: float, *, is_write: bool) -> None:
        """Log that a request to a place was not answered, as of the drive that was there last."""
        if (drive := self._last_at.get(place)) is not None:
            self._say(t_ns, says.timed_out(drive, offset, after_s, is_write=is_write))

    def drives(self, off_slots: AbstractSet[tuple[str, int]]) -> list[AttachedDrive]:
        """The drives that have a name now, without what they count; ``off_slots`` as in :meth:`expanders`."""
        expanders = {expander.port.name: expander for expander in self.expanders(off_slots)}
        return [
            replace(drive, port=self.ports[port], expander=None if slot is None else expanders.get(port))
            for (port, slot), drive in self._drives.items()
        ]

    def expanders(self, off_slots: AbstractSet[tuple[str, int]]) -> list[AttachedExpander]:
        """The expanders at the ports now; ``off_slots`` are expander and slot of drives without power."""
        return [
            replace(
                expander,
                port=self.ports[port],
                off_slots=frozenset(slot for name, slot in off_slots if name == expander.name),
            )
            for port, expander in self._expanders.items()
        ]

    @property
    def log(self) -> tuple[KernelLine, ...]:
        """The messages since the boot."""
        return tuple(self._log)

    def _find_expander(self, t_ns: int, port: str) -> None:
        if self.boot_id is None or port in self._expanders or not self.ports[port].is_present:
            return
        plugged = self._plugged[port]
        self.ports[port] = replace(self.ports[port], last_protocol="smp")
        expander = AttachedExpander(
            plugged.name, self.ports[port], plugged.slots, plugged.sas_address, self._free_generic()
        )
        self._expanders[port] = expander
        self._say(t_ns, says.expander_attached(expander))

    def _find(
        self, t_ns: int, place: Place, tell: Callable[[AttachedDrive], Iterable[Message]] = says.attached
    ) -> None:
        if self.boot_id is None or place in self._drives or not self.ports[place[0]].is_present:
            return
        drive_id, drive = self._online[place]
        port, slot = place
        traits = drive.traits
        is_nvme = traits.protocol == "nvme"
        if slot is None:
            self.ports[port] = replace(self.ports[port], last_protocol=traits.protocol)
        taken = {known.kernel_name for known in self._drives.values()}
        number = next(n for n in count() if (f"nvme{n}" if is_nvme else _disk_name(n)) not in taken)
        found = AttachedDrive(
            drive_id=drive_id,
            kernel_name=f"nvme{number}" if is_nvme else _disk_name(number),
            number=number if is_nvme else self.ports[port].index,
            port=self.ports[port],
            model=drive.model,
            serial=drive.serial,
            firmware=drive.firmware,
            protocol=traits.protocol,
            wwn=drive.wwn,
            eui64=drive.eui64,
            nguid=drive.nguid,
            size_bytes=drive.size,
            sector_bytes=traits.sector_bytes,
            is_rotational=traits.is_rotational,
            rpm=drive.simulated_timing.get("rpm"),
            expander=self._expanders.get(port) if slot is not None else None,
            slot=slot,
            generic=None if is_nvme else self._free_generic(),
        )
        self._drives[place] = self._last_at[place] = found
        self._say(t_ns, tell(found))

    def _free_generic(self) -> str:
        taken = {drive.generic for drive in self._drives.values()}
        taken |= {expander.generic for expander in self._expanders.values()}
        return next(name for n in count() if (name := f"sg{n}") not in taken)

    def _say(self, t_ns: int, messages: Iterable[Message]) -> None:
        if self.boot_id is None:
            return
        at_us = max(0, t_ns - self.boot_ns) // 1000
        lines = tuple(KernelLine(at_us, message.text, message.priority) for message in messages)
        self._log.extend(lines)
        self.tell(lines)


def _disk_name(number: int) -> str:
    """sda, sdb, ... sdz, sdaa, ..."""
    letters = ""
    number += 1
    while number:
        number, rest = divmod(number - 1, 26)
        letters = chr(ord("a") + rest) + letters
    return f"sd{letters}"
