"""Remap latency of each driver stack: the Flexible Fabric paper's Figure 2, measured at the first verified read."""

from __future__ import annotations

from collections.abc import Mapping
from threading import Event
from typing import Any

import pytest

from rackloop.errors import NotSupported
from rackloop.lab import Lab
from rackloop.parameters import stack, whole
from rackloop_fixtures import Measure, Progress, Rack, side_by_side

PARAMETERS = {
    "remaps": whole(400, "remaps of each server", most=10_000_000),
    "stacks": stack(["vanilla", "no_timeouts", "warm_port", "comreset"], "servers of which stacks are measured"),
}
MEASURES = {"remap.latency": "s", "remap.attach": "s", "remap.switch": "s"}

pytestmark = pytest.mark.rackloop(
    purpose="measure how long a drive takes from the switch command to its first verified read, for each driver stack",
    requires=["fabric.remap", "probe"],
    destructive=True,
    time_class="minutes",
)


def drives_erased(lab: Lab, parameters: Mapping[str, Any]) -> list[str]:
    """The drives that get an identified sector: those the measured servers hold at the baseline."""
    return [drive for server in _servers(lab, parameters) for drive in lab.drives_of(server)]


def needs(lab: Lab, parameters: Mapping[str, Any]) -> list[str]:
    """The servers that are the only ones of a stack that is to be measured."""
    servers = _servers(lab, parameters)
    stacks = [lab.servers[name].stack for name in servers]
    return [name for name, stack in zip(servers, stacks, strict=True) if stacks.count(stack) == 1]


def estimate_s(lab: Lab, parameters: Mapping[str, Any]) -> float:
    """The slowest stack sets the pace: 200 ms a round, a remap on each of its ports in every round."""
    rounds = max(parameters["remaps"] / max(1, len(lab.servers[name].ports)) for name in _servers(lab, parameters))
    return float(2 + 0.21 * rounds)


def _servers(lab: Lab, parameters: Mapping[str, Any]) -> list[str]:
    servers = [name for name, server in lab.servers.items() if server.stack in parameters["stacks"]]
    if not servers:
        raise NotSupported(f"no server of lab {lab.name} has one of the stacks {', '.join(parameters['stacks'])}")
    return servers


def test_remap_latency(rack: Rack, parameters: Mapping[str, Any], measure: Measure, progress: Progress) -> None:
    """Rotate the drives of each server among its ports, all servers side by side."""
    servers = _servers(rack.lab, parameters)
    with rack.remapping(servers) as remapping:

        def rotate(server: str, stop: Event) -> None:
            remaps = 0
            while remaps < parameters["remaps"] and not stop.is_set():
                remaps += len(remapping.rotate(server))
                progress(remapping.seen, parameters["remaps"] * len(servers), "remaps")

        side_by_side(rotate, servers)
    for server in servers:
        seen = remapping.timelines(server)[: parameters["remaps"]]
        stack = rack.lab.servers[server].stack
        measure("remap.latency", [remap.latency_s for remap in seen], stack=stack)
        measure("remap.attach", [remap.attach_s for remap in seen], stack=stack)
        measure("remap.switch", [remap.switch_s for remap in seen], stack=stack)
