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
    "most": 64 * MIB,
    "stack": "comreset",
    "profiles": ["sata-ssd", "sata-hdd"],
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
    """The two drives of each profile that take turns behind the port: they are filled with identified blocks."""
    return [drive for profile in parameters["profiles"] for drive in _pair(lab, profile)]


def estimate_s(_lab: Lab, parameters: Mapping[str, Any]) -> float:
    """Some milliseconds a read and a second for each 150 MB; twice, for the drives stay first."""
    each_s = [_reads(parameters, block) * (0.01 + block / 150e6) for block in parameters["blocks"]]
    return float(1 + 2 * len(parameters["profiles"]) * sum(each_s))


def _reads(parameters: Mapping[str, Any], block: int) -> int:
    """How many reads of a block size are timed: ``reads``, or two at least where they come to more than ``most``."""
    return int(max(2, min(parameters["reads"], parameters["most"] // block)))


def _server(lab: Lab, parameters: Mapping[str, Any]) -> str:
    servers = [name for name, server in lab.servers.items() if server.stack == parameters["stack"]]
    if not servers:
        raise NotSupported(f"no server of lab {lab.name} has the stack {parameters['stack']}")
    return servers[0]


def _pair(lab: Lab, profile: str) -> dict[str, tuple[str, str]]:
    """Two drives of a profile, and the server ports that have them at the baseline."""
    places = {
        drive: place
        for drive, place in lab.places.items()
        if lab.drives[drive].profile == profile and lab.drives[drive].scratch
    }
    if len(places) < 2:
        raise NotSupported(f"lab {lab.name} has no two scratch drives of profile {profile} in its baseline")
    return dict(list(places.items())[:2])


def test_switched_throughput(rack: Rack, parameters: Mapping[str, Any], measure: Measure, progress: Progress) -> None:
    """Read a block, swap the drive, read a block; before it the same reads on one drive."""
    server = _server(rack.lab, parameters)
    here, spare = list(rack.lab.servers[server].ports)[:2]
    # A block that is read again was read too long ago to be in the drive's cache.
    region = max(min(block * (1 + _reads(parameters, block)), 2 * parameters["most"]) for block in parameters["blocks"])
    pairs = {profile: _pair(rack.lab, profile) for profile in parameters["profiles"]}
    places = {place: drive for pair in pairs.values() for drive, place in pair.items()}
    written = {places[place]: said for place, said in rack.fill_all(places, size_bytes=region).items()}
    sizes = [(profile, block) for profile in pairs for block in parameters["blocks"]]
    for done, (profile, block) in enumerate(sizes):
        progress(done, len(sizes), "block sizes")
        turns = range(_reads(parameters, block))
        drives = list(pairs[profile])
        labels = [written[drive] for drive in drives]
        rack.attach(server, {here: drives[0], spare: drives[1]})
        with rack.swapped_reads(
            server, here, labels[0], block_bytes=block, reads=1 + len(turns), region_bytes=region
        ) as reads:
            before = reads.read(labels[0]).t_ns
            steady, before = _intervals(before, [reads.read(labels[0]).t_ns for _ in turns])
        with rack.swapped_reads(
            server, here, labels[0], block_bytes=block, reads=1 + len(turns), region_bytes=region
        ) as reads:
            before = reads.read(labels[0]).t_ns
            ended = []
            for turn in turns:
                which = (turn + 1) % 2
                rack.attach(server, {here: drives[which], spare: drives[1 - which]})
                ended.append(reads.read(labels[which]).t_ns)
            switched, before = _intervals(before, ended)
        size = format_quantity(block, "B")
        measure("throughput.steady", [block / seconds for seconds in steady], block=size, drive=profile)
        measure("throughput.switched", [block / seconds for seconds in switched], block=size, drive=profile)
        swap_cost = [seconds - _median(steady) for seconds in switched]
        measure("throughput.swap_cost", swap_cost, block=size, drive=profile)
        measure("throughput.ratio", _median(steady) / _median(switched), block=size, drive=profile)


def _intervals(start_ns: int, ended_ns: list[int]) -> tuple[list[float], int]:
    """Seconds from each completion to the next, as the paper's workload runs: one read when the last is done."""
    starts = [start_ns, *ended_ns[:-1]]
    return [(end - start) / 1e9 for start, end in zip(starts, ended_ns, strict=True)], ended_ns[-1]


def _median(samples: list[float]) -> float:
    return sorted(samples)[len(samples) // 2]
