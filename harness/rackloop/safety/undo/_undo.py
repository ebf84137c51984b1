"""Undoing what the journal holds: ways in, power, what else is broken, the map, the signal, in this order.

A box that cannot be reached cannot be given power, and one without power cannot be asked anything; a stuck port keeps
its circuit; a port whose circuit is wrong never gets its signal back, and a map change takes the signal away itself. So
each step stands on the one before it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
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
from rackloop.errors import FabricError, LabError, NotConnected, RackloopError, StaleGeneration
from rackloop.lab import Part, PartKind
from rackloop.portmap import Full, PortMap, disturbed_ports
from rackloop.record.acts import (
    BreakPart,
    InverseAct,
    MendPart,
    RestoreBootMap,
    RestorePower,
    SettleSignal,
    inverse_ports,
    touched_ports,
)
from rackloop.safety.undo._journal import Entry, Journal

_POLL_S = 5e-3
# A kernel may take so long to find a drive; each look may be some commands on its server.
_FOUND_S = 30.0
_LOOK_S = 0.25
# SAS 3.0 links may train for a second; what is dark after five stays dark.
_SIGNAL_S = 5.0
# What ends sooner is waited out: to end it would be one more disturbance.
WORTH_ENDING_NS = 20_000_000
# While one of these is broken, a box cannot be told to mend anything else.
_WAYS_IN = frozenset({PartKind.CONTROL, PartKind.BMC, PartKind.NETWORK})
# They are reached through a port: where the map has another drive there, they are not.
_BEHIND_PORTS = frozenset({PartKind.DRIVE, PartKind.SLOT, PartKind.PHY})


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
    for step in (undoing.restore_boot_map, undoing.restore_map, undoing.settle):
        check()
        step()
    if any(entry.map_changes and entry.id not in undoing.left for entry in entries):
        undoing.mend_displaced()
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

    def mend(self, *, ways_in: bool) -> None:
        """Mend the parts that are broken: those by which others are reached, or all others."""
        for resource, entries in self._by_resource(MendPart).items():
            if (Part.of_resource(resource).kind in _WAYS_IN) is ways_in:
                self.check()
                with self._problems_of(entries, resource):
                    self._mend(resource, entries)

    def mend_displaced(self) -> None:
        """Mend what could not be while the map had another drive there: its own is back, and is found before long.

        Each is tried in turn, so that one that is not found for another reason takes no time from the others.
        """
        waiting = {
            resource: again
            for resource, entries in self._by_resource(MendPart).items()
            if resource in self.equipment.breakable and Part.of_resource(resource).kind in _BEHIND_PORTS
            if (again := [entry for entry in entries if entry.id in self.left])
        }

        def try_each() -> Mapping[str, Sequence[Entry]]:
            for resource, again in list(waiting.items()):
                self.check()
                for entry in again:
                    self.left.pop(entry.id, None)
                with self._problems_of(again, resource):
                    self._mend(resource, again)
                    del waiting[resource]
            return waiting

        self.deadline.sooner(_FOUND_S).poll(try_each, operator.not_, every_s=_LOOK_S)

    def restore_power(self) -> None:
        """Give each power port the state back that it had before the first of its entries."""
        for name, entries in self._by_resource(RestorePower).items():
            self.check()
            (act,) = entries[-1].inverses(RestorePower)
            with self._problems_of(entries, f"power port {name}"):
                self._set_power(name, on=act.on)

    def restore_boot_map(self) -> None:
        """Give the switch its power-on map back."""
        changed = [entry for entry in self.entries if entry.inverses(RestoreBootMap)]
        if not changed:
            return
        (act,) = changed[-1].inverses(RestoreBootMap)
        wanted, fabric, deadline = act.pairs.without(self.hidden), self.equipment.fabric, self.deadline
        with self._problems_of(changed, "power-on map of the switch"):
            if fabric.boot_map(deadline) != wanted:
                live = fabric.live_map(deadline)
                apply_full(fabric, live, wanted, deadline)
                fabric.save_boot_map(deadline)
                apply_full(fabric, fabric.live_map(deadline), live.pairs, deadline)

    def restore_map(self) -> None:
        """Give the ports whose circuits were changed theirs back, all in one change."""
        changed = [entry for entry in self.entries if entry.map_changes]
        if not changed:
            return
        with self._problems_of(changed, "port map"):
            wrong, reason = self._apply_restored(changed)
            if wrong:
                did_not = f"ports {_listed(wrong)} did not take their circuits back{reason}"
                problem = f"{did_not}; look for a stuck or unplugged port"
                self.left.update((entry.id, problem) for entry in changed if wrong & _map_ports(entry))

    def settle(self) -> None:
        """End what takes signals away, or wait it out, until the signals are back."""
        deadline = self.deadline
        waiting = {entry.id: act for entry in self.entries for act in entry.inverses(SettleSignal)}
        if not waiting:
            return
        ends_ns = {entry.id: self._end_ns(entry) for entry in self.entries if entry.id in waiting}
        soon_ns = deadline.clock.now_ns() + WORTH_ENDING_NS
        going_on = [entry for entry in self.entries if ends_ns.get(entry.id, 0) > soon_ns]
        try:
            if going_on and isinstance(self.equipment.phy, SignalRestorer):
                # Those that were taken down, also where nothing was joined to them that would come up again.
                dropped = (touched_ports(entry.what, entry.inverses(SettleSignal)) for entry in going_on)
                self.equipment.phy.restore(frozenset[int]().union(*dropped), deadline)
                ends_ns = {}
            for number, end_ns in ends_ns.items():
                if end_ns >= deadline.at_ns:
                    seconds = (end_ns - deadline.clock.now_ns()) / 1e9
                    ports = _listed(waiting.pop(number).ports)
                    self.left[number] = f"ports {ports} are without signal for {seconds:.0f} s more; undo it then"
            deadline.clock.sleep_until_ns(max((ends_ns[number] for number in waiting if number in ends_ns), default=0))
            ports_of = {number: act.ports.difference(self.dark) for number, act in waiting.items()}
            awaited = sorted(set[int]().union(*ports_of.values()))
            down = set(wait_for_signal(self.equipment.fabric, awaited, deadline))
        except RackloopError as error:
            self.left.update(
                (number, f"signal of ports {_listed(act.ports)}: {error}") for number, act in waiting.items()
            )
            return
        for number, its_ports in ports_of.items():
            if without := down & its_ports:
                ports = _listed(without)
                self.left[number] = f"ports {ports} have no signal; look at the cables and at what they lead to"

    def _by_resource(self, kind: type[InverseAct]) -> dict[str, list[Entry]]:
        """The entries with an inverse act of this kind, by what they were done to."""
        found: dict[str, list[Entry]] = {}
        for entry in self.entries:
            if entry.inverses(kind):
                found.setdefault(entry.resource, []).append(entry)
        return found

    @contextmanager
    def _problems_of(self, entries: Sequence[Entry], what: str) -> Iterator[None]:
        """Leave ``entries``, because of the error of the bench or of a tool that the block ends with."""
        try:
            yield
        except RackloopError as error:
            self.left.update((entry.id, f"{what}: {error}") for entry in entries)

    def _mend(self, resource: str, entries: Sequence[Entry]) -> None:
        part = self.equipment.breakable.get(resource)
        if part is None:
            raise LabError("the lab has no such part that could be mended any more; mend it by hand")
        if isinstance(part, RecallsFaults):
            acts = (entry.what for entry in entries)
            part.recall({act.key: act.fault for act in acts if isinstance(act, BreakPart)})
        for entry in entries:
            for act in entry.inverses(MendPart):
                part.mend(act.key, self.deadline)
        standing = part.standing(self.deadline)
        for entry in entries:
            if kept := [act.key for act in entry.inverses(MendPart) if act.key in standing]:
                fault = standing[kept[0]].get("kind", "fault")
                self.left[entry.id] = f"{resource}: its {fault} was told to end and did not; look at it"

    def _set_power(self, name: str, *, on: bool) -> None:
        port, deadline = self.equipment.power.get(name), self.deadline
        if port is None:
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
        may_be_booting = any(entry.inverses(RestorePower) for entry in self.entries)
        transient = (StaleGeneration, NotConnected) if may_be_booting else (StaleGeneration,)
        return deadline.retry(attempt, *transient, every_s=_POLL_S)

    def _end_ns(self, entry: Entry) -> int:
        """The moment at which the disturbance of ``entry`` ends by itself.

        One whose moment was lost with its process, or with the boot, was made by now at the latest.
        """
        began_ns = entry.acted_ns if entry.boot_id == self.boot_id else None
        if began_ns is None:
            began_ns = self.deadline.clock.now_ns()
        lasts_ms: float = sum(act.lasts_ms for act in entry.inverses(SettleSignal))
        return began_ns + round(lasts_ms * 1e6)


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
    return frozenset[int]().union(*map(inverse_ports, entry.map_changes))


def _circuit_ports(entry: Entry) -> frozenset[int]:
    """The ports whose circuits the inverse of ``entry`` gives back, live or at power-on."""
    return _map_ports(entry).union(*(act.pairs.ports() for act in entry.inverses(RestoreBootMap)))


def _listed(ports: Iterable[int]) -> str:
    return ", ".join(str(port) for port in sorted(ports))
