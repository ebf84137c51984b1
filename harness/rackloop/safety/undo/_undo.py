"""Undoing what the journal holds: ways in, power, what else is broken, the map, the signal, in this order.

A box that cannot be reached cannot be given power, and one without power cannot be asked anything; a stuck port keeps
its circuit; a port whose circuit is wrong never gets its signal back, and a map change takes the signal away itself. So
each step stands on the one before it. Servers that do not answer are asked again last, which delays nothing else.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from rackloop.abilities import (
    Breakable,
    Fabric,
    FaultRegister,
    LiveMap,
    PhyControl,
    PortState,
    PowerPort,
    RecallsFaults,
    SignalRestorer,
)
from rackloop.clock import Deadline
from rackloop.errors import DeadlineExceeded, FabricError, LabError, NotConnected, RackloopError, StaleGeneration
from rackloop.lab import Part, PartKind
from rackloop.portmap import Full, PortMap, disturbed_ports
from rackloop.record import acts
from rackloop.safety.undo._journal import Entry, Journal

_POLL_S = 5e-3
# A kernel may take so long to find a drive; each look may be some commands on its server.
_FOUND_S = 30.0
_LOOK_S = 0.25
# The time for a server to say what stands; one that is slower is asked again at the end, when it delays nothing else.
_ANSWER_S = 15.0
# The time of who is slow: a drive that spins up, a server that is asked again.
_SLOW_S = 60.0
# Kept of the time, or half of it where that is less, for the map, the signals, and for what heal does besides.
LAST_S = 20.0
# SAS 3.0 links may train for a second; what is dark after five stays dark.
_SIGNAL_S = 5.0
# What ends sooner is waited out: to end it would be one more disturbance.
WORTH_ENDING_NS = 20_000_000
# While one of these is broken, a box cannot be told to mend anything else.
_WAYS_IN = frozenset({PartKind.CONTROL, PartKind.BMC, PartKind.NETWORK})
# They are reached through a port: where the map has another drive there, they are not.
_BEHIND_PORTS = frozenset({PartKind.DRIVE, PartKind.SLOT, PartKind.PHY})
# Their server is asked for each of them.
_ON_SERVERS = frozenset({PartKind.NETWORK, PartKind.SLOT, PartKind.PHY})
_SILENCE = (NotConnected, DeadlineExceeded)


@dataclass(frozen=True)
class Equipment:
    """The equipment of a lab: its switch, the PHYs behind it, power ports and breakable parts by name.

    ``switch_power`` names the power port that feeds the switch, where one does. The parts of ``breakable`` are called
    ``drive:NAME``, ``switch_port:NUMBER``, ``cabling``, ``server:NAME``, ``network:NAME``, ``control``, ``bmc:NAME``,
    ``slot:SERVER/PORT`` and ``phy:SERVER/PORT``; ``registers`` know of many of them at once what stands, those of
    ``server_registers`` by asking a server that has to be up for it.
    """

    fabric: Fabric
    phy: PhyControl | None = None
    power: Mapping[str, PowerPort] = field(default_factory=dict)
    switch_power: str | None = None
    breakable: Mapping[str, Breakable] = field(default_factory=dict)
    registers: tuple[FaultRegister, ...] = ()
    server_registers: tuple[FaultRegister, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """The entries that were undone, and a sentence for each that was not."""

    undone: tuple[Entry, ...]
    problems: tuple[str, ...]


class UndoFailed(LabError):
    """Something done to the rack could not be undone. ``problems`` names each; the journal still holds them."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("the rack was not given back as it was: " + "; ".join(self.problems) + "; run `rackloop heal`")


def undo(
    entries: Sequence[Entry],
    equipment: Equipment,
    journal: Journal,
    deadline: Deadline,
    *,
    dark: Collection[int] = (),
    hidden: Collection[int] = (),
    check: Callable[[], None] = lambda: None,
) -> Outcome:
    """Give the rack back what ``entries`` took, and mark those that were undone in one transaction.

    The signal of the ports ``dark`` is not waited for: something else keeps it away. The circuits of the ports
    ``hidden`` are left as they are: an entry that would give one back keeps standing, which is no problem. ``check`` is
    called before each part is touched; what it raises, such as LeaseLost, ends the undoing there and nothing is marked.

    Reality is asked before anything is changed, so entries that never happened and entries undone before are
    harmless. Errors of the bench and of tools are collected, not raised, except where the journal itself refuses.
    """
    newest_first = sorted(entries, key=lambda entry: entry.id, reverse=True)
    undoing = _Undoing(newest_first, equipment, journal.boot_id, deadline, dark, hidden, check)
    undoing.mend(ways_in=True)
    undoing.restore_power()
    undoing.mend(ways_in=False)
    for step in (undoing.restore_boot_map, undoing.restore_map, undoing.settle, undoing.mend_late):
        check()
        step()
    left = undoing.left
    done = tuple(entry for entry in newest_first if entry.id not in left and _circuit_ports(entry).isdisjoint(hidden))
    if done:
        journal.undone(done)
    return Outcome(done, tuple(dict.fromkeys(left.values())))


def apply_full(fabric: Fabric, live: LiveMap, wanted: PortMap, deadline: Deadline) -> None:
    """Make ``wanted`` the live map in one change; pairs in both stay untouched, and nothing is sent where all are."""
    if live.pairs != wanted:
        fabric.apply(Full(wanted), deadline, on=live)


def wait_for_signal(fabric: Fabric, ports: Sequence[int], deadline: Deadline) -> list[int]:
    """Wait until each of ``ports`` is up or joined to nothing; the ports that are neither after five seconds."""
    if not ports:
        return []

    def dark() -> list[int]:
        mapped = fabric.live_map(deadline).pairs.ports()
        states = fabric.port_states(ports, deadline)
        return [port for port in ports if port in mapped and states[port] is not PortState.UP]

    return deadline.sooner(_SIGNAL_S).poll(dark, operator.not_, every_s=_POLL_S)


@dataclass
class _Undoing:
    """The steps of one undo, of ``entries`` newest first. ``left`` says of those that could not be undone why."""

    entries: Sequence[Entry]
    equipment: Equipment
    boot_id: str
    deadline: Deadline
    dark: Collection[int]
    hidden: Collection[int]
    check: Callable[[], None]
    left: dict[int, str] = field(default_factory=dict)
    silent: dict[str, NotConnected | DeadlineExceeded] = field(default_factory=dict)

    def mend(self, *, ways_in: bool) -> None:
        """Mend the parts that are broken: those by which others are reached, or all others."""
        self._mend_each([name for name in self._by_resource(acts.MendPart) if (_kind(name) in _WAYS_IN) is ways_in])

    def mend_late(self) -> None:
        """Mend what could not be while the map had another drive there, or its server did not answer.

        Each is tried in turn, so that one that is not found for another reason takes no time from the others. Those on
        a server that was given a new start are tried until it has booted.
        """
        moved = any(entry.map_changes and entry.id not in self.left for entry in self.entries)
        silent = frozenset(self.silent)
        found_by = self.deadline.sooner(_FOUND_S if moved else 0.0)
        there = self.equipment.breakable
        parts = {name: its for name, its in self._by_resource(acts.MendPart).items() if name in there}

        def is_mended(name: str) -> bool:
            return name in parts and not any(entry.id in self.left for entry in parts[name])

        def try_each() -> list[str]:
            again = [name for name in parts if not is_mended(name)]
            late = [name for name in again if _asked_of(name) in silent or (moved and _kind(name) in _BEHIND_PORTS)]
            self.silent.clear()
            self._mend_each(late, is_late=True)
            left = [name for name in late if not is_mended(name)]
            return [name for name in left if is_mended(f"server:{_asked_of(name)}") or not found_by.is_over()]

        self._share().poll(try_each, operator.not_, every_s=_LOOK_S)

    def restore_power(self) -> None:
        """Give each power port the state back that it had before the first of its entries."""
        # In turn, for two may be one outlet, or one feed the other's box; each, and each broken part, has equal time.
        ports, parts = self._by_resource(acts.RestorePower), len(self._by_resource(acts.MendPart))
        for left, (name, entries) in zip(range(len(ports) + parts, parts, -1), ports.items(), strict=True):
            self.check()
            (act,) = entries[-1].inverses(acts.RestorePower)
            with self._problems_of(entries, f"power port {name}"):
                self._set_power(name, self._share(left), on=act.on)

    def restore_boot_map(self) -> None:
        """Give the switch its power-on map back."""
        if not (changed := [entry for entry in self.entries if entry.inverses(acts.RestoreBootMap)]):
            return
        (act,) = changed[-1].inverses(acts.RestoreBootMap)
        wanted, fabric, deadline = act.pairs.without(self.hidden), self.equipment.fabric, self.deadline
        with self._problems_of(changed, "power-on map of the switch"):
            if fabric.boot_map(deadline) != wanted:
                live = fabric.live_map(deadline)
                apply_full(fabric, live, wanted, deadline)
                fabric.save_boot_map(deadline)
                apply_full(fabric, fabric.live_map(deadline), live.pairs, deadline)

    def restore_map(self) -> None:
        """Give the ports whose circuits were changed theirs back, all in one change."""
        if not (changed := [entry for entry in self.entries if entry.map_changes]):
            return
        with self._problems_of(changed, "port map"):
            wrong, reason = self._apply_restored(changed)
            if wrong:
                did_not = f"ports {_listed(wrong)} did not take their circuits back{reason}"
                problem = f"{did_not}; look for a stuck or unplugged port"
                self.left.update((entry.id, problem) for entry in changed if wrong & _map_ports(entry))

    def settle(self) -> None:
        """End what takes signals away, or wait it out, until the signals are back."""
        deadline, phy, until_ns = self.deadline, self.equipment.phy, 0
        made = [(entry, act) for entry in self.entries for act in entry.inverses(acts.SettleSignal)]
        soon_ns = deadline.clock.now_ns() + WORTH_ENDING_NS
        for left, (entry, act) in zip(range(len(made), 0, -1), made, strict=True):
            end_ns = self._end_ns(entry)
            if end_ns > soon_ns and isinstance(phy, SignalRestorer):
                # Those that were taken down, also where nothing was joined to them that would come up again.
                with self._problems_of([entry], f"signal of ports {_listed(act.ports)}"):
                    _restore_signal(phy, sorted(acts.touched_ports(entry.what, [act])), self._share(left))
            elif end_ns >= deadline.at_ns:
                seconds, down = (end_ns - deadline.clock.now_ns()) / 1e9, _listed(act.ports)
                self.left[entry.id] = f"ports {down} are without signal for {seconds:.0f} s more; undo it then"
            else:
                until_ns = max(until_ns, end_ns)
        deadline.clock.sleep_until_ns(until_ns)
        awaited = {entry.id: act.ports.difference(self.dark) for entry, act in made if entry.id not in self.left}
        problems = self._without_signal(sorted(set[int]().union(*awaited.values())), self._share())
        for number, ports in awaited.items():
            if without := problems.keys() & ports:
                self.left[number] = f"ports {_listed(without)} {problems[min(without)]}"

    def _without_signal(self, ports: Sequence[int], deadline: Deadline) -> dict[int, str]:
        """The ports without a signal, and what is to be said of each."""

        def dark_of(ports: Sequence[int]) -> list[int]:
            return wait_for_signal(self.equipment.fabric, ports, deadline.sooner(deadline.remaining_s() / 2))

        phy = self.equipment.phy
        try:
            if (dark := dark_of(ports)) and isinstance(phy, SignalRestorer):
                # What was to end the drop when its time was over may have been killed.
                phy.restore(dark, deadline.sooner(deadline.remaining_s() / 2))
                dark = dark_of(dark)
            return dict.fromkeys(dark, "have no signal; look at the cables and at what they lead to")
        except RackloopError as error:
            if len(ports) == 1:
                return {ports[0]: f"may have no signal: {error}"}
        # One whose server does not answer keeps the others from being asked, unless each is by itself.
        problems: dict[int, str] = {}
        for port, share in deadline.in_turn(ports):
            problems |= self._without_signal([port], share)
        return problems

    def _by_resource(self, kind: type[acts.InverseAct]) -> dict[str, list[Entry]]:
        """The entries with an inverse act of this kind, by what they were done to."""
        found: dict[str, list[Entry]] = {}
        for entry in self.entries:
            if entry.inverses(kind):
                found.setdefault(entry.resource, []).append(entry)
        return found

    @contextmanager
    def _problems_of(self, entries: Sequence[Entry], what: str, but: tuple[type[LabError], ...] = ()) -> Iterator[None]:
        """Leave ``entries`` for the bench's or a tool's error that ends the block, or one before; ``but`` is raised."""
        try:
            yield
        except but:
            raise
        except RackloopError as error:
            for entry in entries:
                self.left.setdefault(entry.id, f"{what}: {error}")

    def _share(self, of: int = 1) -> Deadline:
        """The end of an equal share, of so many, of the time that mending has."""
        left_s = self.deadline.remaining_s()
        return self.deadline.sooner((left_s - min(LAST_S, left_s / 2)) / of)

    def _mend_each(self, names: list[str], *, is_late: bool = False) -> None:
        """Mend parts: first those on servers that answer, last what has to boot; a silent server is asked for one part.

        Each has an equal share of the time, or as long as a drive may take to spin up.
        """
        entries_of = self._by_resource(acts.MendPart)
        names.sort(key=lambda name: (_kind(name) is PartKind.SERVER, _asked_of(name) == name))
        for left, name in zip(range(len(names), 0, -1), names, strict=True):
            self.check()
            asked, entries = _asked_of(name), entries_of[name]
            for entry in entries:
                self.left.pop(entry.id, None)
            with self._problems_of(entries, name):
                self._require_answer(name, self._share().sooner(_SLOW_S if is_late else _ANSWER_S))
                try:
                    slow_by, share = self._share().sooner(_SLOW_S), self._share(left)
                    self._mend(name, entries, share if asked == name or share.at_ns > slow_by.at_ns else slow_by)
                except _SILENCE as error:
                    # A drive may be late on a server that answers, which is asked again for the next part.
                    if asked == name or isinstance(error, NotConnected):
                        self.silent[asked] = error
                    raise

    def _require_answer(self, name: str, deadline: Deadline) -> None:
        """Return where a part's server tells in time what stands, or why it cannot: mending may need less."""
        asked, part = _asked_of(name), self.equipment.breakable.get(name)
        try:
            if asked in self.silent:
                raise self.silent[asked]
            if asked != name and part is not None:
                with self._problems_of((), name, _SILENCE):
                    part.standing(deadline)
        except _SILENCE as error:
            self.silent[asked] = error
            raise

    def _mend(self, resource: str, entries: Sequence[Entry], deadline: Deadline) -> None:
        part = self.equipment.breakable.get(resource)
        if part is None:
            raise LabError("the lab has no such part that could be mended any more; mend it by hand")
        if isinstance(part, RecallsFaults):
            made = (entry.what for entry in entries)
            part.recall({act.key: act.fault for act in made if isinstance(act, acts.BreakPart)})
        for entry in entries:
            # One that cannot be mended keeps nothing else from it; a part that is silent is not asked again now.
            with self._problems_of([entry], resource, _SILENCE):
                for act in entry.inverses(acts.MendPart):
                    part.mend(act.key, deadline)
        standing = part.standing(deadline)
        for entry in entries:
            if kept := [act.key for act in entry.inverses(acts.MendPart) if act.key in standing]:
                fault = standing[kept[0]].get("kind", "fault")
                self.left.setdefault(entry.id, f"{resource}: its {fault} was told to end and did not; look at it")

    def _set_power(self, name: str, deadline: Deadline, *, on: bool) -> None:
        if (port := self.equipment.power.get(name)) is None:
            raise LabError("the lab has no power port of this name any more; switch it by hand")
        if port.is_on(deadline) == on:
            return
        (port.turn_on if on else port.turn_off)(deadline)
        if port.is_on(deadline) != on:
            raise LabError(f"was told to turn {'on' if on else 'off'} and did not; look at the outlet")

    def _apply_restored(self, changed: Sequence[Entry]) -> tuple[frozenset[int], str]:
        """The ports that have not what they should after the restored map was applied, and what the switch said."""
        fabric, deadline = self.equipment.fabric, self.deadline

        def attempt() -> tuple[frozenset[int], str]:
            live = fabric.live_map(deadline)
            wanted = _restored(live.pairs, changed).without(self.hidden)
            reason = ""
            try:
                apply_full(fabric, live, wanted, deadline)
            except StaleGeneration:
                raise
            except FabricError as error:
                reason = f" ({error})"
            return disturbed_ports(fabric.live_map(deadline).pairs, wanted), reason

        # A switch that has just been given power needs its time before it answers.
        may_be_booting = any(entry.inverses(acts.RestorePower) for entry in self.entries)
        transient = (StaleGeneration, NotConnected) if may_be_booting else (StaleGeneration,)
        return deadline.retry(attempt, *transient, every_s=_POLL_S)

    def _end_ns(self, entry: Entry) -> int:
        """The moment at which the disturbance of ``entry`` ends by itself.

        One whose moment was lost with its process, or with the boot, was made by now at the latest.
        """
        began_ns = entry.acted_ns if entry.boot_id == self.boot_id else None
        if began_ns is None:
            began_ns = self.deadline.clock.now_ns()
        lasts_ms: float = sum(act.lasts_ms for act in entry.inverses(acts.SettleSignal))
        return began_ns + round(lasts_ms * 1e6)


def _restore_signal(phy: SignalRestorer, ports: Sequence[int], deadline: Deadline) -> None:
    """Give ports their signal back, each by itself where one, as it cannot be found, keeps the others from theirs."""
    try:
        phy.restore(ports, deadline.sooner(deadline.remaining_s() / 2))
    except RackloopError:
        for port, share in deadline.in_turn(ports if len(ports) > 1 else ()):
            with suppress(RackloopError):
                phy.restore([port], share)
        raise


def _kind(resource: str) -> PartKind:
    return Part.of_resource(resource).kind


def _asked_of(resource: str) -> str:
    """The server that is asked about a part, or else the part itself."""
    return (_kind(resource) in _ON_SERVERS and Part.of_resource(resource).server_name) or resource


def _restored(live: PortMap, entries: Iterable[Entry]) -> PortMap:
    """The map that stands once the inverses of ``entries``, newest first, were made on ``live``.

    Composed in memory, so that undoing a thousand remaps costs the switch one.
    """
    for entry in entries:
        for change in entry.map_changes:
            live = change.after(live)
    return live


def _map_ports(entry: Entry) -> frozenset[int]:
    """The ports whose circuits the inverse of ``entry`` gives back."""
    return frozenset[int]().union(*map(acts.inverse_ports, entry.map_changes))


def _circuit_ports(entry: Entry) -> frozenset[int]:
    """The ports whose circuits the inverse of ``entry`` gives back, live or at power-on."""
    return _map_ports(entry).union(*(act.pairs.ports() for act in entry.inverses(acts.RestoreBootMap)))


def _listed(ports: Iterable[int]) -> str:
    return ", ".join(str(port) for port in sorted(ports))
