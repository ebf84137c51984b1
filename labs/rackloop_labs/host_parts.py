"""The links and slots that the servers of a rack can break of themselves, by its description."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rackloop.lab import Drive, Lab, LabKind, Part, PartKind
from rackloop_labs._fixed_cabling import sas_ports
from rackloop_labs.port_paths import port_path

_SCSI = frozenset({"removed"})
_ENCLOSED = _SCSI | {"device_off"}
_PCIE = frozenset({"link_disabled", "removed", "slot_power_off"})
_DISABLED = frozenset({"disabled"})


@dataclass(frozen=True)
class HostPart:
    """A PHY or a slot of a server. ``device`` is where its drive is, or the path of its port.

    ``drive`` is the one that is always there: the drive that is attached, or that is in this slot of an expander.
    """

    part: Part
    server: str
    port: str
    device: str
    kinds: frozenset[str]
    drive: str | None = None


def host_parts(lab: Lab) -> list[HostPart]:
    """The parts that servers can break, by the description.

    Those are ``phy:SERVER/PORT``, ``slot:SERVER/PORT`` for a drive at a port, and ``slot:SERVER/PORT/SLOT`` for one in
    a slot of the expander there. ``lab`` has the paths of the ports that are to be reached.
    """
    # The SAS drives of a virtual rack's guests come without PHYs (decision 0015).
    ports = {} if lab.kind is LabKind.VIRTUAL else sas_ports(lab)
    phys = (
        HostPart(Part(PartKind.PHY, f"{server}/{port}"), server, port, path, _DISABLED)
        for (server, port), path in ports.items()
    )
    return [*phys, *(_slots_of_ports(lab) if lab.has_switch else _slots_of_drives(lab))]


def _slots_of_drives(lab: Lab) -> Iterator[HostPart]:
    """The slots of drives that are attached for good."""
    for drive_id, drive in lab.drives.items():
        if drive.attached is not None:
            server, port = drive.attached
            if device := port_path(lab, server, port):
                yield HostPart(_slot(server, port), server, port, device, _kinds_of(lab, drive), drive_id)
        elif drive.expander is not None and (place := lab.expanders[drive.expander].attached) is not None:
            yield from _in_expander(drive_id, drive, *place)


def _slots_of_ports(lab: Lab) -> Iterator[HostPart]:
    """The slots of ports, whatever the switch joins them to; their kinds follow from the drive at the baseline."""
    for server, described in lab.servers.items():
        joined = lab.joined(server)
        for port, path in described.paths.items():
            far = joined.get(port)
            if far in lab.expanders:
                for drive_id in lab.behind(far):
                    yield from _in_expander(drive_id, lab.drives[drive_id], server, port)
            else:
                kinds = _kinds_of(lab, None if far is None else lab.drives[far])
                yield HostPart(_slot(server, port), server, port, path, kinds)


def _in_expander(drive_id: str, drive: Drive, server: str, port: str) -> Iterator[HostPart]:
    if drive.wwn is not None:
        device = f"/dev/disk/by-id/wwn-0x{drive.wwn}"
        yield HostPart(_slot(server, port, str(drive.slot)), server, port, device, _ENCLOSED, drive_id)


def _kinds_of(lab: Lab, drive: Drive | None) -> frozenset[str]:
    """The ways to break the slot of a drive, or, of none, a slot that may have any."""
    # The slots that a virtual rack's guests have switch neither links nor power.
    is_pcie = (drive is None or drive.traits.protocol == "nvme") and lab.kind is not LabKind.VIRTUAL
    return _PCIE if is_pcie else _SCSI


def _slot(*names: str) -> Part:
    return Part(PartKind.SLOT, "/".join(names))
