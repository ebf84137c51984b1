"""PHY drops and flaps under load: I/O waits, nothing fails, other links are undisturbed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from rackloop.lab import Lab
from rackloop.parameters import number, whole
from rackloop_fixtures import Measure, Rack
from rackloop_labs.scratch_ports import first_scratch_drives, first_scratch_ports

PARAMETERS = {
    "drops": whole(10, "drops of the signal of a port of each server", most=1_000_000),
    "down_ms": number(20.0, "duration of a drop", least=0.1, most=60_000, unit="ms"),
    "flaps": whole(3, "drops in the flap at the end", most=10_000),
    "flap_down_ms": number(5.0, "duration of each drop in the flap", least=0.1, most=60_000, unit="ms"),
    "flap_up_ms": number(15.0, "pause between drops in the flap", least=0.1, most=60_000, unit="ms"),
    "settle_ms": number(400.0, "time for a port to recover before the next drop", least=0, most=600_000, unit="ms"),
}
MEASURES = {
    "phy.stall": "s",
    "phy.errors": "1",
    "phy.lost": "1",
    "phy.wrong": "1",
    "phy.miscounted": "1",
    "phy.bystander_errors": "1",
    "phy.bystander_stall": "s",
    "phy.bystander_drops": "1",
}
HEADLINES = ("phy.stall",)

pytestmark = pytest.mark.rackloop(
    purpose="drop and flap the PHY of a port under load, and show that its I/O waits and its neighbour's does not",
    requires=["phy.drop", "probe"],
    destructive=True,
    time_class="seconds",
)


def drives_erased(lab: Lab, _parameters: Mapping[str, Any]) -> list[str]:
    """The first two scratch drives of each server: one is disturbed, the other watches."""
    return first_scratch_drives(lab, 2)


def faults(lab: Lab, parameters: Mapping[str, Any]) -> list[str]:
    """The drops and flaps, on the first port of each server."""
    ports = len(first_scratch_ports(lab, 2)[0])
    return [
        f"{parameters['drops']} PHY drops of {parameters['down_ms']:g} ms on {ports} ports",
        f"1 PHY flap of {parameters['flaps']} drops on {ports} ports",
    ]


def estimate_s(_lab: Lab, parameters: Mapping[str, Any]) -> float:
    """Each drop waits for the slowest stack to come back."""
    return float(1 + (parameters["drops"] + 1) * (parameters["down_ms"] + parameters["settle_ms"]) / 1000)


def test_phy_drop(rack: Rack, parameters: Mapping[str, Any], measure: Measure) -> None:
    """Watch two ports of each server; take the signal away from the first."""
    first, second = first_scratch_ports(rack.lab, 2)
    dropped = [rack.lab.switch_port(server, port) for server, port in first.items()]
    bystanders = [rack.lab.switch_port(server, port) for server, port in second.items()]
    before = rack.phy.drop_counts([*dropped, *bystanders], rack.deadline())
    settle_ns = round((parameters["down_ms"] + parameters["settle_ms"]) * 1e6)
    with rack.watching(first) as disturbed, rack.watching(second) as undisturbed:
        for _ in range(parameters["drops"]):
            rack.phy.drop(dropped, parameters["down_ms"] / 1000, rack.deadline(), request_id=rack.new_request_id())
            rack.clock.sleep_until_ns(rack.clock.now_ns() + settle_ns)
        rack.phy.flap(
            dropped,
            parameters["flap_down_ms"] / 1000,
            parameters["flap_up_ms"] / 1000,
            parameters["flaps"],
            rack.deadline(),
            request_id=rack.new_request_id(),
        )
        rack.clock.sleep_until_ns(rack.clock.now_ns() + settle_ns)
    after = rack.phy.drop_counts([*dropped, *bystanders], rack.deadline())

    expected = parameters["drops"] + parameters["flaps"]
    measure("phy.miscounted", sum(after[port] - before[port] != expected for port in dropped))
    measure("phy.bystander_drops", sum(after[port] - before[port] for port in bystanders))
    for server, seen in disturbed.results.items():
        stack = rack.lab.servers[server].stack
        measure("phy.stall", seen.longest_stall_s, stack=stack)
        measure("phy.errors", seen.errors, stack=stack)
        measure("phy.lost", seen.lost, stack=stack)
        measure("phy.wrong", seen.wrong, stack=stack)
    for server, seen in undisturbed.results.items():
        measure("phy.bystander_stall", seen.longest_stall_s, server=server)
        measure("phy.bystander_errors", seen.errors + seen.lost + seen.wrong, server=server)
