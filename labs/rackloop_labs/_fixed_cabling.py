"""Racks without a switch: their cables by number, and the PHYs and slots of their servers."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import TYPE_CHECKING, TypeVar

from rackloop.lab import Drive, Expander, Fabric, Lab, Part, PartKind

# Labs with a switch, which come here to be told so, have none of it.
if TYPE_CHECKING:
    from rackloop_drivers.host import SshHost
    from rackloop_drivers.host_tools import HostFaults, HostRegister

_Plugged = TypeVar("_Plugged", Drive, Expander)

_SCSI = frozenset({"removed"})
_ENCLOSED = _SCSI | {"device_off"}
_PCIE = frozenset({"link_disabled", "removed", "slot_power_off"})


def numbered(lab: Lab) -> Lab:
    """The same rack as if its fixed cables went through a switch that joins them: every end of a cable has a number.

    HBA ports are numbered from 1 in the order of the description, what is attached to them after the last of these.
    A rack that has a switch is given back as it is.
    """
    if lab.has_switch:
        return lab
    numbers = count(1)
    servers = {
        name: server.model_copy(update={"ports": {port: next(numbers) for port in server.ports}})
        for name, server in lab.servers.items()
    }

    def at_switch(plugged: Mapping[str, _Plugged]) -> dict[str, _Plugged]:
        return {
            name: thing.model_copy(update={"port": next(numbers), "attached": None}) if thing.attached else thing
            for name, thing in plugged.items()
        }

    update = {
        "servers": servers,
        "drives": at_switch(lab.drives),
        "expanders": at_switch(lab.expanders),
        "baseline": {name: dict(lab.joined(name)) for name in lab.servers},
        "fabric": Fabric.model_construct(driver="cables", ports=next(numbers)),
    }
    return lab.model_copy(update=update)


def host_breakables(lab: Lab, hosts: Mapping[str, SshHost]) -> dict[str, HostFaults]:
    """The parts that servers can break of themselves, by the names of faults.

    That is ``phy:SERVER/PORT``, ``slot:SERVER/PORT`` for a drive at a port, ``slot:SERVER/PORT/SLOT`` for one in a slot
    of the expander there.
    """
    from rackloop_drivers.host_tools import HostFaults
    from rackloop_drivers.phy import HostPhy, PhySwitchedOff
    from rackloop_drivers.slot import HostSlot

    broken: dict[str, HostFaults] = {}
    for (server, port), path in sas_ports(lab).items():
        name = str(Part(PartKind.PHY, f"{server}/{port}"))
        there = {drive: lab.drives[drive].serial for drive in lab.behind(lab.joined(server)[port])}
        broken[name] = HostFaults(hosts[server], name, PhySwitchedOff(HostPhy(hosts[server], path), there))
    for drive_id, drive in lab.drives.items():
        place = _slot_of(lab, drive)
        if place is not None:
            name, server, device = place
            kinds = _PCIE if drive.traits.protocol == "nvme" else _SCSI if drive.expander is None else _ENCLOSED
            slot = HostSlot(hosts[server], device, drive_id=drive_id, serial=drive.serial, kinds=kinds)
            broken[name] = HostFaults(hosts[server], name, slot)
    return broken


def host_registers(hosts: Mapping[str, SshHost], broken: Mapping[str, HostFaults]) -> tuple[HostRegister, ...]:
    """The registers of the parts that :func:`host_breakables` gave: one for each server that has any."""
    from rackloop_drivers.host_tools import HostRegister

    of = {server: [name for name in broken if Part.of(name).server_name == server] for server in hosts}
    return tuple(HostRegister(hosts[server], {name: broken[name] for name in its}) for server, its in of.items() if its)


def sas_ports(lab: Lab) -> dict[tuple[str, str], str]:
    """The paths of the HBA ports that may have SAS PHYs, which those of an AHCI or NVMe controller have not."""
    found = {}
    for name, server in lab.servers.items():
        for port, far in lab.joined(name).items():
            path = server.paths.get(port, "")
            is_nvme = far in lab.drives and lab.drives[far].traits.protocol == "nvme"
            if path and "-ata-" not in path and not is_nvme:
                found[name, port] = path
    return found


def _slot_of(lab: Lab, drive: Drive) -> tuple[str, str, str] | None:
    """The name of a drive's slot, its server, and where the drive is there; None where that is unknown."""
    if drive.attached is not None:
        server, port = drive.attached
        path = lab.servers[server].paths.get(port) or (drive.by_path and f"/dev/disk/by-path/{drive.by_path}")
        return (str(Part(PartKind.SLOT, f"{server}/{port}")), server, path) if path else None
    expander = lab.expanders[drive.expander] if drive.expander is not None else None
    if expander is None or expander.attached is None or drive.wwn is None:
        return None
    server, port = expander.attached
    return str(Part(PartKind.SLOT, f"{server}/{port}/{drive.slot}")), server, f"/dev/disk/by-id/wwn-0x{drive.wwn}"
