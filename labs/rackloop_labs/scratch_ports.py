"""Server ports whose drives at the baseline may be erased, and circuits of drives that have to stay."""

from __future__ import annotations

from rackloop.errors import NotSupported
from rackloop.lab import Lab
from rackloop.portmap import PortMap


def scratch_ports(lab: Lab, server: str) -> dict[str, str]:
    """The ports of a server that have a scratch drive to themselves at the baseline, each with that drive.

    Raises BadInput for an unknown name.
    """
    joined = lab.joined(server)
    mine = {port: joined[port] for port in lab.servers[server].ports if joined.get(port) in lab.drives}
    return {port: drive for port, drive in mine.items() if lab.drives[drive].scratch}


def first_scratch_ports(lab: Lab, number: int) -> list[dict[str, str]]:
    """The first ``number`` such ports: for each place in that order the port of each server that has so many.

    Raises NotSupported where no server has.
    """
    ports = {server: list(scratch_ports(lab, server)) for server in lab.servers}
    enough = {server: its for server, its in ports.items() if len(its) >= number}
    if not enough:
        raise NotSupported(f"no server of lab {lab.name} has {number} scratch drives at its baseline")
    return [{server: its[place] for server, its in enough.items()} for place in range(number)]


def first_scratch_drives(lab: Lab, number: int) -> list[str]:
    """The drives at the first ``number`` ports of each server that has so many. Raises as first_scratch_ports."""
    ports = first_scratch_ports(lab, number)
    return [lab.joined(server)[its[server]] for server in ports[0] for its in ports]


def kept_circuits(lab: Lab) -> PortMap:
    """The circuits of the baseline that lead to a drive which is not scratch, alone or behind its expander.

    A test's map has them all: no act takes the link from such a drive. Empty where the rack has no switch.
    """
    kept = {lab.wired_port(name) for name, drive in lab.drives.items() if not drive.scratch}
    return PortMap.of(pair for pair in lab.baseline_map() if not kept.isdisjoint(pair))
