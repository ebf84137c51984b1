"""Throughput with and without switching the drive at every read: the Flexible Fabric paper's Figure 3."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import cycle
from statistics import median
from typing import Any

import pytest

from rackloop.abilities import Staged
from rackloop.errors import NotSupported, StaleGeneration
from rackloop.lab import Lab, LabKind
from rackloop.parameters import number, part, size, stack, whole
from rackloop.units import format_quantity
from rackloop_drivers import workload
from rackloop_fixtures import Measure, Progress, Rack

KIB, MIB = 1 << 10, 1 << 20
PARAMETERS = {
    "blocks": size(
        [4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB, 64 * MIB],
        "how large a read is, each in turn",
        least=4 * KIB,
        most=64 * MIB,
        multiple=4 * KIB,
    ),
    "rounds": whole(12, "rounds of each size, each with a ratio of its own", least=2, most=10_000),
    "reads": whole(4, "reads that are timed in each round, with swaps and without", most=1_000_000),
    "most": size(64 * MIB, "how much is read of each size at most, two reads at least", least=4 * KIB, most=1 << 40),
    "host_s": number(0.001, "what a read costs the host of the paper beside the drive", most=1, unit="s"),
    "stack": stack("comreset", "the server of which stack reads"),
    "profiles": part(["sata-ssd", "sata-hdd"], "drives of which profiles are read, two of each", of="profile"),
}
MEASURES = {
    "throughput.steady": "B/s",
    "throughput.switched": "B/s",
    "throughput.swap_cost": "s",
    "throughput.ratio": "1",
    "throughput.slowdown": "1",
    "throughput.staging": "s",
}

_NAP_NS = 50_000

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
    """Some milliseconds a read and a second for each 150 MB, with and without a switch."""
    each_s = [
        2 * parameters["rounds"] * _reads(parameters, block) * (0.01 + block / 150e6) for block in parameters["blocks"]
    ]
    return float(1 + len(parameters["profiles"]) * sum(each_s))


def _reads(parameters: Mapping[str, Any], block: int) -> int:
    """How many reads of a block size half a round has: ``reads``, or fewer where they come to more than ``most``."""
    return int(max(1, min(parameters["reads"], parameters["most"] // block)))


def _region(parameters: Mapping[str, Any]) -> int:
    """What is read from: a block that is read again was read too long ago to be in the drive's cache."""
    return int(max(6 * max(parameters["blocks"]), 96 * MIB))


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
    """In rounds, for each size of block: some reads of one drive, then as many with a swap before each."""
    server = _server(rack.lab, parameters)
    ports = list(rack.lab.servers[server].ports)[:2]
    region = _region(parameters)
    pairs = {profile: _pair(rack.lab, profile) for profile in parameters["profiles"]}
    places = {place: drive for pair in pairs.values() for drive, place in pair.items()}
    written = {places[place]: said for place, said in rack.fill_all(places, size_bytes=region).items()}
    # A simulated server hands a read on at once; the paper's took a millisecond over each.
    host_s = parameters["host_s"] if rack.lab.kind is LabKind.MOCK else 0.0
    sizes = [(profile, block) for profile in pairs for block in parameters["blocks"]]
    for done, (profile, block) in enumerate(sizes):
        progress(done, len(sizes), "block sizes")
        swapping = Swapping(rack, server, ports, list(pairs[profile]), written, region_bytes=region, host_s=host_s)
        rounds = swapping.rounds(block, parameters["rounds"], _reads(parameters, block))
        labels = {"block": format_quantity(block, "B"), "drive": profile}
        measure("throughput.steady", [block / each.steady_s for each in rounds], **labels)
        measure("throughput.switched", [block / each.switched_s for each in rounds], **labels)
        late_s = [each.late_s for each in rounds]
        measure("throughput.swap_cost", [each.switched_s - each.steady_s for each in rounds], errors=late_s, **labels)
        # A machine that is late makes either of the two longer: the one adds to the ratio, the other to its inverse.
        measure(
            "throughput.ratio",
            [each.steady_s / each.switched_s for each in rounds],
            errors=[each.late_s / each.switched_s for each in rounds],
            **labels,
        )
        measure(
            "throughput.slowdown",
            [each.switched_s / each.steady_s for each in rounds],
            errors=[each.late_s / each.steady_s for each in rounds],
            **labels,
        )
        measure("throughput.staging", swapping.staging_s, **labels)


@dataclass(frozen=True)
class Round:
    """Seconds from the end of a read to the end of the next: the medians of one round, without and with a swap.

    ``late_s`` is by how much this machine was late with its own commands in the round, at most.
    """

    steady_s: float
    switched_s: float
    late_s: float


class Swapping:
    """The paper's workload at one port: a read, and when it has completed the next, of random blocks of two drives.

    ``host_s`` is what passes between the end of a read and the command that begins the next. While a read is under way
    the switch is given the next map, so that the trigger alone comes between two reads. Where that takes longer than
    the read and ``host_s``, the rest is left out of what is measured: ``staging_s`` has how long each took.
    """

    def __init__(
        self,
        rack: Rack,
        server: str,
        ports: list[str],
        drives: list[str],
        written: Mapping[str, workload.Expected],
        *,
        region_bytes: int,
        host_s: float,
    ) -> None:
        self.staging_s: list[float] = []
        self._rack = rack
        self._server = server
        self._here, self._spare = ports
        self._drives = drives
        self._written = written
        self._region_bytes = region_bytes
        self._host_ns = round(host_s * 1e9)

    def rounds(self, block_bytes: int, rounds: int, reads: int) -> list[Round]:
        """``rounds`` rounds, each of twice ``reads`` reads."""
        rack, (first, other) = self._rack, self._drives
        rack.attach(self._server, {self._here: first, self._spare: other})
        blocks = range(0, self._region_bytes // workload.SECTOR_BYTES, block_bytes // workload.SECTOR_BYTES)
        places = cycle(rack.chance.sample(blocks, k=len(blocks)))
        session = rack.swapped_reads(
            self._server,
            self._here,
            self._written[first],
            block_bytes=block_bytes,
            reads=1 + 2 * rounds * reads,
            region_bytes=self._region_bytes,
        )
        with session as through:
            clock = rack.clock
            began_ns, before = clock.now_ns(), through.finish(self._written[first])
            done = []
            for _ in range(rounds):
                steady, switched, late = [], [], []
                for _ in range(reads):
                    late.append(self._host_works(began_ns, before, 0)[0])
                    began_ns, last_ns = clock.now_ns(), before.t_ns
                    through.begin(self._written[first], next(places))
                    before = through.finish(self._written[first])
                    steady.append((before.t_ns - last_ns) / 1e9)
                staged, ready_ns = self._stage(other, first)
                for left in reversed(range(reads)):
                    late_ns, put_off_ns = self._host_works(began_ns, before, ready_ns)
                    late.append(late_ns)
                    put_off_ns += self._switch(staged, other, first)
                    first, other = other, first
                    began_ns, last_ns = clock.now_ns(), before.t_ns
                    through.begin(self._written[first], next(places))
                    if left:
                        staged, ready_ns = self._stage(other, first)
                    before = through.finish(self._written[first])
                    switched.append((before.t_ns - last_ns - put_off_ns) / 1e9)
                done.append(Round(median(steady), median(switched), max(late) / 1e9))
            return done

    def _host_works(self, began_ns: int, before: workload.SwapRead, ready_ns: int) -> tuple[int, int]:
        """Wait until the next command is due, ``host_s`` after the end of the read before.

        Returns by how much this machine was late with it, and by how much it was put off because the switch was not
        ready until ``ready_ns``. The read's length is all that is taken from its server's clock, which need not be
        this one.
        """
        clock = self._rack.clock
        planned_ns = began_ns + before.t_ns - before.submit_ns + self._host_ns
        # What does not sleep does not see how late it would be woken.
        due_ns = max(planned_ns, ready_ns, clock.now_ns() + _NAP_NS)
        clock.sleep_until_ns(due_ns)
        return clock.now_ns() - due_ns, max(0, ready_ns - planned_ns)

    def _stage(self, drive: str, spare: str) -> tuple[Staged, int]:
        """Have the switch ready to join the port with ``drive``; and since when it is."""
        began_ns = self._rack.clock.now_ns()
        staged = self._rack.stage_attach(self._server, {self._here: drive, self._spare: spare})
        ready_ns = self._rack.clock.now_ns()
        self.staging_s.append((ready_ns - began_ns) / 1e9)
        return staged, ready_ns

    def _switch(self, staged: Staged, drive: str, spare: str) -> int:
        """Trigger what was staged; the nanoseconds lost where another controller's act had made it stale."""
        began_ns = ready_ns = self._rack.clock.now_ns()
        while True:
            try:
                self._rack.trigger(staged)
            except StaleGeneration:
                staged, ready_ns = self._stage(drive, spare)
            else:
                return ready_ns - began_ns
