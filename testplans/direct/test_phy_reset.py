"""SAS PHYs reset, dropped and disabled under load: I/O waits, nothing fails, and the PHY counts the event."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from rackloop.errors import NotSupported
from rackloop.faults import FaultSpec
from rackloop.lab import Lab, Part, phy_number
from rackloop.parameters import number, whole
from rackloop_fixtures import Measure, Progress, Rack
from rackloop_labs.lacking import require

PARAMETERS = {
    "resets": whole(2, "link resets of each PHY, and as many hard resets", most=10_000),
    "drops": whole(2, "drops of each PHY's signal", most=10_000),
    "down_ms": number(50.0, "duration of a drop", least=1, most=60_000, unit="ms"),
    "off_ms": number(200.0, "time that a PHY is disabled", least=1, most=60_000, unit="ms"),
    "settle_ms": number(300.0, "pause between them", least=0, most=60_000, unit="ms"),
}
MEASURES = {
    "phy.stall": "s",
    "phy.errors": "1",
    "phy.lost": "1",
    "phy.wrong": "1",
    "phy.uncounted": "1",
}
HEADLINES = ("phy.stall",)

pytestmark = pytest.mark.rackloop(
    purpose="reset, drop and switch off PHYs of drives that are being read, and show that reads wait and none fails",
    requires=["host.links", "probe"],
    destructive=True,
    time_class="minutes",
)


def check(lab: Lab, _parameters: Mapping[str, Any]) -> None:
    """NotSupported where no server of the lab has a PHY that it can switch off, by its description."""
    require(lab, "fault.phy_disable")


def drives_erased(lab: Lab, _parameters: Mapping[str, Any]) -> list[str]:
    """One drive of each server, which is read while its PHY is disturbed."""
    return [lab.joined(server)[port] for server, port in _ports(lab).items()]


def faults(lab: Lab, parameters: Mapping[str, Any]) -> list[str]:
    """For each of these drives: link and hard resets, drops, and once switched off."""
    each = [f"{parameters['resets']} link resets", f"{parameters['resets']} hard resets"]
    each += [f"{parameters['drops']} phy_drop of {parameters['down_ms']:g} ms", "1 phy_disable"]
    return [f"{what} at {server}.{port}" for server, port in _ports(lab).items() for what in each]


def estimate_s(lab: Lab, parameters: Mapping[str, Any]) -> float:
    """Each is waited for."""
    times = 2 * parameters["resets"] + parameters["drops"] + 1
    return float(1 + len(_ports(lab)) * times * (parameters["settle_ms"] / 1000 + 0.25))


def _ports(lab: Lab) -> dict[str, str]:
    """A port of each server that has one with a scratch drive of its own behind a PHY, as far as is described."""
    found: dict[str, str] = {}
    for drive, (server, port) in lab.places.items():
        described = lab.drives[drive]
        is_ahci = "-ata-" in lab.servers[server].paths.get(port, "-ata-")
        if described.scratch and described.traits.protocol != "nvme" and not is_ahci:
            found.setdefault(server, port)
    return found


def test_phy_reset(rack: Rack, parameters: Mapping[str, Any], measure: Measure, progress: Progress) -> None:
    """Read through one port of each server, and disturb its PHY meanwhile."""
    ports = _ports(rack.lab)
    if not ports:
        raise NotSupported(f"no scratch drive of {rack.lab.name} is described at a port with a SAS PHY and a path")
    numbers = {server: phy_number(rack.lab, Part.port(server, port)) for server, port in ports.items()}
    before = rack.phy.drop_counts(numbers.values(), rack.deadline())
    settle_ns = round(parameters["settle_ms"] * 1e6)
    with rack.watching(ports) as watched:
        for done, (server, port) in enumerate(ports.items()):
            progress(done, len(ports), f"{server}.{port}")
            for is_hard in [False, True] * int(parameters["resets"]):
                rack.links.reset_link([numbers[server]], rack.deadline(), is_hard=is_hard)
                rack.clock.sleep_until_ns(rack.clock.now_ns() + settle_ns)
            for _ in range(int(parameters["drops"])):
                with rack.faults.injected(
                    FaultSpec("phy_drop", f"{server}.{port}", {"down_s": parameters["down_ms"] / 1000})
                ):
                    rack.clock.sleep_until_ns(rack.clock.now_ns() + settle_ns)
            with rack.faults.injected(FaultSpec("phy_disable", f"{server}.{port}")):
                rack.clock.sleep_until_ns(rack.clock.now_ns() + round(parameters["off_ms"] * 1e6))
            rack.clock.sleep_until_ns(rack.clock.now_ns() + settle_ns)
    after = rack.phy.drop_counts(numbers.values(), rack.deadline())
    least = 2 * parameters["resets"] + parameters["drops"] + 1
    for server, seen in watched.results.items():
        labels = {"drive": rack.drive_at(server, ports[server]), "stack": rack.lab.servers[server].stack}
        counted = after[numbers[server]] - before[numbers[server]]
        measure("phy.uncounted", int(counted < least), **labels)
        measure("phy.stall", seen.longest_stall_s, **labels)
        measure("phy.errors", seen.errors, **labels)
        measure("phy.lost", seen.lost, **labels)
        measure("phy.wrong", seen.wrong, **labels)
