"""Throughput with and without switching the drive at every read: the Flexible Fabric paper's Figure 3."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, pairwise
from math import ceil
from operator import sub, truediv
from statistics import median
from threading import Event
from typing import Any

import pytest

from rackloop.abilities import Staged
from rackloop.errors import NotSupported, StaleGeneration
from rackloop.lab import Lab, LabKind, load_profile
from rackloop.parameters import number, part, size, stack, whole
from rackloop.units import format_quantity
from rackloop_drivers import workload
from rackloop_fixtures import (
    Compared,
    Measure,
    Progress,
    Rack,
    SwappedReads,
    Took,
    added_s,
    measure_compared,
    run_parallel,
)
from rackloop_labs.port_paths import is_told, untold
from rackloop_labs.scratch_ports import kept_circuits

KIB, MIB = 1 << 10, 1 << 20
PARAMETERS = {
    "blocks": size(
        [4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB, 64 * MIB],
        "read sizes, each in turn",
        least=4 * KIB,
        most=64 * MIB,
        multiple=4 * KIB,
    ),
    "rounds": whole(12, "rounds of each size, each with its own ratio", least=2, most=10_000),
    "quick_rounds": whole(12, "rounds of each size for solid-state drives", least=2, most=10_000),
    "reads": whole(4, "timed reads in each round, with swaps and without", most=1_000_000),
    "small_reads": whole(0, "those of the smallest size; as many as of the others where 0", least=0, most=1_000_000),
    "most": size(64 * MIB, "most bytes to read of each size, but at least two reads", least=4 * KIB, most=1 << 40),
    "host_s": number(0.001, "host time of a read in the paper's law", most=1, unit="s"),
    "stack": stack("comreset", "driver stack of the reading server"),
    "profiles": part(["sata-ssd", "sata-hdd"], "profiles to read, two drives of each or more", of="profile"),
}
MEASURES = {
    "throughput.steady": "B/s",
    "throughput.switched": "B/s",
    "throughput.swap_cost": "s",
    "throughput.ratio": "1",
    "throughput.slowdown": "1",
    "throughput.staging": "s",
}
HEADLINES = ("throughput.ratio",)

_NAP_NS = 50_000
# To judge all sectors of such a block takes microseconds; of 4 MiB it takes as long as the paper's host over a read.
_JUDGED_AT_ONCE = 64 * KIB

pytestmark = pytest.mark.rackloop(
    purpose="measure the throughput lost by switching the drive behind a port at every read, by block size",
    requires=["fabric.remap", "probe", "remap.announce"],
    destructive=True,
    time_class="seconds",
)


def drives_erased(lab: Lab, parameters: Mapping[str, Any]) -> list[str]:
    """The drives of each profile that take turns behind a port: they are filled with identified blocks."""
    return [drive for pair in _pairs(lab, parameters) for drive in pair.drives]


def estimate_s(lab: Lab, parameters: Mapping[str, Any]) -> float:
    """Some milliseconds a read, and a second for each 150 MB of a hard disk or 500 MB of another, side by side."""
    pairs = _pairs(lab, parameters)
    reading_s = dict.fromkeys((pair.ports for pair in pairs), 0.0)
    for pair in pairs:
        swaps = 2 * sum(_reads(parameters, block) for block in parameters["blocks"])
        reading_s[pair.ports] += pair.rounds * (_round_s(parameters, pair.profile) + added_s(lab, remaps=swaps))
    return 2 + max(reading_s.values())


def _round_s(parameters: Mapping[str, Any], profile: str) -> float:
    """The time of a round's reads of two drives of a profile, with and without a switch."""
    each_s, bytes_per_s = (0.008, 150e6) if load_profile(profile).is_rotational else (0.003, 500e6)
    return float(sum(2 * _reads(parameters, block) * (each_s + block / bytes_per_s) for block in parameters["blocks"]))


def _reads(parameters: Mapping[str, Any], block: int) -> int:
    """The number of reads of a block size in half a round, or fewer where they exceed ``most``."""
    is_smallest = block == min(parameters["blocks"])
    reads = (is_smallest and parameters["small_reads"]) or parameters["reads"]
    return int(max(1, min(reads, parameters["most"] // block)))


def _region(parameters: Mapping[str, Any]) -> int:
    """The region to read: a block that is read again was read too long ago to be in the drive's cache."""
    return int(max(6 * max(parameters["blocks"]), 96 * MIB))


def _server(lab: Lab, parameters: Mapping[str, Any]) -> str:
    servers = [name for name, server in lab.servers.items() if server.stack == parameters["stack"]]
    if not servers:
        raise NotSupported(f"no server of lab {lab.name} has the stack {parameters['stack']}")
    return servers[0]


@dataclass(frozen=True)
class Pair:
    """Two drives of a profile, the first of two ports of the server at which they take turns, and their rounds."""

    profile: str
    drives: tuple[str, str]
    ports: tuple[str, str]
    rounds: int


def _pairs(lab: Lab, parameters: Mapping[str, Any]) -> list[Pair]:
    """The pairs of drives to read: one of each profile at ports of its own, others of it where ports are left.

    At those the profiles take turns. The rounds of a profile are shared out among its pairs by how long one takes, so
    that all ports are read for about as long.
    """
    free = _port_pairs(lab, _server(lab, parameters))
    profiles = parameters["profiles"]
    rounds_of = {
        profile: parameters["rounds" if load_profile(profile).is_rotational else "quick_rounds"] for profile in profiles
    }
    takes_s = {profile: rounds * _round_s(parameters, profile) for profile, rounds in rounds_of.items()}
    port_s = sum(takes_s.values()) / len(free)
    found = []
    for profile, own in zip(profiles, cycle(free), strict=False):
        rounds = rounds_of[profile]
        at = list(zip(_drive_pairs(lab, profile), [own, *free[len(profiles) :]], strict=False))
        # No fewer than any other of its pairs has, and all where it is its only one.
        own_rounds = min(rounds, max(round(rounds * port_s / takes_s[profile]), ceil(rounds / len(at))))
        ends = [0, *(own_rounds + (rounds - own_rounds) * place // max(1, len(at) - 1) for place in range(len(at)))]
        found += [
            Pair(profile, drives, ports, end - start)
            for (drives, ports), (start, end) in zip(at, pairwise(ends), strict=True)
            if end > start
        ]
    return found


def _drive_pairs(lab: Lab, profile: str) -> list[tuple[str, str]]:
    """The scratch drives of a profile that the baseline joins to server ports, two by two."""
    drives = [name for name in lab.places if lab.drives[name].profile == profile and lab.drives[name].scratch]
    if len(drives) < 2:
        raise NotSupported(f"lab {lab.name} has no two scratch drives of profile {profile} in its baseline")
    return list(zip(drives[::2], drives[1::2], strict=False))


def _port_pairs(lab: Lab, server: str) -> list[tuple[str, str]]:
    """The ports of the server two by two: the first, and those others whose links may be taken."""
    ports = [port for port in lab.servers[server].ports if is_told(lab, server, port)]
    if len(ports) < 2:
        why = untold(lab, {server: lab.servers[server].ports}) or f"{server} of lab {lab.name} has one port"
        raise NotSupported(f"two ports of a server take turns, and {why}")
    kept = kept_circuits(lab).ports()
    first, *others = zip(ports[::2], ports[1::2], strict=False)
    return [first, *(two for two in others if kept.isdisjoint(lab.switch_port(server, port) for port in two))]


def test_switched_throughput(rack: Rack, parameters: Mapping[str, Any], measure: Measure, progress: Progress) -> None:
    """In rounds, for each drive and size of block: some reads of one drive, then as many with a swap before each.

    A round has every size, of the smallest more reads: what this machine does beside one is most of its time. A pair of
    drives has two ports of the server to itself where there are enough, and is read beside the others; those that share
    two ports take turns there, round by round, so that what this machine does for a second is in one round of each and
    not in all rounds of one.
    """
    server = _server(rack.lab, parameters)
    pairs = _pairs(rack.lab, parameters)
    places = {rack.lab.places[drive]: drive for pair in pairs for drive in pair.drives}
    region = _region(parameters)
    written = {places[place]: said for place, said in rack.fill_all(places, size_bytes=region).items()}
    # A simulated server hands a read on at once; the paper's took a millisecond over each.
    host_s = parameters["host_s"] if rack.lab.kind is LabKind.MOCK else 0.0
    blocks = parameters["blocks"]
    seen: dict[tuple[Pair, int], list[Round]] = {(pair, block): [] for pair in pairs for block in blocks}
    lbas = {(pair, block): cycle(_places(rack, region, block)) for pair, block in seen}
    reads_of = {block: _reads(parameters, block) for block in blocks}
    series = len(blocks) * sum(pair.rounds for pair in pairs)

    def read_at(here: str, stop: Event) -> None:
        its = [pair for pair in pairs if pair.ports[0] == here]
        # Those with more rounds have several between two of the others, so that all go on for as long.
        turns = [(done / pair.rounds, place) for place, pair in enumerate(its) for done in range(pair.rounds)]
        first = its[0].drives[0]
        rack.attach(server, {here: first})
        session = rack.swapped_reads(
            server,
            here,
            written[first],
            block_bytes=max(blocks),
            reads=1 + len(turns) * (1 + 2 * sum(reads_of.values())),
            region_bytes=region,
        )
        with session as through:
            swapping = Swapping(rack, through, written[first], server, its[0].ports, written, host_s=host_s)
            for _, place in sorted(turns):
                pair = its[place]
                swapping.take(pair.drives, min(blocks))
                for block in blocks:
                    if stop.is_set():
                        return
                    seen[pair, block].append(swapping.round(block, reads_of[block], lbas[pair, block]))
                progress(sum(map(len, seen.values())), series, "series of reads")

    run_parallel(read_at, sorted({pair.ports[0] for pair in pairs}), gives_way=False)
    for profile in parameters["profiles"]:
        for block in blocks:
            rounds = [each for pair in pairs if pair.profile == profile for each in seen[pair, block]]
            _say(rounds, measure, block, block=format_quantity(block, "B"), drive=profile)


def _places(rack: Rack, region: int, block: int) -> list[int]:
    """The offsets in the region of the blocks of this size, in sectors, in a random order."""
    starts = range(0, region // workload.SECTOR_BYTES, block // workload.SECTOR_BYTES)
    return rack.chance.sample(starts, k=len(starts))


def _say(rounds: list[Round], measure: Measure, block_bytes: int, **labels: str) -> None:
    measure("throughput.steady", [block_bytes / each.steady.seen_s for each in rounds], **labels)
    measure("throughput.switched", [block_bytes / each.switched.seen_s for each in rounds], **labels)
    for name, of in (("swap_cost", sub), ("slowdown", truediv)):
        found = [Compared.of(each.switched, each.steady, of) for each in rounds]
        measure_compared(measure, f"throughput.{name}", found, **labels)
    ratios = [Compared.of(each.switched, each.steady, _ratio) for each in rounds]
    # No shortfalls: the time that the paper's machines took for a swap is in its ratio too, and is not known.
    errors = [each.seen - each.least for each in ratios]
    measure("throughput.ratio", [each.seen for each in ratios], errors=errors, **labels)
    measure("throughput.staging", [staging_s for each in rounds for staging_s in each.staging_s], **labels)


def _ratio(switched_s: float, steady_s: float) -> float:
    """The throughput with swaps over that without."""
    return steady_s / switched_s


def _median(samples_ns: list[tuple[int, int]]) -> Took:
    """The median of the times of reads, from the end of one to the end of the next, as seen and at least."""
    return Took.over(median, [Took(seen_ns / 1e9, least_ns / 1e9) for seen_ns, least_ns in samples_ns])


@dataclass(frozen=True)
class Round:
    """The reads of a size in one round: without and with a swap, and how long the switch took over each staged map."""

    steady: Took
    switched: Took
    staging_s: tuple[float, ...]


class Swapping:
    """The paper's workload at one port: a read, and when it has completed the next, of random blocks of two drives.

    ``host_s`` is what passes between the end of a read and the command that begins the next. Where it is above zero the
    server keeps to it itself between small blocks, as long as nothing is switched: no answer has to come here, and no
    command from here. Of large blocks the answer waits until they are judged, with a switch and without.

    While a read is under way the switch is given the next map, so that the trigger alone comes between two reads. Where
    that takes longer than the read and ``host_s``, the rest is left out of what is measured.
    """

    def __init__(
        self,
        rack: Rack,
        through: SwappedReads,
        first: workload.Expected,
        server: str,
        ports: tuple[str, str],
        written: Mapping[str, workload.Expected],
        *,
        host_s: float,
    ) -> None:
        self._rack = rack
        self._through = through
        self._server = server
        self._here, self._spare = ports
        self._written = written
        self._host_ns = round(host_s * 1e9)
        self._there, self._other = "", ""
        self._staging_s: list[float] = []
        self._unseen_ns = 0
        self._began_ns = rack.clock.now_ns()
        self._before = through.finish(first)

    def take(self, drives: tuple[str, str], block_bytes: int) -> None:
        """Join the port with the first of two drives, and read a block of it that is not timed."""
        self._there, self._other = drives
        self._rack.attach(self._server, {self._here: self._there, self._spare: self._other})
        self._read(0, block_bytes)

    def round(self, block_bytes: int, reads: int, lbas: Iterator[int]) -> Round:
        """``reads`` reads of one drive, then as many with a swap before each."""
        self._staging_s = []
        switched = []
        is_paced = self._host_ns and block_bytes <= _JUDGED_AT_ONCE
        in_turn = self._by_the_server if is_paced else self._one_by_one
        steady = in_turn(block_bytes, [next(lbas) for _ in range(reads)])
        staged, ready_ns = self._stage()
        for left in reversed(range(reads)):
            late_ns, put_off_ns = self._host_works(ready_ns)
            # It was put off by less where the read before began later than it was told to.
            late_ns += min(self._unseen_ns, put_off_ns)
            put_off_ns += self._switch(staged)
            self._begin(next(lbas), block_bytes)
            if left:
                staged, ready_ns = self._stage()
            seen_ns = self._finish() - put_off_ns
            switched.append((self._at_least(seen_ns), self._at_least(seen_ns - late_ns)))
        return Round(_median(steady), _median(switched), tuple(self._staging_s))

    def _one_by_one(self, block_bytes: int, lbas: Sequence[int]) -> list[tuple[int, int]]:
        """Reads that are each commanded from here: how long each took as seen, and at least."""
        took = []
        for lba in lbas:
            late_ns, _ = self._host_works(0)
            seen_ns = self._read(lba, block_bytes)
            took.append((seen_ns, self._at_least(seen_ns - late_ns)))
        return took

    def _by_the_server(self, block_bytes: int, lbas: Sequence[int]) -> list[tuple[int, int]]:
        """Reads that are commanded at once, of which the server begins each ``host_s`` after the one before."""
        # The first begins no sooner than that, and the others as long after it as the server says.
        first_ns = max(self._planned_ns(), self._rack.clock.now_ns())
        for lba in lbas:
            self._through.begin(self._written[self._there], lba, block_bytes, pause_s=self._host_ns / 1e9)
        took, submitted_ns = [], []
        for _ in lbas:
            seen_ns = self._finish()
            read = self._before
            took.append((seen_ns, self._at_least(seen_ns - read.late_ns)))
            submitted_ns.append(read.submit_ns)
        self._saw(first_ns + submitted_ns[-1] - submitted_ns[0])
        return took

    def _at_least(self, took_ns: int) -> int:
        """A time of the last read, which is no shorter than the read itself and ``host_s``."""
        return max(took_ns, self._before.t_ns - self._before.submit_ns + self._host_ns)

    def _read(self, lba: int, block_bytes: int) -> int:
        self._begin(lba, block_bytes)
        return self._finish()

    def _begin(self, lba: int, block_bytes: int) -> None:
        self._began_ns = self._rack.clock.now_ns()
        self._through.begin(self._written[self._there], lba, block_bytes)

    def _finish(self) -> int:
        """Wait for the read that was begun; the nanoseconds since the end of the one before."""
        last_ns, self._before = self._before.t_ns, self._through.finish(self._written[self._there])
        self._saw(self._began_ns)
        return self._before.t_ns - last_ns

    def _saw(self, began_ns: int) -> None:
        """The read before began no sooner than ``began_ns``, and its end was seen now."""
        self._began_ns = began_ns
        length_ns = self._before.t_ns - self._before.submit_ns
        self._unseen_ns = max(0, self._rack.clock.now_ns() - began_ns - length_ns)

    def _host_works(self, ready_ns: int) -> tuple[int, int]:
        """Wait until the next command is due, ``host_s`` after the end of the read before.

        Returns by how much this machine was late with it, and by how much it was put off because the switch was not
        ready until ``ready_ns``. The read's length is all that is taken from its server's clock, which need not be
        this one.
        """
        clock = self._rack.clock
        planned_ns = self._planned_ns()
        # What does not sleep does not see how late it would be woken.
        due_ns = max(planned_ns, ready_ns, clock.now_ns() + _NAP_NS)
        clock.sleep_until_ns(due_ns)
        return clock.now_ns() - max(planned_ns, ready_ns), max(0, ready_ns - planned_ns)

    def _planned_ns(self) -> int:
        """The earliest time of the next command, ``host_s`` after the end of the read before."""
        return self._began_ns + self._before.t_ns - self._before.submit_ns + self._host_ns

    def _stage(self) -> tuple[Staged, int]:
        """Have the switch ready to join the port with the other drive; and since when it is."""
        began_ns = self._rack.clock.now_ns()
        staged = self._rack.stage_attach(self._server, {self._here: self._other, self._spare: self._there})
        ready_ns = self._rack.clock.now_ns()
        self._staging_s.append((ready_ns - began_ns) / 1e9)
        return staged, ready_ns

    def _switch(self, staged: Staged) -> int:
        """Trigger what was staged; the nanoseconds until the switch was told, which are not measured.

        The server is told before the switch, and no sooner: on notice its kernel may reset the link, which was read
        until now. The switch is told later also where another port's map is just being staged, or has made this one
        stale.
        """
        began_ns, is_told = self._rack.clock.now_ns(), False
        while True:
            try:
                applied = self._rack.trigger(staged, is_told=is_told)
            except StaleGeneration:
                is_told = True
                staged, _ = self._stage()
            else:
                self._there, self._other = self._other, self._there
                return applied.commanded_ns - began_ns
