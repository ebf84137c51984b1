"""Undoing what the journal holds: ways in, power, what else is broken, the map, the signal, in this order.

A box that cannot be reached cannot be given power, and one without power cannot be asked anything; a stuck port keeps
its circuit; a port whose circuit is wrong never gets its signal back, and a map change takes the signal away itself. So
each step stands on the one before it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from rackloop.abilities import (
    Breakable,
    Fabric,
    FaultRegister,
    LiveMap,
    PhyControl,
    PortState,
    PowerPort,
    SignalRestorer,
)
from rackloop.clock import Deadline
from rackloop.errors import FabricError, LabError, NotConnected, RackloopError, StaleGeneration
from rackloop.lab import Part, PartKind
from rackloop.portmap import Full, PortMap, disturbed_ports
from rackloop.record.acts import MendPart, RestoreBootMap, RestorePower, SettleSignal, inverse_ports, touched_ports
from rackloop.safety.undo._journal import Entry, Journal

_POLL_S = 5e-3
# SAS 3.0 links may train for a second; what is dark after five stays dark.
_SIGNAL_S = 5.0
# What ends sooner is waited out: to end it would be one more disturbance.
WORTH_ENDING_NS = 20_000_000
# While one of these is broken, a box cannot be told to mend anything else.
_WAYS_IN = frozenset({PartKind.CONTROL, PartKind.BMC, PartKind.NETWORK})


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
    left: dict[int, str] = {}
    ways_in = [entry for entry in newest_first if _is_way_in(entry.resource)]
    others = [entry for entry in newest_first if not _is_way_in(entry.resource)]
    _mend_all(ways_in, equipment.breakable, deadline, left, check)
    _restore_power(newest_first, equipment, deadline, left, check)
    _mend_all(others, equipment.breakable, deadline, left, check)
    check()
    _restore_boot_map(newest_first, equipment, deadline, left, hidden)
    check()
    _restore_map(newest_first, equipment, deadline, left, hidden)
    check()
    _settle(newest_first, equipment, journal.boot_id, deadline, left, dark)
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


def _is_way_in(resource: str) -> bool:
    """Whether a breakable part is how something else is reached: the switch's control link, a BMC, a network."""
    return Part.of_resource(resource).kind in _WAYS_IN


def _mend_all(
    entries: Sequence[Entry],
    breakable: Mapping[str, Breakable],
    deadline: Deadline,
    left: dict[int, str],
    check: Callable[[], None],
) -> None:
    """Mend what the inverses of ``entries``, newest first, mend; those that could not be are put into ``left``.

    ``check`` is called before each part is touched, and what it raises goes on.
    """
    by_resource: dict[str, list[Entry]] = {}
    for entry in entries:
        if entry.inverses(MendPart):
            by_resource.setdefault(entry.resource, []).append(entry)
    for resource, its_entries in by_resource.items():
        check()
        try:
            _mend(resource, its_entries, breakable, deadline, left)
        except RackloopError as error:
            left.update((entry.id, f"{resource}: {error}") for entry in its_entries)


def _mend(
    resource: str,
    entries: Sequence[Entry],
    breakable: Mapping[str, Breakable],
    deadline: Deadline,
    left: dict[int, str],
) -> None:
    part = breakable.get(resource)
    if part is None:
        raise LabError("the lab has no such part that could be mended any more; mend it by hand")
    for entry in entries:
        for act in entry.inverses(MendPart):
            part.mend(act.key, deadline)
    standing = part.standing(deadline)
    for entry in entries:
        if kept := [act.key for act in entry.inverses(MendPart) if act.key in standing]:
            fault = standing[kept[0]].get("kind", "fault")
            left[entry.id] = f"{resource}: its {fault} was told to end and did not; look at it"


def _restore_power(
    entries: Sequence[Entry],
    equipment: Equipment,
    deadline: Deadline,
    left: dict[int, str],
    check: Callable[[], None],
) -> None:
    by_name: dict[str, list[Entry]] = {}
    for entry in entries:
        if entry.inverses(RestorePower):
            by_name.setdefault(entry.resource, []).append(entry)
    for name, its_entries in by_name.items():
        check()
        (act,) = its_entries[-1].inverses(RestorePower)
        try:
            _set_power(name, equipment, deadline, on=act.on)
        except RackloopError as error:
            left.update((entry.id, f"power port {name}: {error}") for entry in its_entries)


def _set_power(name: str, equipment: Equipment, deadline: Deadline, *, on: bool) -> None:
    port = equipment.power.get(name)
    if port is None:
        raise LabError("the lab has no power port of this name any more; switch it by hand")
    if port.is_on(deadline) == on:
        return
    if on:
        port.turn_on(deadline)
    else:
        port.turn_off(deadline)
    if port.is_on(deadline) != on:
        raise LabError(f"was told to turn {'on' if on else 'off'} and did not; look at the outlet")


def _restore_boot_map(
    entries: Sequence[Entry], equipment: Equipment, deadline: Deadline, left: dict[int, str], hidden: Collection[int]
) -> None:
    changed = [entry for entry in entries if entry.inverses(RestoreBootMap)]
    if not changed:
        return
    (act,) = changed[-1].inverses(RestoreBootMap)
    wanted, fabric = act.pairs.without(hidden), equipment.fabric
    try:
        if fabric.boot_map(deadline) != wanted:
            live = fabric.live_map(deadline)
            apply_full(fabric, live, wanted, deadline)
            fabric.save_boot_map(deadline)
            apply_full(fabric, fabric.live_map(deadline), live.pairs, deadline)
    except RackloopError as error:
        left.update((entry.id, f"power-on map of the switch: {error}") for entry in changed)


def _restore_map(
    entries: Sequence[Entry], equipment: Equipment, deadline: Deadline, left: dict[int, str], hidden: Collection[int]
) -> None:
    changed = [entry for entry in entries if entry.map_changes]
    if not changed:
        return
    # A switch that has just been given power needs its time before it answers.
    may_be_booting = any(entry.inverses(RestorePower) for entry in entries)
    try:
        wrong, reason = _apply_restored(changed, equipment.fabric, deadline, hidden, may_be_booting=may_be_booting)
    except RackloopError as error:
        left.update((entry.id, f"port map: {error}") for entry in changed)
        return
    if wrong:
        problem = f"ports {_listed(wrong)} did not take their circuits back{reason}; look for a stuck or unplugged port"
        left.update((entry.id, problem) for entry in changed if wrong & _map_ports(entry))


def _apply_restored(
    entries: Sequence[Entry],
    fabric: Fabric,
    deadline: Deadline,
    hidden: Collection[int],
    *,
    may_be_booting: bool,
) -> tuple[frozenset[int], str]:
    """The ports that have not what they should after the restored map was applied, and what the switch said to it."""

    def attempt() -> tuple[frozenset[int], str]:
        live = fabric.live_map(deadline)
        wanted = _restored(live.pairs, entries).without(hidden)
        reason = ""
        try:
            apply_full(fabric, live, wanted, deadline)
        except StaleGeneration:
            raise
        except FabricError as error:
            reason = f" ({error})"
        return disturbed_ports(fabric.live_map(deadline).pairs, wanted), reason

    transient = (StaleGeneration, NotConnected) if may_be_booting else (StaleGeneration,)
    return deadline.retry(attempt, *transient, every_s=_POLL_S)


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


def _settle(
    entries: Sequence[Entry],
    equipment: Equipment,
    boot_id: str,
    deadline: Deadline,
    left: dict[int, str],
    dark: Collection[int],
) -> None:
    waiting = {entry.id: act for entry in entries for act in entry.inverses(SettleSignal)}
    if not waiting:
        return
    ends_ns = {entry.id: _end_ns(entry, boot_id, deadline) for entry in entries if entry.id in waiting}
    going_on = [entry for entry in entries if ends_ns.get(entry.id, 0) > deadline.clock.now_ns() + WORTH_ENDING_NS]
    try:
        if going_on and isinstance(equipment.phy, SignalRestorer):
            # Those that were taken down, also where nothing was joined to them that would come up again.
            dropped = (touched_ports(entry.what, entry.inverses(SettleSignal)) for entry in going_on)
            equipment.phy.restore(frozenset[int]().union(*dropped), deadline)
            ends_ns = {}
        for number, end_ns in ends_ns.items():
            if end_ns >= deadline.at_ns:
                seconds = (end_ns - deadline.clock.now_ns()) / 1e9
                ports = _listed(waiting.pop(number).ports)
                left[number] = f"ports {ports} are without signal for {seconds:.0f} s more; undo it then"
        deadline.clock.sleep_until_ns(max((ends_ns[number] for number in waiting if number in ends_ns), default=0))
        ports_of = {number: act.ports.difference(dark) for number, act in waiting.items()}
        down = set(wait_for_signal(equipment.fabric, sorted(set[int]().union(*ports_of.values())), deadline))
    except RackloopError as error:
        left.update((number, f"signal of ports {_listed(act.ports)}: {error}") for number, act in waiting.items())
        return
    for number, its_ports in ports_of.items():
        if without := down & its_ports:
            left[number] = f"ports {_listed(without)} have no signal; look at the cables and at what they lead to"


def _end_ns(entry: Entry, boot_id: str, deadline: Deadline) -> int:
    """The moment at which the disturbance of ``entry`` ends by itself.

    One whose moment was lost with its process, or with the boot, was made by now at the latest.
    """
    began_ns = entry.acted_ns if entry.acted_ns is not None and entry.boot_id == boot_id else deadline.clock.now_ns()
    lasts_ms: float = sum(act.lasts_ms for act in entry.inverses(SettleSignal))
    return began_ns + round(lasts_ms * 1e6)


def _listed(ports: Iterable[int]) -> str:
    return ", ".join(str(port) for port in sorted(ports))
