"""Throughput with and without switching the drive at every read: the Flexible Fabric paper's Figure 3."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from rackloop.errors import NotSupported
from rackloop.lab import Lab
from rackloop.units import format_quantity
from rackloop_fixtures import Measure, Progress, Rack

KIB, MIB = 1 << 10, 1 << 20
PARAMETERS: dict[str, Any] = {
    "blocks": [4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB, 64 * MIB],
    "reads": 24,
    "stack": "comreset",
}
MEASURES = {
    "throughput.steady": "B/s",
    "throughput.switched": "B/s",
    "throughput.swap_cost": "s",
    "throughput.ratio": "1",
}

pytestmark = pytest.mark.rackloop(
    purpose="measure what switching the drive behind a port at every read costs in throughput, by block size",
    requires=["fabric.remap", "probe"],
    destructive=True,
    time_class="seconds",
)


def drives_erased(lab: Lab, parameters: Mapping[str, Any]) -> list[str]:
    """The two drives that take turns behind the port: they are filled with identified blocks."""
    return lab.drives_of(_server(lab, parameters))[:2]


def estimate_s(_lab: Lab, parameters: Mapping[str, Any]) -> float:
    """A few milliseconds a read and about 1 s a GiB."""
    return float(1 + sum(parameters["reads"] * (0.005 + 2 * block / (1 << 30)) for block in parameters["blocks"]))


def _server(lab: Lab, parameters: Mapping[str, Any]) -> str:
    servers = [name for name, server in lab.servers.items() if server.stack == parameters["stack"]]
    if not servers:
        raise NotSupported(f"no server of lab {lab.name} has the stack {parameters['stack']}")
    return servers[0]


def test_switched_throughput(rack: Rack, parameters: Mapping[str, Any], measure: Measure, progress: Progress) -> None:
    """Read a block, swap the drive, read a block; then the same reads on one drive."""
    server = _server(rack.lab, parameters)
    port, spare = list(rack.lab.servers[server].ports)[:2]
    drives = [rack.drive_at(server, port), rack.drive_at(server, spare)]
    largest = max(parameters["blocks"])
    labels = [rack.fill(server, at, size_bytes=largest) for at in (port, spare)]
    turns = range(parameters["reads"])
    for done, block in enumerate(parameters["blocks"]):
        size = format_quantity(block, "B")
        progress(done, len(parameters["blocks"]), "block sizes")
        with rack.swapped_reads(server, port, labels[0], block_bytes=block, reads=1 + len(turns)) as reads:
            before = reads.read(labels[0]).t_ns
            steady, before = _intervals(before, [reads.read(labels[0]).t_ns for _ in turns])
        with rack.swapped_reads(server, port, labels[0], block_bytes=block, reads=1 + len(turns)) as reads:
            before = reads.read(labels[0]).t_ns
            ended = []
            for turn in turns:
                here = (turn + 1) % 2
                rack.attach(server, {port: drives[here], spare: drives[1 - here]})
                ended.append(reads.read(labels[here]).t_ns)
            switched, before = _intervals(before, ended)
        if len(turns) % 2:
            rack.attach(server, {port: drives[0], spare: drives[1]})
        measure("throughput.steady", [block / seconds for seconds in steady], block=size)
        measure("throughput.switched", [block / seconds for seconds in switched], block=size)
        measure("throughput.swap_cost", [seconds - _median(steady) for seconds in switched], block=size)
        measure("throughput.ratio", _median(steady) / _median(switched), block=size)


def _intervals(start_ns: int, ended_ns: list[int]) -> tuple[list[float], int]:
    """Seconds from each completion to the next, as the paper's workload runs: one read when the last is done."""
    starts = [start_ns, *ended_ns[:-1]]
    return [(end - start) / 1e9 for start, end in zip(starts, ended_ns, strict=True)], ended_ns[-1]


def _median(samples: list[float]) -> float:
    return sorted(samples)[len(samples) // 2]
