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
    from rackloop.safety.leases import HeldLease
    from rackloop_drivers.boxes import DiagnosticInterrupt
    from rackloop_drivers.host import SshHost
    from rackloop_drivers.host_tools import Breaking, HostFaults, HostRegister
    from rackloop_labs.live_port import BreakingOf

# One that is slower would lose its power as crashed.
_ANSWER_S = 15.0


def host_breakables(
    lab: Lab, hosts: Mapping[str, SshHost], live: Callable[[Deadline], PortMap] | None = None
) -> dict[str, HostFaults]:
    """The parts of :func:`~rackloop_labs.host_parts.host_parts`, by name. With a switch ``live`` says its map now."""
    from rackloop_drivers.host_tools import HostFaults

    add_up: frozenset[str] = frozenset()
    if runs_kernels(lab):
        from rackloop_drivers.drive import ERASING

        # A switch may have given the place to another drive since one was left to erase itself there.
        add_up = frozenset({ERASING})
    broken: dict[str, HostFaults] = {}
    for each in host_parts(lab):
        name, make = str(each.part), _making(lab, hosts[each.server], each)
        if live is None:
            there = lab.behind(lab.joined(each.server)[each.port]) if each.drive is None else [each.drive]
            breaking = make(there)
        else:
            from rackloop_labs.live_port import AtLivePort

            breaking = AtLivePort(lab, each, live, make)
        broken[name] = HostFaults(hosts[each.server], name, breaking, add_up=add_up)
    return broken | _of_whole_servers(hosts) if runs_kernels(lab) else broken


def host_registers(
    lab: Lab,
    hosts: Mapping[str, SshHost],
    broken: Mapping[str, HostFaults],
    drives: Mapping[str, Mapping[str, HostFaults]] | None = None,
) -> tuple[HostRegister, ...]:
    """The registers of the parts that :func:`host_breakables` gave: one for each server that has any.

    ``drives`` are those that each server may have notes of besides.
    """
    from rackloop_drivers.host_tools import HostRegister

    of = {
        server: {name: part for name, part in broken.items() if Part.of(name).server_name == server}
        | dict((drives or {}).get(server, {}))
        for server in hosts
    }
    answer_s = lab.time_s("answer")
    return tuple(HostRegister(hosts[server], its, answer_s=answer_s) for server, its in of.items() if its)


def crashes(
    lab: Lab,
    hosts: Mapping[str, SshHost],
    power: Mapping[str, PowerPort],
    interrupts: Mapping[str, DiagnosticInterrupt],
    others: Mapping[str, HostFaults],
    lease: HeldLease | None = None,
) -> dict[str, Breakable]:
    """The servers that can be told to panic, and given a new start by their power; simulated ones have other ways.

    What each can be broken in besides is that of ``others``. Under ``lease`` a start is noted in the undo journal.
    """
    if not runs_kernels(lab):
        return {}
    from rackloop.safety.undo import Journal
    from rackloop_drivers.crash import HostCrash, ServerFaults
    from rackloop_labs.restart_notes import restart_notes

    journal = Journal(lease.leases.store) if lease else None
    parts: dict[str, Breakable] = {}
    answer_s = lab.time_s("answer", at_least=_ANSWER_S)
    for server, host in hosts.items():
        if (name := str(Part.server(server))) in power:
            crash = HostCrash(
                host,
                name,
                power[name],
                interrupts.get(server),
                answer_s=answer_s,
                boot_s=lab.time_s("boot"),
                note=restart_notes(journal, lab.name, name, lease) if journal else None,
            )
            parts[name] = ServerFaults(crash, others[name])
    return parts


def runs_kernels(lab: Lab) -> bool:
    """Whether the servers run kernels of their own, which can be told what simulated ones cannot."""
    return lab.kind is not LabKind.MOCK


def _of_whole_servers(hosts: Mapping[str, SshHost]) -> dict[str, HostFaults]:
    """The networks of real servers, their programs and arrays; simulated ones have a cable that can be pulled."""
    from rackloop_drivers.hang import HostHang
    from rackloop_drivers.host_tools import FaultDispatcher, HostFaults
    from rackloop_drivers.md import HostArrays
    from rackloop_drivers.network import HostPartition

    parts: dict[str, HostFaults] = {}
    for server, host in hosts.items():
        network, whole = str(Part(PartKind.NETWORK, server)), str(Part.server(server))
        parts[network] = HostFaults(host, network, HostPartition(host))
        breaking = FaultDispatcher(HostHang(host), HostArrays(host))
        # An array beside another is one of its own.
        parts[whole] = HostFaults(host, whole, breaking, add_up=breaking.kinds)
    return parts


def _making(lab: Lab, host: SshHost, each: HostPart) -> BreakingOf:
    """The maker of a part's :class:`~rackloop_drivers.host_tools.Breaking`, by the drives that are there.

    Few runs break any: what it takes is loaded then.
    """

    def phy(drives: Sequence[str], *, awaited: bool = True) -> Breaking:  # noqa: ARG001 - it waits for none
        from rackloop_drivers.phy import HostPhy, PhySwitchedOff

        return PhySwitchedOff(HostPhy(host, each.device), {name: lab.drives[name].serial for name in drives})

    def slot(drives: Sequence[str], *, awaited: bool = True) -> Breaking:
        from rackloop_drivers.slot import HostSlot

        # Where none is, what was broken can still be asked about, and mended.
        name = drives[0] if drives else ""
        serial = lab.drives[name].serial if drives else ""
        taken_away = HostSlot(
            host,
            each.device,
            drive_id=name,
            serial=serial,
            kinds=each.kinds,
            within_s=lab.time_s("spin_up") if awaited else 0.0,
        )
        if lab.kind is LabKind.MOCK:
            # Simulated drives erase themselves at once, and are told with each read not to try again.
            return taken_away
        from rackloop_drivers.drive import InterruptedErasure
        from rackloop_drivers.fail_fast import FailFast
        from rackloop_drivers.host_tools import FaultDispatcher

        fail_fast = FailFast(host, each.device, serial=serial, move=lab.has_switch)
        return FaultDispatcher(taken_away, InterruptedErasure(host), fail_fast)

    return phy if each.part.kind is PartKind.PHY else slot
