"""Remap latency of each driver stack: the Flexible Fabric paper's Figure 2, measured at the first verified read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from threading import Event
from typing import Any

import pytest

from rackloop.errors import NotSupported
from rackloop.lab import Lab, Stack
from rackloop.measurement import Distribution
from rackloop.parameters import flag, stack, whole
from rackloop.record import RemapSeen
from rackloop_fixtures import Measure, Progress, Rack, added_s, run_parallel
from rackloop_labs.lacking import require
from rackloop_labs.remapping import share_spares
from rackloop_labs.scratch_ports import scratch_ports

PARAMETERS = {
    "remaps": whole(
        400, "map changes of each server, each of one drive; more where this machine made some late", most=10_000_000
    ),
    "quick_remaps": whole(2000, "map changes of each server that brings a drive online within 10 ms", most=10_000_000),
    "stacks": stack(["vanilla", "no_timeouts", "warm_port", "comreset"], "driver stacks to measure"),
    "mount": flag(False, "give each drive an ext4, and mount it for its first file after each change"),
}
MEASURES = {"remap.latency": "s", "remap.law": "s", "remap.attach": "s", "remap.switch": "s", "remap.mount": "s"}
HEADLINES = ("remap.latency",)

# They have a drive online within 10 ms: more changes of theirs cost seconds, and p99 then bears some that are late.
_QUICK = {Stack.WARM_PORT, Stack.COMRESET}
# A change is late where this machine may have added as much to it, and such a part of its latency. More changes are
# made where some are, as if these were the slowest of all, but no more than so many times those that were planned.
_LATE_S, _LATE_PART, _TAIL, _MOST_TIMES = 0.002, 0.15, 0.99, 3
# The time from a change at a port to the next one there, and that for which a change has the switch for itself.
_WAITS_S = {Stack.VANILLA: 0.21, Stack.NO_TIMEOUTS: 0.1}
_TURN_S = 0.004

pytestmark = pytest.mark.rackloop(
    purpose="measure the time from the switch command to a drive's first verified read, for each driver stack",
    requires=["fabric.remap", "probe", "remap.announce", "remap.timeline"],
    destructive=True,
    time_class="minutes",
)


def check(lab: Lab, parameters: Mapping[str, Any]) -> None:
    """NotSupported where nothing in the lab mounts what is to be mounted."""
    if parameters["mount"]:
        require(lab, "remap.mount")


def drives_erased(lab: Lab, parameters: Mapping[str, Any]) -> list[str]:
    """The drives that get an identified sector: those the measured servers hold at the baseline, and their spares."""
    servers = _servers(lab, parameters)
    drives = (drive for server in servers for drive in scratch_ports(lab, server).values())
    return [*drives, *share_spares(lab, servers).values()]


def needs(lab: Lab, parameters: Mapping[str, Any]) -> list[str]:
    """The servers that are the only ones of a stack that is to be measured."""
    servers = _servers(lab, parameters)
    stacks = [lab.servers[name].stack for name in servers]
    return [name for name, stack in zip(servers, stacks, strict=True) if stacks.count(stack) == 1]


def estimate_s(lab: Lab, parameters: Mapping[str, Any]) -> float:
    """The changes of all servers one after another, or those at a port of the slowest, its ports side by side.

    Without a spare one of its ports rests.
    """
    servers = _servers(lab, parameters)
    spares = share_spares(lab, servers)
    changes = {name: _changes(lab, parameters, name) for name in servers}
    at_port = {name: changes[name] / max(1, len(lab.servers[name].ports) - (name not in spares)) for name in servers}
    waits_s = (_WAITS_S.get(lab.servers[name].stack, 0) * at_port[name] for name in servers)
    labelled = len(drives_erased(lab, parameters))
    further_s = added_s(lab, remaps=max(at_port.values()), permits=labelled)
    return 3 + max(_TURN_S * sum(changes.values()), *waits_s) + further_s


def _servers(lab: Lab, parameters: Mapping[str, Any]) -> list[str]:
    stacks = parameters["stacks"]
    servers = [name for name, server in lab.servers.items() if server.stack in stacks and scratch_ports(lab, name)]
    if not servers:
        raise NotSupported(
            f"no server of lab {lab.name} has a scratch drive at its baseline and one of the stacks {', '.join(stacks)}"
        )
    return servers


def _changes(lab: Lab, parameters: Mapping[str, Any], server: str) -> int:
    return int(parameters["quick_remaps" if lab.servers[server].stack in _QUICK else "remaps"])


def _lacking(seen: Sequence[RemapSeen], planned: int) -> int:
    """The further changes that a server needs, for its p99 to bear those that this machine made late.

    None where so many were not planned that a p99 bears anything, or where it would be too many more.
    """
    late = sum(remap.latency_error_s > max(_LATE_S, _LATE_PART * remap.latency_s) for remap in seen)
    needed = Distribution.draws_to_bear(_TAIL, late)
    bears = planned >= Distribution.fewest_draws(_TAIL) and needed <= _MOST_TIMES * planned
    return max(0, needed - len(seen)) if late and bears else 0


def test_remap_latency(rack: Rack, parameters: Mapping[str, Any], measure: Measure, progress: Progress) -> None:
    """Exchange the drives of each server's ports one by one, all ports and servers side by side."""
    lab = rack.lab
    servers = _servers(lab, parameters)
    changes = {name: _changes(lab, parameters, name) for name in servers}
    with rack.remapping(servers, share_spares(lab, servers), mount=parameters["mount"]) as remapping:

        def tell() -> None:
            progress(remapping.seen, max(remapping.seen, sum(changes.values())), "remaps")

        def change(server: str, stop: Event) -> None:
            more = changes[server]
            while more and not stop.is_set():
                remapping.keep_changing(server, more, stop, tell)
                more = _lacking(remapping.timelines(server), changes[server])

        run_parallel(change, servers)
    for its_stack in dict.fromkeys(lab.servers[name].stack for name in servers):
        # Servers of one stack are one population: a limit judges it once, and by all that was seen of it.
        alike = [name for name in servers if lab.servers[name].stack is its_stack]
        seen = [remap for name in alike for remap in remapping.timelines(name)]
        # Each drive comes by a map change of its own; what came by one would have been late together.
        clusters = [remap.generation for remap in seen]
        measure(
            "remap.latency",
            [remap.latency_s for remap in seen],
            errors=[remap.latency_error_s for remap in seen],
            clusters=clusters,
            stack=its_stack,
        )
        # A switch that does not say when it acted leaves the two undivided.
        if timed := [remap for remap in seen if any(stage.name == "executed" for stage in remap.stages)]:
            generations = [remap.generation for remap in timed]
            measure(
                "remap.attach",
                [remap.attach_s for remap in timed],
                errors=[remap.attach_error_s for remap in timed],
                clusters=generations,
                stack=its_stack,
            )
            measure(
                "remap.switch",
                [remap.switch_s for remap in timed],
                errors=[remap.switch_error_s for remap in timed],
                clusters=generations,
                stack=its_stack,
            )
        if laws := [remap.law_s for remap in seen if remap.law_s is not None]:
            measure("remap.law", laws, errors=0.0, stack=its_stack)
        if mounted := [remap for remap in seen if any(stage.name == "mounted" for stage in remap.stages)]:
            measure(
                "remap.mount",
                [(remap.at_ns("mounted") - remap.at_ns("verified")) / 1e9 for remap in mounted],
                errors=[remap.stages[-1].error_ns / 1e9 for remap in mounted],
                clusters=[remap.generation for remap in mounted],
                stack=its_stack,
            )
