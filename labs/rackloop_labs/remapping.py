"""Moving drives between server ports, and timing each move to its first verified read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock

from rackloop.abilities import Applied, Fabric, Staged, stager
from rackloop.clock import Deadline
from rackloop.errors import LabError, ProductFailed
from rackloop.events import Stage
from rackloop.lab import Stack
from rackloop.portmap import Partial, PortMap
from rackloop.seed import Stream
from rackloop_drivers import workload
from rackloop_labs.attach_log import AttachLog
from rackloop_labs.bench import Bench

ServerPort = tuple[str, str]

_COMES_WITHIN_S = 5.0
_WITHIN_S = 10.0
# A read that was held while its drive was away completes as soon as the probe's core gets to it; the time from
# there to its stamp is what docs/reference/performance.md measures.
_PROBE_ERROR_NS = 50_000


@dataclass(frozen=True)
class RemapTimeline:
    """One drive coming to one server port; stages as :class:`rackloop.events.RemapSeen` has them, in seconds here."""

    server: str
    port: str
    drive: str
    stack: str
    generation: int
    stages: tuple[Stage, ...]

    def at_ns(self, stage: str) -> int:
        """When a stage was. Raises LabError where nobody saw it."""
        for seen in self.stages:
            if seen.name == stage:
                return seen.at_ns
        raise LabError(f"{self.server}.{self.port}: nobody saw the stage {stage} of generation {self.generation}")

    @property
    def latency_s(self) -> float:
        """From the moment the switch was told to the first verified read."""
        return (self.at_ns("verified") - self.at_ns("commanded")) / 1e9

    @property
    def attach_s(self) -> float:
        """From the moment the switch acted to the first verified read."""
        return (self.at_ns("verified") - self.at_ns("executed")) / 1e9

    @property
    def switch_s(self) -> float:
        """From the moment the switch was told to the moment it acted."""
        return (self.at_ns("executed") - self.at_ns("commanded")) / 1e9


def attach(bench: Bench, fabric: Fabric, drives: Mapping[ServerPort, str], deadline: Deadline) -> Applied:
    """Join each server port with its drive, in one partial map; returns when the switch has acted.

    The servers are told before the switch is: a COMRESET on notice depends on it.
    """
    return fabric.apply(_announced(bench, drives), deadline)


def stage_attach(bench: Bench, fabric: Fabric, drives: Mapping[ServerPort, str], deadline: Deadline) -> Staged:
    """Have the switch hold ready what :func:`attach` would do, the servers told; execute it with ``trigger``.

    Raises NotSupported where the switch takes no map ahead.
    """
    switch = stager(fabric)
    return switch.stage(_announced(bench, drives), deadline)


def _announced(bench: Bench, drives: Mapping[ServerPort, str]) -> Partial:
    """The map that joins each server port with its drive; the servers have been told that it comes."""
    lab = bench.lab
    pairs = PortMap.of((lab.switch_port(*place), lab.where_is(drive)) for place, drive in drives.items())
    bench.announce(pairs.ports())
    return Partial(pairs)


class Remapping:
    """Moves labelled drives among the server ports of a bench and watches them come.

    Each server has a probe of its own and may be worked on by a thread of its own. A port is read from the moment
    before the switch is told until a read verifies as the drive that should be there: ``labels`` say what that
    drive's identified sector carries.
    """

    def __init__(
        self,
        bench: Bench,
        fabric: Fabric,
        probes: Mapping[str, workload.RemapSession],
        attach_log: AttachLog,
        *,
        at: Mapping[ServerPort, str],
        labels: Mapping[str, workload.Expected],
        on_seen: Callable[[RemapTimeline], None],
    ) -> None:
        self._bench = bench
        self._fabric = fabric
        self._probes = probes
        self._attach_log = attach_log
        self._at = dict(at)
        self._labels = labels
        self._on_seen = on_seen
        self._lock = Lock()
        self._timelines: list[RemapTimeline] = []
        self.reads = 0
        self.wrong = 0
        self.map_wrong = 0

    @property
    def seen(self) -> int:
        """How many drives were watched coming to a port so far."""
        return len(self._timelines)

    def timelines(self, server: str) -> list[RemapTimeline]:
        """The remaps of one server, in the order they were made."""
        return [timeline for timeline in self._timelines if timeline.server == server]

    def rotate(self, server: str) -> list[RemapTimeline]:
        """Give each port of ``server`` the drive of its neighbour, all in one partial map, and watch them come."""
        ports = [port for name, port in self._at if name == server]
        moved = {(server, port): self._at[server, ports[(place + 1) % len(ports)]] for place, port in enumerate(ports)}
        return self.move(moved)

    def move(self, moved: Mapping[ServerPort, str]) -> list[RemapTimeline]:
        """Join each port with its drive in one partial map; returns once every drive was read and verified."""
        armed = {place: self._arm(place, drive) for place, drive in moved.items()}
        applied = self._apply(moved)
        timelines = [
            self._timeline(place, moved[place], applied, self._verified(place, number))
            for place, number in armed.items()
        ]
        with self._lock:
            self._timelines += timelines
        for timeline in timelines:
            self._on_seen(timeline)
        return timelines

    def deal(self, chance: Stream) -> None:
        """Deal the drives of a random few ports among them anew, in one partial map.

        Ports of servers that take a drive within a few milliseconds are read and checked at once, the others are
        left for :meth:`check_all`.
        """
        places = chance.sample(sorted(self._at), k=chance.randint(2, min(4, len(self._at))))
        drives = [self._at[place] for place in places]
        chance.shuffle(drives)
        moved = dict(zip(places, drives, strict=True))
        self._apply(moved)
        self._check([place for place in places if self._is_quick(place)])

    def check_all(self) -> None:
        """Read every port, and hold the switch's own map against what was asked of it."""
        self._check(sorted(self._at))
        lab = self._bench.lab
        live = self._fabric.live_map(self._deadline()).pairs
        for (server, port), drive in self._at.items():
            self.map_wrong += live.peer_of(lab.switch_port(server, port)) != lab.where_is(drive)

    def _check(self, places: Sequence[ServerPort]) -> None:
        """Read through each port: once the switch has answered, a read of any other drive is wrong."""
        armed = {place: self._arm(place, self._at[place]) for place in places}
        for (server, _), number in armed.items():
            outcome = self._probes[server].wait(number, self._deadline())
            self.reads += outcome.reads
            self.wrong += (
                outcome.reads if isinstance(outcome, workload.GaveUp) else outcome.reads - outcome.verdicts["right"]
            )

    def _is_quick(self, place: ServerPort) -> bool:
        return self._bench.lab.servers[place[0]].stack == Stack.COMRESET

    def _arm(self, place: ServerPort, drive: str) -> int:
        probe = self._probes[place[0]]
        return probe.arm(".".join(place), self._labels[drive], self._deadline(), timeout_s=_COMES_WITHIN_S)

    def _verified(self, place: ServerPort, number: int) -> workload.VerifiedRead:
        outcome = self._probes[place[0]].wait(number, self._deadline())
        if isinstance(outcome, workload.GaveUp):
            seen = ", ".join(f"{count} {verdict}" for verdict, count in outcome.verdicts.items() if count)
            raise ProductFailed(
                f"{'.'.join(place)}: its drive did not come within {_COMES_WITHIN_S:g} s of the remap "
                f"({outcome.reads} reads: {seen or 'none came back'})"
            )
        return outcome

    def _apply(self, moved: Mapping[ServerPort, str]) -> Applied:
        applied = attach(self._bench, self._fabric, moved, self._deadline())
        self._at.update(moved)
        return applied

    def _timeline(self, place: ServerPort, drive: str, applied: Applied, read: workload.VerifiedRead) -> RemapTimeline:
        server, port = place
        lab = self._bench.lab
        seen = self._attach_log.stages(applied.generation, lab.switch_port(server, port), self._deadline())
        stages = (
            Stage("commanded", applied.commanded_ns, "harness", 0),
            *seen,
            Stage("verified", read.t_ns, "rackprobe", _PROBE_ERROR_NS),
        )
        stack = lab.servers[server].stack
        return RemapTimeline(server, port, drive, stack, applied.generation, stages)

    def _deadline(self) -> Deadline:
        return Deadline.after(self._bench.clock, _WITHIN_S)
