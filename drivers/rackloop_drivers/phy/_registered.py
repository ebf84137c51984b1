"""The PHYs of servers as lab descriptions name them."""

from __future__ import annotations

from rackloop.abilities import PhyControl
from rackloop.lab import Lab
from rackloop_drivers.boxes import PhyDriver, PhyOpening


class HostPhyDriver(PhyDriver):
    """The SAS PHYs of the servers' own HBAs, worked by commands on the servers."""

    def open(self, opening: PhyOpening) -> PhyControl | None:
        """The PHYs of all ports whose paths the description gives."""
        from rackloop_drivers.phy import HostPhy, HostPhys

        ports = {number: HostPhy(opening.hosts[server], path) for number, (server, path) in opening.paths.items()}
        drives = {number: _may_be_behind(opening.lab, number, server) for number, (server, _) in opening.paths.items()}
        return HostPhys(ports, drives=drives, look_s=opening.lab.time_s("tools")) if ports else None


def _may_be_behind(lab: Lab, number: int, server: str) -> dict[str, str]:
    """The serials of what is described behind a server's port, and of every scratch drive: it may be anywhere."""
    joined, ports = lab.joined(server), lab.servers[server].ports
    there = [name for port, far in joined.items() if ports[port] == number for name in lab.behind(far)]
    scratch = [name for name, drive in lab.drives.items() if drive.scratch]
    return {name: lab.drives[name].serial for name in (*there, *scratch)}
