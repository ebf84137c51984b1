"""The faults that remove a drive from a server.

Sources: Linux ``Documentation/scsi`` and ``Documentation/PCI`` (``delete``, ``scan``, ``remove``, ``rescan``, slot
``power``), sg_ses(8) for ``devoff``, setpci(8) with the PCIe Link Control and Slot Capabilities registers for
``link_disabled``, ``drivers/pci/hotplug/pciehp_hpc.c`` (``pciehp_link_enable``).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from rackloop.abilities import Host
from rackloop.clock import Deadline
from rackloop.drive_identifiers import PCI_ADDRESS, normal_text, nvme_drive_of
from rackloop.errors import BadInput, DeadlineExceeded, GuardRefused, LabError, NotSupported
from rackloop_drivers.failed_command import failure_of
from rackloop_drivers.host_tools import identify_drive, read_drives, require_tool

_PCI = re.compile(PCI_ADDRESS)
_SCSI = re.compile(r"/(\d+):(\d+):(\d+):(\d+)$")
_TARGET = re.compile(r"/target[0-9:]+/")
_TRY_S = 0.02
_TIMED_OUT = 3
_NOT_THERE = 4
_NOT_ABOVE = 5
# The bit Link Disable of Link Control, and the register by setpci's name.
_LINK_CONTROL = "CAP_EXP+10.w"
_LINK_DISABLE = 0x10
# The bit Power Controller Present of Slot Capabilities.
_SLOT_CAPABILITIES = "CAP_EXP+14.l"
_POWER_CONTROLLER = 0x2
ALL = frozenset({"device_off", "link_disabled", "removed", "slot_power_off"})


@dataclass(frozen=True)
class _Place:
    """The place of a drive: its kernel name, its folder in sysfs, and what can be told of its slot.

    ``blocks`` are all block devices of the server, each with its own folder, ``ejecting`` the addresses of the slots
    that the firmware has the say over, ``also`` the folders of the controllers that lead to an NVMe drive besides.
    """

    name: str
    device: str
    enclosure: tuple[str, str] | None = None
    slots: Mapping[str, str] = field(default_factory=dict)
    blocks: Mapping[str, str] = field(default_factory=dict)
    ejecting: frozenset[str] = frozenset()
    also: tuple[str, ...] = ()

    @property
    def functions(self) -> list[str]:
        """The PCI addresses on the way to it, its own last."""
        return _PCI.findall(self.device)

    def below(self, address: str) -> list[str]:
        """The other drives below a PCI function, port or slot (an address without its function)."""
        wanted = re.compile(rf"/{re.escape(address)}(?:\.[0-7])?/")
        # nvme0c0n1 is a path of nvme0n1, whose own folder is that of its subsystem.
        names = {nvme_drive_of(name) for name, folder in self.blocks.items() if wanted.search(folder)}
        return sorted(names - {self.name})

    def beside(self) -> list[str]:
        """The other logical units of its SCSI target, as a hard disk with two actuators has one for each."""
        target = _TARGET.search(self.device)
        units = [name for name, folder in self.blocks.items() if target is not None and target[0] in folder]
        return sorted(set(units) - {self.name})


class HostSlot:
    """:class:`~rackloop_drivers.host_tools.Breaking` of the drive ``drive_id`` in its slot of the server ``host``.

    ``device`` is where it is, as :class:`~rackloop_drivers.drive.HostDrive` takes it; ``serial`` must be that of the
    drive there. Kinds: ``removed``, forgotten by the kernel until it looks again (SCSI delete and scan, or PCI remove
    and rescan); ``slot_power_off`` of a PCIe hot-plug slot; ``device_off``, switched off by the enclosure it is in;
    ``link_disabled``, the link of the PCIe port above it. A drive that is mounted or held, or the boot drive, and any
    other drive than the one described are refused with GuardRefused. ``kinds`` are those that its place allows.
    ``within_s`` is how long the drive may take to come and to go.
    """

    def __init__(
        self,
        host: Host,
        device: str,
        *,
        drive_id: str,
        serial: str,
        kinds: frozenset[str] = ALL,
        within_s: float = 60.0,
    ) -> None:
        self.kinds = kinds
        self._host = host
        self._device = device
        self._drive_id = drive_id
        self._serial = serial
        self._within_s = within_s
        self._prepares: Mapping[str, Callable[[_Place, Deadline], dict[str, Any]]] = {
            "device_off": self._prepare_device_off,
            "link_disabled": self._prepare_link_disabled,
            "removed": self._prepare_removed,
            "slot_power_off": self._prepare_slot_power_off,
        }

    def prepare(self, fault: Mapping[str, Any], deadline: Deadline) -> dict[str, Any]:
        """See :class:`~rackloop_drivers.host_tools.Breaking`."""
        if surplus := sorted(fault.keys() - {"kind"}):
            raise BadInput(f"{fault['kind']} of {self._where} takes no {', '.join(surplus)}")
        seen = identify_drive(self._host, self._device, deadline)
        reasons = [f"it is in use: {claim}" for claim in seen.usage.claims]
        if seen.usage.is_boot_drive:
            reasons.append("it is the boot drive")
        if normal_text(seen.identity.serial) != normal_text(self._serial):
            found = f"the drive at {self._where} has {seen.identity.serial}"
            reasons.append(f"the serial is described as {self._serial}, {found}")
        if reasons:
            raise GuardRefused(self._drive_id, reasons)
        place = self._locate(deadline)
        if f"/dev/{place.name}" != seen.device:
            raise LabError(f"{self._where}: {seen.device} became /dev/{place.name} while it was looked at; try again")
        note = self._prepares[str(fault["kind"])](place, deadline)
        self._require_alone(place, str(fault["kind"]), note, deadline)
        return note

    def start(self, note: Mapping[str, Any], deadline: Deadline) -> None:
        """See :class:`~rackloop_drivers.host_tools.Breaking`."""
        if "enclosure" in note:
            self._set_device_off(note, deadline, is_off=True)
            self._await("gone", deadline)
        elif "bridge" in note:
            self._set_link(note["bridge"], deadline, is_disabled=True)
            self._await("gone", deadline)
        else:
            self._run("write", note["break_file"], note["break_value"], "gone", self._device, deadline=deadline)

    def stands(self, note: Mapping[str, Any], deadline: Deadline) -> bool:
        """See :class:`~rackloop_drivers.host_tools.Breaking`."""
        if "enclosure" in note:
            answer = self._ses(note, "--get=devoff", deadline)
            return answer.strip() == "1"
        if "bridge" in note:
            return self._is_disabled(note["bridge"], deadline)
        if note["fault"]["kind"] == "slot_power_off":
            return self._host.read_file(note["mend_file"], deadline).strip() == b"0"
        completed = self._host.run(self._command("locate", self._device), deadline)
        if completed.status not in {0, _NOT_THERE}:
            # Else a drive that is away would be taken for one that came back by itself.
            said = failure_of(completed)
            raise LabError(f"{self._where}: it cannot be told whether the drive is there: {said}")
        return completed.status == _NOT_THERE or self._is_replaced(note, deadline)

    def end(self, note: Mapping[str, Any], deadline: Deadline) -> None:
        """See :class:`~rackloop_drivers.host_tools.Breaking`."""
        if not self.stands(note, deadline):
            return
        if "enclosure" in note:
            self._set_device_off(note, deadline, is_off=False)
            self._await("there", deadline)
        elif "bridge" in note:
            self._set_link(note["bridge"], deadline, is_disabled=False)
            self._await("there", deadline)
        else:
            self._run("write", note["mend_file"], note["mend_value"], "there", self._device, deadline=deadline)

    def _is_replaced(self, note: Mapping[str, Any], deadline: Deadline) -> bool:
        """Whether another drive is in the place of the one that was removed, as a switch may have joined it there."""
        if (serial := note.get("serial")) is None:
            return False
        try:
            seen = identify_drive(self._host, self._device, deadline)
        except LabError:
            # One that does not say who it is may be the one that was removed.
            return False
        return normal_text(seen.identity.serial) != normal_text(str(serial))

    def _require_alone(self, place: _Place, kind: str, note: Mapping[str, Any], deadline: Deadline) -> None:
        """Return where nothing goes with the drive that must stay: its other units, what else is behind its port.

        Raises GuardRefused with every reason.
        """
        if kind == "device_off":
            others = place.beside()
        elif place.name.startswith("nvme"):
            function = self._function(place)
            slot = function.rpartition(".")[0] if kind == "slot_power_off" else function
            others = place.below(note.get("bridge", slot))
        else:
            # A SCSI device that is forgotten goes alone.
            others = []
        if not others:
            return
        seen = read_drives(self._host, [f"/dev/{name}" for name in others], deadline)
        reasons = [f"{node} goes with it and cannot be read: {why}" for node, why in seen.unreadable.items()]
        for drive in seen.drives:
            if drive.usage.is_boot_drive:
                reasons.append(f"{drive.device}, which goes with it, is the boot drive")
            reasons += (f"{drive.device} goes with it and is in use: {claim}" for claim in drive.usage.claims)
            if normal_text(drive.identity.serial) != normal_text(self._serial):
                reasons.append(f"{drive.device}, which goes with it, is another drive, {drive.identity.serial}")
        if reasons:
            raise GuardRefused(self._drive_id, reasons)

    @property
    def _where(self) -> str:
        return f"{self._host.name}:{self._device}"

    def _prepare_removed(self, place: _Place, _deadline: Deadline) -> dict[str, Any]:
        # What is looked at to mend it is its own place: beside it another drive may be removed, and has to stay so.
        if scsi := _SCSI.search(place.device):
            host, channel, target, lun = scsi.groups()
            return {
                "break_file": f"{place.device}/delete",
                "break_value": "1",
                "mend_file": f"/sys/class/scsi_host/host{host}/scan",
                "mend_value": f"{channel} {target} {lun}",
                "serial": self._serial,
            }
        function = self._function(place)
        return {
            "break_file": f"/sys/bus/pci/devices/{function}/remove",
            "break_value": "1",
            # The rescan file of the port above it is for the bus that the port is on, with all the ports there.
            "mend_file": f"/sys/class/pci_bus/{function.rpartition(':')[0]}/rescan",
            "mend_value": "1",
            "serial": self._serial,
        }

    def _prepare_slot_power_off(self, place: _Place, _deadline: Deadline) -> dict[str, Any]:
        address = self._function(place).rpartition(".")[0]
        if address in place.ejecting:
            raise NotSupported(
                f"{self._where} is in a slot of the firmware's (ACPI), which ejects a drive and gives it no power "
                "again; boot the server with pciehp in charge of its slots (pcie_ports=native)"
            )
        slot = place.slots.get(address)
        if slot is None:
            raise NotSupported(f"{self._where} is in no PCIe hot-plug slot; is pciehp loaded?")
        return {"break_file": f"{slot}/power", "break_value": "0", "mend_file": f"{slot}/power", "mend_value": "1"}

    def _prepare_device_off(self, place: _Place, _deadline: Deadline) -> dict[str, Any]:
        if place.enclosure is None:
            raise NotSupported(f"{self._where} is in no enclosure that has services (SES) to switch it off with")
        if not place.enclosure[1]:
            raise NotSupported(
                f"{self._where}: its enclosure gives several drives the number of its slot, by which another might be "
                "switched off"
            )
        require_tool(self._host, "sg_ses")
        return {"enclosure": place.enclosure[0], "slot": place.enclosure[1]}

    def _prepare_link_disabled(self, place: _Place, deadline: Deadline) -> dict[str, Any]:
        self._function(place)
        if len(place.functions) < 2:
            raise NotSupported(f"{self._where} is behind no PCIe port whose link could be disabled")
        require_tool(self._host, "setpci")
        bridge = place.functions[-2]
        if self._register(bridge, _SLOT_CAPABILITIES, deadline) & _POWER_CONTROLLER:
            # The kernel gives such a slot its power anew once the link is lost, and clears the bit for that.
            raise NotSupported(
                f"{self._where}: the slot of {bridge} has a power controller, by which its link would come back by "
                "itself; take the drive away by slot_power_off"
            )
        return {"bridge": bridge}

    def _function(self, place: _Place) -> str:
        """The drive's PCI function. Raises NotSupported where it is not on PCIe itself."""
        if not place.name.startswith("nvme") or not place.functions:
            raise NotSupported(f"{self._where} is {place.name}, which is no PCIe drive: it has no PCIe slot of its own")
        if place.also:
            ways = ", ".join((place.device, *place.also))
            raise NotSupported(f"{self._where} has several controllers, and stays until all are gone: {ways}")
        return place.functions[-1]

    def _locate(self, deadline: Deadline) -> _Place:
        fields: dict[str, str] = {}
        slots: dict[str, str] = {}
        blocks: dict[str, str] = {}
        ejecting: set[str] = set()
        also: list[str] = []
        for line in self._run("locate", self._device, deadline=deadline).splitlines():
            kind, _, rest = line.partition(" ")
            if kind == "block":
                block, _, folder = rest.partition(" ")
                blocks[block] = f"{folder}/"
            elif kind == "slot":
                address, _, folder = rest.partition(" ")
                slots[address] = folder
            elif kind == "ejects":
                ejecting.add(rest)
            elif kind == "also":
                also.append(rest)
            else:
                fields[kind] = rest
        enclosure, _, slot = fields.get("enclosure", "").partition(" ")
        return _Place(
            fields["name"],
            fields["device"],
            (enclosure, slot) if enclosure else None,
            slots,
            blocks,
            frozenset(ejecting),
            tuple(also),
        )

    def _set_device_off(self, note: Mapping[str, Any], deadline: Deadline, *, is_off: bool) -> None:
        self._ses(note, "--set=devoff" if is_off else "--clear=devoff", deadline)

    def _ses(self, note: Mapping[str, Any], change: str, deadline: Deadline) -> str:
        enclosure = self._run("enclosure", note["enclosure"], deadline=deadline).strip()
        return self._tool(["sg_ses", f"--dev-slot-num={note['slot']}", change, enclosure], deadline)

    def _set_link(self, bridge: str, deadline: Deadline, *, is_disabled: bool) -> None:
        bits = _LINK_DISABLE if is_disabled else 0
        self._tool(["setpci", "-s", bridge, f"{_LINK_CONTROL}={bits:02x}:{_LINK_DISABLE:02x}"], deadline)
        if is_disabled and not self._is_disabled(bridge, deadline):
            raise NotSupported(f"{self._where}: the PCIe port {bridge} above it does not let its link be disabled")

    def _is_disabled(self, bridge: str, deadline: Deadline) -> bool:
        return bool(self._register(bridge, _LINK_CONTROL, deadline) & _LINK_DISABLE)

    def _register(self, bridge: str, register: str, deadline: Deadline) -> int:
        said = self._tool(["setpci", "-s", bridge, register], deadline)
        try:
            return int(said, 16)
        except ValueError:
            # It says nothing, and that it did well, of a port that is not there.
            raise LabError(
                f"{self._where}: setpci printed {said.strip()!r} for {register} of {bridge}; is that port there?"
            ) from None

    def _tool(self, argv: list[str], deadline: Deadline) -> str:
        completed = self._host.run(argv, deadline)
        if completed.status:
            said = failure_of(completed)
            raise LabError(f"{self._host.name}: {' '.join(argv)} failed: {said}")
        return completed.stdout

    def _await(self, state: str, deadline: Deadline) -> None:
        self._run("await", state, self._device, deadline=deadline)

    def _run(self, what: str, *arguments: str, deadline: Deadline) -> str:
        completed = self._host.run(self._command(what, *arguments, within_s=deadline.remaining_s()), deadline)
        if completed.status == _TIMED_OUT:
            raise DeadlineExceeded(f"{self._where}: the drive did not come or go in time as it was told; look at dmesg")
        if completed.status == _NOT_THERE:
            what = f"no enclosure {arguments[0]}" if what == "enclosure" else f"no drive at {self._device}"
            raise LabError(f"{self._host.name}: {what}; is it plugged in, with power?")
        if completed.status == _NOT_ABOVE:
            raise GuardRefused(self._drive_id, [completed.stderr.strip()])
        if completed.status:
            said = failure_of(completed)
            raise LabError(f"{self._where}: {what} {' '.join(arguments)}: {said}; it takes root on the server")
        return completed.stdout

    def _command(self, what: str, *arguments: str, within_s: float = math.inf) -> list[str]:
        script = files("rackloop_drivers.slot").joinpath("slot.sh").read_text(encoding="utf-8")
        tries = int(min(within_s, self._within_s) / _TRY_S / 2)
        return ["sh", "-c", script, "slot", what, *arguments, str(tries)]
