"""Moves of drives between server ports, each timed to its first verified read."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from threading import Event, Lock

from rackloop.abilities import Applied, Fabric, Staged, stager
from rackloop.clock import Deadline
from rackloop.errors import LabError, NotSupported, RackloopError, StaleGeneration, late_error
from rackloop.lab import Lab, LabKind, Stack
from rackloop.portmap import MapChange, Open, Partial, PortMap
from rackloop.record import EventSink, RemapSeen
from rackloop.safety.undo import JournalledFabric
from rackloop.seed import Stream
from rackloop_drivers import workload
from rackloop_labs.attach_log import AttachLog
from rackloop_labs.bench import Bench
from rackloop_labs.remap_stages import remap_stages

ServerPort = tuple[str, str]


@dataclass(frozen=True)
class _Flight:
    """A map change that was made, and whose drive is waited for."""

    place: ServerPort
    drive: str
    applied: Applied


def attach(bench: Bench, fabric: Fabric, drives: Mapping[ServerPort, str], deadline: Deadline) -> Applied:
    """Join each server port with its drive, in one partial map; returns when the switch has acted.

    The servers are told before the switch is: a COMRESET on notice depends on it. None is told of what a journalled
    fabric refuses, as for a drive that keeps its link: the notice alone would reset that.
    """
    change = _joining(bench, drives)
    if isinstance(fabric, JournalledFabric):
        fabric.prepare(change, deadline)
    bench.announce(change.pairs.ports())
    return _change_when(lambda: None, fabric, change, deadline)


def stage_attach(bench: Bench, fabric: Fabric, drives: Mapping[ServerPort, str], deadline: Deadline) -> Staged:
    """Have the switch hold ready what :func:`attach` would do, for :func:`trigger_attach`; no server is told yet.

    Raises NotSupported where the switch takes no map ahead.
    """
    return stager(fabric).stage(_joining(bench, drives), deadline)


def trigger_attach(
    bench: Bench, fabric: Fabric, staged: Staged, deadline: Deadline, *, is_told: bool = False
) -> Applied:
    """Tell the servers and then execute what was staged; returns when the switch has acted.

    The servers are told no sooner: a COMRESET on notice resets the link, and until now the drives that go may be read.
    They have been told before ``commanded_ns``. Raises StaleGeneration where the map changed meanwhile. What is staged
    again then ``is_told`` of already: servers look on, and two users of a switch who tell them anew before each trigger
    make each other's maps stale for long.
    """
    change = staged.change
    if not is_told:
        bench.announce(change.ports if isinstance(change, Open) else change.pairs.ports())
    return stager(fabric).trigger(staged, deadline)


def _joining(bench: Bench, drives: Mapping[ServerPort, str]) -> Partial:
    """The map that joins each server port with its drive."""
    lab = bench.lab
    return Partial(PortMap.of((lab.switch_port(*place), lab.where_is(drive)) for place, drive in drives.items()))


class Remapping:
    """Moves labelled drives among the server ports of a bench and watches them come.

    Each server has a probe of its own and may be worked on by a thread of its own. A port is read from the moment
    before the switch is told until a read verifies as the drive that should be there: ``labels`` say what that
    drive's identified sector carries. ``spares`` are drives that no port has, by the server that may have them.
    ``late_with`` says the most that this machine may have added to so many seconds.
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
        spares: Mapping[str, str],
        test: str,
        events: EventSink,
        late_with: Callable[[float], float] = lambda _seconds: 0.0,
    ) -> None:
        self._bench = bench
        self._fabric = fabric
        self._probes = probes
        self._attach_log = attach_log
        self._at = dict(at)
        self._labels = labels
        self._spares = dict(spares)
        self._test = test
        self._events = events
        self._late_with = late_with
        self._act_s, self._comes_s = bench.lab.time_s("act"), bench.lab.time_s("online")
        self._comes_late_s = self._act_s + 2 * self._comes_s
        self._lock = Lock()
        self._turn = Lock()
        self._timelines: list[RemapSeen] = []
        self.reads = 0
        self.wrong = 0
        self.unread = 0
        self.map_wrong = 0

    @property
    def seen(self) -> int:
        """The number of drives that were watched coming to a port so far."""
        return len(self._timelines)

    def timelines(self, server: str) -> list[RemapSeen]:
        """The remaps of one server, in the order they were made."""
        return [timeline for timeline in self._timelines if timeline.server == server]

    def keep_changing(self, server: str, changes: int, stop: Event, tell: Callable[[], None]) -> None:
        """Make ``changes`` map changes, each of which gives one port of ``server`` another drive, and watch them come.

        The ports change side by side, each as soon as its drive is verified: no two drives come by the same change.
        Where a drive comes within milliseconds nothing else is changed until it is there. The drive that a change takes
        from its port is the next one's, also of a further call. Ends early where ``stop`` is set; ``tell`` is called
        after each drive. Raises NotSupported for a server that has one port and no spare.
        """
        ports = deque(port for name, port in self._at if name == server)
        free = self._free_drive(server, ports)
        flying: dict[int, _Flight] = {}
        made = 0
        while (made < changes or flying) and not stop.is_set():
            if ports and made < changes:
                place = (server, ports.popleft())
                drive, free = free, self._at[place]
                number, flight, outcome = self._arm_and_change(place, drive)
                made += 1
                if outcome is None:
                    flying[number] = flight
                    continue
            else:
                number, outcome = self._probes[server].wait_any(self._deadline(self._comes_late_s))
                flight = flying.pop(number)
            self._note(flight, outcome)
            ports.append(flight.place[1])
            tell()
        self._spares[server] = free

    def _arm_and_change(
        self, place: ServerPort, drive: str
    ) -> tuple[int, _Flight, workload.VerifiedRead | workload.GaveUp | None]:
        """Have ``drive`` come to ``place``, whose reads begin before the switch is told; the arm's id, and the change.

        An armed port is read all the time, so none is armed before it is its change's turn. The switch is given the map
        while the reads begin; the journal has it before, while changes of other servers have their turns. A drive that
        comes within milliseconds has the turn until it is verified, and what became of it is returned too: the work for
        another change, on the same few cores, would be a part of the time that is measured.
        """
        change = _joining(self._bench, {place: drive})
        probe = self._probes[place[0]]
        if isinstance(self._fabric, JournalledFabric):
            self._fabric.prepare(change, self._deadline())
        with self._turn:
            # Begun here: a drive that does not come keeps the turn for longer than a change may take.
            deadline = self._deadline()
            # Told no sooner: a server looks for a drive more and more rarely, and gives up.
            self._bench.announce(change.pairs.ports())
            number = self._order(place, drive, self._act_s + self._comes_s)
            applied = _change_when(lambda: probe.wait_armed(number, deadline), self._fabric, change, deadline)
            self._at[place] = drive
            outcome = probe.wait(number, self._deadline(self._comes_late_s)) if self._is_quick(place) else None
        return number, _Flight(place, drive, applied), outcome

    def _free_drive(self, server: str, ports: deque[str]) -> str:
        """The drive of ``server`` that no port has: its spare, or that of its last port, which is left open."""
        if server in self._spares:
            return self._spares[server]
        if len(ports) < 2:
            raise NotSupported(
                f"{server} has one port and the rack no drive to spare, so nothing can be exchanged; "
                "describe a scratch drive that the baseline joins to no server"
            )
        place = (server, ports.pop())
        with self._turn:
            self._fabric.apply(Open(frozenset({self._bench.lab.switch_port(*place)})), self._deadline())
        return self._at.pop(place)

    def _note(self, flight: _Flight, outcome: workload.VerifiedRead | workload.GaveUp) -> None:
        """Keep the timeline of a drive that came. Raises as the functions below say for one that did not in time."""
        (server, port), applied = flight.place, flight.applied
        lab = self._bench.lab
        until = "answered" if isinstance(outcome, workload.VerifiedRead) else "executed"
        logged = self._attach_log.stages(applied, lab.switch_port(server, port), self._deadline(), until=until)
        acted_ns = next((stage.at_ns for stage in logged if stage.name == "executed"), applied.acknowledged_ns)
        took_s = (outcome.t_ns - acted_ns) / 1e9
        if isinstance(outcome, workload.GaveUp):
            # The probes of equipment are not on this machine, and its load is nothing to them.
            late_s = 0.0 if lab.kind is LabKind.PHYSICAL else self._late_with(took_s)
            raise _gave_up(flight.place, outcome, took_s, self._comes_s, late_s)
        stages = remap_stages(applied, logged, outcome)
        stack = lab.servers[server].stack
        seen = RemapSeen(self._test, stack, server, port, flight.drive, applied.generation, stages)
        if took_s > self._comes_s:
            late = f"{server}.{port}: its drive came late after the switch had acted"
            raise late_error(late, took_s, self._comes_s, seen.latency_error_s)
        if outcome.mount_error is not None:
            raise LabError(
                f"{server}.{port}: {flight.drive} answered, but its first file could not be read: {outcome.mount_error}"
            )
        with self._lock:
            self._timelines.append(seen)
        self._events.write(seen)

    def deal(self, chance: Stream) -> None:
        """Deal the drives of a random few ports among them anew, in one partial map.

        Ports of servers that take a drive within a few milliseconds are read and checked at once, the others are
        left for :meth:`check_all`.
        """
        places = chance.sample(sorted(self._at), k=chance.randint(2, min(4, len(self._at))))
        drives = [self._at[place] for place in places]
        chance.shuffle(drives)
        moved = dict(zip(places, drives, strict=True))
        attach(self._bench, self._fabric, moved, self._deadline())
        self._at.update(moved)
        self._check([place for place in places if self._is_quick(place)])

    def check_all(self) -> None:
        """Read every port, and hold the switch's own map against what was asked of it."""
        before = self.map_wrong
        self._check(sorted(self._at))
        if self.map_wrong == before:
            self._compare_map()

    def _compare_map(self) -> int:
        """Count the pairs that the switch's own map has otherwise than it was asked for."""
        lab = self._bench.lab
        live = self._fabric.live_map(self._deadline()).pairs
        places = self._at.items()
        wrong = sum(live.peer_of(lab.switch_port(*place)) != lab.where_is(drive) for place, drive in places)
        self.map_wrong += wrong
        return wrong

    def _check(self, places: Sequence[ServerPort]) -> None:
        """Read through each port: once the switch has answered, a read of any other drive is wrong.

        A port through which nothing came back is neither right nor wrong: it was not read. Raises LabError for one,
        unless a read was wrong, or the switch has not the map that it was asked for, which says more.
        """
        armed = {place: self._arm(place, self._at[place], self._comes_s) for place in places}
        unread = []
        for place, number in armed.items():
            outcome = self._probes[place[0]].wait(number, self._deadline(self._comes_late_s))
            answered = sum(outcome.verdicts.values())
            self.reads += answered
            self.wrong += answered - outcome.verdicts["right"]
            if isinstance(outcome, workload.GaveUp) and not answered:
                unread.append(_unanswered(place, outcome, (outcome.t_ns - outcome.armed_ns) / 1e9))
        self.unread += len(unread)
        if unread and not self.wrong and not self._compare_map():
            raise unread[0]

    def _is_quick(self, place: ServerPort) -> bool:
        return self._bench.lab.servers[place[0]].stack == Stack.COMRESET

    def _arm(self, place: ServerPort, drive: str, timeout_s: float) -> int:
        number = self._order(place, drive, timeout_s)
        self._probes[place[0]].wait_armed(number, self._deadline())
        return number

    def _order(self, place: ServerPort, drive: str, timeout_s: float) -> int:
        return self._probes[place[0]].order(".".join(place), self._labels[drive], timeout_s=timeout_s)

    def _deadline(self, within_s: float | None = None) -> Deadline:
        return Deadline.after(self._bench.clock, self._act_s if within_s is None else within_s)


def _change_when(wait: Callable[[], None], fabric: Fabric, change: MapChange, deadline: Deadline) -> Applied:
    """Make ``change`` once ``wait`` returns; a switch that takes maps ahead is given it before."""
    while True:
        try:
            switch = stager(fabric)
            staged = switch.stage(change, deadline)
        except NotSupported:
            wait()
            return fabric.apply(change, deadline)
        wait()
        try:
            return switch.trigger(staged, deadline)
        except StaleGeneration:
            # Another user of the switch was first.
            if deadline.is_over():
                raise


def share_spares(lab: Lab, servers: Iterable[str]) -> dict[str, str]:
    """A drive of its own for each of these servers that the baseline joins to no server, the slowest stacks first.

    Servers for which none is left are absent. Only scratch drives on ports of the switch are spared.
    """
    joined = {drive for server in lab.servers for drive in lab.drives_of(server)}
    spares = [
        name for name, drive in lab.drives.items() if drive.scratch and drive.port is not None and name not in joined
    ]
    slowest_first = sorted(servers, key=lambda name: list(Stack).index(lab.servers[name].stack))
    return dict(zip(slowest_first, spares, strict=False))


def _gave_up(
    place: ServerPort, outcome: workload.GaveUp, took_s: float, within_s: float, late_s: float
) -> RackloopError:
    """The error for a drive that did not come: the lab's where no read was answered, else as for one that came late."""
    name = ".".join(place)
    answers = ", ".join(f"{count} {verdict}" for verdict, count in outcome.verdicts.items() if count)
    if not answers:
        return _unanswered(place, outcome, took_s)
    reads = f"({outcome.reads} reads: {answers})"
    return late_error(f"{name}: its drive did not come after the switch had acted {reads}", took_s, within_s, late_s)


def _unanswered(place: ServerPort, outcome: workload.GaveUp, took_s: float) -> LabError:
    """The error for a port through which nothing came back."""
    return LabError(
        f"{'.'.join(place)}: not one read was answered within {took_s:.2f} s ({outcome.reason}): "
        "whether its drive came cannot be said; look at the server's way to it"
    )
