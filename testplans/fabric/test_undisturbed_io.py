"""I/O on mappings that stay, while everything around them is remapped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from rackloop.lab import Lab
from rackloop.parameters import size, whole
from rackloop.portmap import Full, Partial, PortMap
from rackloop_fixtures import Measure, Moving, Progress, Rack, added_s
from rackloop_labs.scratch_ports import first_scratch_drives, first_scratch_ports

PARAMETERS = {
    "remaps": whole(100, "maps that are executed beside the ports that stay", most=10_000_000),
    "iodepth": whole(4, "I/Os outstanding on each of those", most=4096),
    "size": size(64 << 20, "bytes written and verified on each", least=1 << 20, most=1 << 50, multiple=1 << 20),
}
MEASURES = {
    "undisturbed.errors": "1",
    "undisturbed.lost": "1",
    "undisturbed.wrong": "1",
    "undisturbed.stall": "s",
    "undisturbed.read_stall": "s",
    "undisturbed.latency": "s",
    "undisturbed.remaps": "1",
}

pytestmark = pytest.mark.rackloop(
    purpose="show that full and partial remaps leave the mappings that stay alone: no error, no lost I/O",
    requires=["fabric.remap", "fio"],
    destructive=True,
    time_class="seconds",
)


def drives_erased(lab: Lab, _parameters: Mapping[str, Any]) -> list[str]:
    """The first scratch drive of each server: fio writes and verifies it."""
    return first_scratch_drives(lab, 1)


def faults(lab: Lab, parameters: Mapping[str, Any]) -> list[str]:
    """The acts on the drives beside those that are watched. Raises NotSupported where none could be moved."""
    moving = Moving.beside(lab, _staying(lab).items())
    return [f"{parameters['remaps']} full and partial remaps, by which {moving}"]


def estimate_s(lab: Lab, parameters: Mapping[str, Any]) -> float:
    """A quiet stretch for comparison, then about 30 ms a remap."""
    return float(7.5 + 0.05 * parameters["remaps"] + added_s(lab, remaps=parameters["remaps"]))


def _staying(lab: Lab) -> dict[str, str]:
    [staying] = first_scratch_ports(lab, 1)
    return staying


def test_undisturbed_io(rack: Rack, parameters: Mapping[str, Any], measure: Measure, progress: Progress) -> None:
    """Write and verify with fio on one port of each server; remap the other scratch drives meanwhile."""
    staying = _staying(rack.lab)
    moving = Moving.beside(rack.lab, staying.items())

    with rack.verified_writes(staying, size_bytes=parameters["size"], iodepth=parameters["iodepth"]) as quiet:
        rack.clock.sleep_until_ns(rack.clock.now_ns() + 1_500_000_000)
    busy_writes = rack.verified_writes(staying, size_bytes=parameters["size"], iodepth=parameters["iodepth"])
    with rack.watching(staying) as watched, busy_writes as busy:
        for turn in range(parameters["remaps"]):
            shuffled = moving.dealt(rack.chance)
            partial = turn % 2 == 0
            rack.fabric.apply(
                Partial(shuffled) if partial else Full(PortMap.of((*moving.rest, *shuffled))), rack.deadline()
            )
            rack.clock.sleep_until_ns(rack.clock.now_ns() + rack.chance.randrange(5, 30) * 1_000_000)
            progress(turn, parameters["remaps"], "remaps")

    measure("undisturbed.remaps", parameters["remaps"])
    for phase, runs in (("quiet", quiet), ("remapping", busy)):
        for server, result in runs.results.items():
            measure("undisturbed.errors", result.errors, server=server, phase=phase)
            measure("undisturbed.stall", result.longest_stall_s, server=server, phase=phase)
            measure("undisturbed.latency", result.latency_s, server=server, phase=phase)
    for server, reads in watched.results.items():
        measure("undisturbed.lost", reads.lost, server=server)
        measure("undisturbed.wrong", reads.wrong + reads.errors, server=server)
        measure("undisturbed.read_stall", reads.longest_stall_s, server=server)
    for runs in (quiet, busy):
        runs.require_verified()
