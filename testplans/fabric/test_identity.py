"""Identity: after many random remaps every server reads exactly the drive the map says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from rackloop.errors import NotSupported
from rackloop.lab import Lab
from rackloop.parameters import whole
from rackloop_fixtures import Measure, Progress, Rack, added_s
from rackloop_labs.scratch_ports import scratch_ports

PARAMETERS = {
    "remaps": whole(1000, "random maps to execute", most=10_000_000),
    "check_every": whole(50, "maps until all ports are read, not only the fast ones", most=10_000_000),
}
MEASURES = {
    "identity.remaps": "1",
    "identity.reads": "1",
    "identity.wrong": "1",
    "identity.unread": "1",
    "identity.map_wrong": "1",
}

pytestmark = pytest.mark.rackloop(
    purpose="remap at random many times and show that every server reads exactly the drive it should",
    requires=["fabric.remap", "probe", "remap.announce", "remap.timeline"],
    destructive=True,
    time_class="seconds",
)


def drives_erased(lab: Lab, _parameters: Mapping[str, Any]) -> list[str]:
    """Every scratch drive of the servers is dealt among them, and gets an identified sector; others stay."""
    drives = [drive for server in lab.servers for drive in scratch_ports(lab, server).values()]
    if len(drives) < 2:
        raise NotSupported(f"the servers of lab {lab.name} have no two scratch drives at its baseline")
    return drives


def estimate_s(lab: Lab, parameters: Mapping[str, Any]) -> float:
    """About 4 ms a remap, and the slowest stack's 200 ms a check of every port."""
    checks = parameters["remaps"] / parameters["check_every"]
    return float(1 + parameters["remaps"] * 0.004 + checks * 0.22 + added_s(lab, remaps=checks))


def test_identity(rack: Rack, parameters: Mapping[str, Any], measure: Measure, progress: Progress) -> None:
    """Deal drives to random ports; check the quick ports at once and every port now and then."""
    with rack.remapping(rack.lab.servers) as remapping:
        for turn in range(1, parameters["remaps"] + 1):
            remapping.deal(rack.chance)
            if turn % parameters["check_every"] == 0:
                remapping.check_all()
            progress(turn, parameters["remaps"], "remaps")
        remapping.check_all()
    measure("identity.remaps", parameters["remaps"])
    measure("identity.reads", remapping.reads)
    measure("identity.wrong", remapping.wrong)
    measure("identity.unread", remapping.unread)
    measure("identity.map_wrong", remapping.map_wrong)
