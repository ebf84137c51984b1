"""The links and slots that the servers of an open rack break of themselves, and what they note of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from rackloop.lab import Lab, LabKind, Part, PartKind
from rackloop_labs.host_parts import HostPart, host_parts

if TYPE_CHECKING:
    from rackloop.abilities import Breakable, PowerPort
    from rackloop.clock import Deadline
    from rackloop.portmap import PortMap
    from rackloop_drivers.host import SshHost
    from rackloop_drivers.host_tools import Breaking, HostFaults, HostRegister


def host_breakables(
    lab: Lab, hosts: Mapping[str, SshHost], live: Callable[[Deadline], PortMap] | None = None
) -> dict[str, HostFaults]:
    """The parts of :func:`~rackloop_labs.host_parts.host_parts`, by name. With a switch ``live`` says its map now."""
    from rackloop_drivers.host_tools import HostFaults

    broken: dict[str, HostFaults] = {}
    for each in host_parts(lab):
        name, make = str(each.part), _making(lab, hosts[each.server], each)
        if live is None:
            there = lab.behind(lab.joined(each.server)[each.port]) if each.drive is None else [each.drive]
            breaking = make(there)
        else:
            from rackloop_labs.live_port import AtLivePort

            breaking = AtLivePort(lab, each, live, make)
        broken[name] = HostFaults(hosts[each.server], name, breaking)
    return broken | (_networks(hosts) if lab.kind is LabKind.PHYSICAL else {})


def host_registers(hosts: Mapping[str, SshHost], broken: Mapping[str, HostFaults]) -> tuple[HostRegister, ...]:
    """The registers of the parts that :func:`host_breakables` gave: one for each server that has any."""
    from rackloop_drivers.host_tools import HostRegister

    of = {server: [name for name in broken if Part.of(name).server_name == server] for server in hosts}
    return tuple(HostRegister(hosts[server], {name: broken[name] for name in its}) for server, its in of.items() if its)


def crashes(lab: Lab, hosts: Mapping[str, SshHost], power: Mapping[str, PowerPort]) -> dict[str, Breakable]:
    """The servers that can be told to panic, and given a new start by their power; simulated ones have other ways."""
    if lab.kind is not LabKind.PHYSICAL:
        return {}
    from rackloop_drivers.crash import HostCrash

    names = {server: str(Part.server(server)) for server in hosts}
    return {name: HostCrash(hosts[server], name, power[name]) for server, name in names.items() if name in power}


def _networks(hosts: Mapping[str, SshHost]) -> dict[str, HostFaults]:
    """The networks of real servers; simulated ones have a cable that can be pulled."""
    from rackloop_drivers.host_tools import HostFaults
    from rackloop_drivers.network import HostPartition

    names = {server: str(Part(PartKind.NETWORK, server)) for server in hosts}
    return {name: HostFaults(hosts[server], name, HostPartition(hosts[server])) for server, name in names.items()}


def _making(lab: Lab, host: SshHost, each: HostPart) -> Callable[[Sequence[str]], Breaking]:
    """The maker of a part's :class:`~rackloop_drivers.host_tools.Breaking`, by the drives that are there."""
    from rackloop_drivers.drive import InterruptedErasure
    from rackloop_drivers.fail_fast import FailFast
    from rackloop_drivers.host_tools import SeveralWays
    from rackloop_drivers.phy import HostPhy, PhySwitchedOff
    from rackloop_drivers.slot import HostSlot

    if each.part.kind is PartKind.PHY:
        return lambda drives: PhySwitchedOff(
            HostPhy(host, each.device), {name: lab.drives[name].serial for name in drives}
        )

    def slot(drives: Sequence[str]) -> Breaking:
        # Where none is, what was broken can still be asked about, and mended.
        name = drives[0] if drives else ""
        serial = lab.drives[name].serial if drives else ""
        taken_away = HostSlot(host, each.device, drive_id=name, serial=serial, kinds=each.kinds)
        if lab.kind is LabKind.MOCK:
            # Simulated drives erase themselves at once, and are told with each read not to try again.
            return taken_away
        return SeveralWays(taken_away, InterruptedErasure(host), FailFast(host, each.device))

    return slot
