"""Heal: giving a rack back its baseline after a run that did not, from any process, after any end of the run.

The journal says what may be left of it. Beyond the journal, the map is compared with the baseline and restored, for
a switch that lost its power lost its map with it; faults that no entry explains are mended where the rack is simulated;
power and faults of a real one are reported and not touched, for an operator may have a hand in that box.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from rackloop.clock import Clock, Deadline
from rackloop.errors import BadInput, LabError, NotSupported, RackloopError, StaleGeneration
from rackloop.lab import Part, PartKind
from rackloop.portmap import PortMap, disturbed_ports
from rackloop.record.acts import SettleSignal
from rackloop.safety._destructive_guard import require_may_disturb
from rackloop.safety._heal_checks import Check, Rack, answer_checks, fed_servers, mend_unexplained, power_checks
from rackloop.safety._orphans import Orphan, end_orphans
from rackloop.safety.undo import Entry, Equipment, Journal, JournalDamaged, apply_full, undo, wait_for_signal

if TYPE_CHECKING:
    from rackloop.abilities import FaultRegister
    from rackloop.lab import Lab
    from rackloop.record import ActLog
    from rackloop.safety.leases import HeldLease


# Kept of the time for everything that does not wait for servers to boot.
_LAST_S = 15.0


@dataclass(frozen=True)
class HealReport:
    """The result of a heal: entries ``undone``, commands of runs that are over ``ended``, and what is still wrong.

    No entry explained the faults that were ``mended``, nor the other circuits that ``restored_ports`` had.
    ``problems`` has a sentence for each thing that is still not as it should be.
    """

    undone: tuple[Entry, ...]
    mended: tuple[str, ...]
    restored_ports: tuple[int, ...]
    problems: tuple[str, ...]
    took_s: float
    ended: tuple[Orphan, ...] = ()

    @property
    def found_in_order(self) -> bool:
        """Whether the lab stood at its baseline already, so that nothing was done to it."""
        return not (self.undone or self.mended or self.restored_ports or self.ended or self.problems)

    @property
    def is_healed(self) -> bool:
        """Whether the lab stands at its baseline, and all is undone but what was to be left alone."""
        return not self.problems


def heal(
    lab: Lab,
    journal: Journal,
    equipment: Equipment,
    clock: Clock,
    deadline: Deadline,
    *,
    lease: HeldLease | None = None,
    look_at: Rack | None = None,
    thorough: bool = False,
    leave: Callable[[Part], bool] = lambda _part: False,
    answering: Callable[[], Collection[str]] | None = None,
    seek_orphans: bool = False,
    recent: Sequence[Entry] = (),
    log: ActLog | None = None,
) -> HealReport:
    """Undo what stands in the journal for ``lab``, then restore and read back its baseline.

    With a ``lease`` of a part of the rack, ``lab`` and ``equipment`` are those of that part, and so is what is undone.
    Where ``look_at`` is given and anything had to be healed, or it is to be ``thorough``, every server must answer and
    every drive of the baseline be there and be itself. What was done to parts that ``leave`` says are to be left
    alone, because an operator works on them, stays in the journal; so does a change of the map, when the circuits of
    such switch ports are all that is left of it. ``answering`` names the servers that answered since the lab was
    this holder's: where nothing had to be healed and it is not to be ``thorough``, they are taken to have power, and
    neither their controllers nor their outlets are asked; the others, which an earlier run may have left booting, are
    waited for: for as long as a boot takes where ``recent`` entries, which are undone, gave power or a new start.

    With ``seek_orphans`` and a lease, the servers of ``look_at`` are first searched for commands of leases that are
    over, which are ended before the map changes under them; ``log`` takes down each.

    May be run again and again, and after having been killed itself. Raises BadInput for a physical lab without a
    lease, LeaseLost as soon as the lease is found over, which is asked of the store before each part is touched,
    LabError where the journal or the lease cannot be asked; what the bench or a tool refuses, and a journal that cannot
    take down what was undone, is in the report's ``problems``.
    """
    require_may_disturb(lab, lease)
    started_ns = clock.now_ns()
    healing = _Healing(lab, journal, equipment, deadline, lease, look_at)
    healing.require_lease()
    ended = healing.end_orphans(log) if seek_orphans else ()
    known = healing.gather()  # after the servers were waited for: what began meanwhile is in the journal too
    standing = [entry for entry in known if healing.covers(entry, leave)]
    mended = healing.mend(known, equipment.registers, deadline, deadline)
    undone = healing.undo(standing, leave)
    # What was given power, or a new start, has to boot or spin up before it answers.
    starts = any(entry.ability == "power" or entry.part.kind is PartKind.SERVER for entry in (*undone, *recent))
    left_s = deadline.remaining_s()
    # Whoever is silent, the map keeps its time.
    mend_by = deadline.sooner(left_s - min(_LAST_S, left_s / 2))
    answer_by = mend_by if starts else mend_by.sooner(lab.time_s("tools"))
    begun = healing.mend(known, equipment.server_registers, answer_by, mend_by)
    mended += begun
    healing.require_lease()
    power = partial(power_checks, equipment, deadline)

    def checks(but: Collection[str] = (), *, drives: bool = True) -> list[Check]:
        # From now on: what was waited for before took its own time, and not that of who answers.
        answer_by = healing.answer_by(starts=starts or bool(begun))
        return answer_checks(lab, look_at, answer_by, but=healing.silent.union(but), drives=drives)

    def late_checks() -> list[Check]:
        if answering is None:
            return power()
        running = answering()
        return [*power(but=fed_servers(lab, running)), *checks(running, drives=False)]

    restored = healing.restore(power(), checks) if thorough or standing or mended else healing.restore([], late_checks)
    problems = tuple(dict.fromkeys(healing.problems))
    return HealReport(undone, mended, restored, problems, (clock.now_ns() - started_ns) / 1e9, ended)


@dataclass
class _Healing:
    """The steps of one heal. ``problems`` collects what is still not as it should be.

    The servers that are ``silent`` were waited for, and are not asked again.
    """

    lab: Lab
    journal: Journal
    equipment: Equipment
    deadline: Deadline
    lease: HeldLease | None
    look_at: Rack | None
    problems: list[str] = field(default_factory=list)
    silent: frozenset[str] = frozenset()

    def require_lease(self) -> None:
        """Raise LeaseLost where the lease is over."""
        if self.lease is not None:
            self.lease.require()

    def answer_by(self, *, starts: bool) -> Deadline:
        """The deadline of a server or a drive that is asked from now on; later where something ``starts``."""
        soon_s = self.lab.time_s("tools")
        return self.deadline.sooner(max(soon_s, self.deadline.remaining_s() - _LAST_S) if starts else soon_s)

    def gather(self) -> list[Entry]:
        """The entries of the journal that stand for the lab, as far as they can be read."""
        try:
            return self.journal.standing(self.lab.name)
        except JournalDamaged as damage:
            self.problems.append(str(damage))
            return list(damage.readable)

    def covers(self, entry: Entry, leave: Callable[[Part], bool]) -> bool:
        """Whether the entry is this lease's to undo, and of nothing that is left alone: a signal is of its ports."""
        signals = [Part.switch_port(port) for _ in entry.inverses(SettleSignal) for port in entry.ports]
        is_left = all(map(leave, signals or [entry.part]))
        return not is_left and (self.lease is None or self.lease.parts.covers(entry.part, entry.ports))

    def end_orphans(self, log: ActLog | None) -> tuple[Orphan, ...]:
        """End the commands of leases that are over; those that were."""
        lease, rack = self.lease, self.look_at
        if lease is None or rack is None:
            return ()
        hosts = []
        for server in self.lab.servers:
            with suppress(NotSupported):
                hosts.append(rack.host(server))
        deadline = self.deadline.sooner(self.lab.time_s("tools"))
        ended, stuck = end_orphans(
            self.lab.name, hosts, lambda: [held.id for held in lease.leases.held()], deadline, log
        )
        self.problems += stuck
        return ended

    def mend(
        self, known: Sequence[Entry], registers: Sequence[FaultRegister], answer_by: Deadline, mend_by: Deadline
    ) -> tuple[str, ...]:
        """Mend what ``registers`` say is broken and no entry explains; what that was."""
        lab, breakable, check = self.lab, self.equipment.breakable, self.require_lease
        mended, problems, silent = mend_unexplained(lab, known, breakable, registers, answer_by, mend_by, check)
        self.problems += problems
        self.silent |= silent
        return mended

    def undo(self, standing: Sequence[Entry], leave: Callable[[Part], bool]) -> tuple[Entry, ...]:
        """Undo what stands; the entries that were undone."""
        if not standing:
            return ()
        hidden = {port for entry in standing for port in entry.ports if leave(Part.switch_port(port))}
        try:
            outcome = undo(
                standing, self.equipment, self.journal, self.deadline, hidden=hidden, check=self.require_lease
            )
        except LabError as error:
            # A lease that was lost ends it here.
            self.require_lease()
            # A full disk or a broken page: what was undone is not marked so, and undoing it again does no harm.
            self.problems.append(str(error))
            return ()
        self.problems += outcome.problems
        return outcome.undone

    def restore(self, meanwhile: Sequence[Check], after: Callable[[], Sequence[Check]]) -> tuple[int, ...]:
        """Give the rack its baseline map, and make checks, all at once; the ports that had other circuits.

        Controllers may be asked ``meanwhile``, drives ``after``: a port that is still elsewhere tells of another drive.
        """
        lab = self.lab
        with ThreadPoolExecutor(len(lab.servers) + len(lab.drives) + len(self.equipment.power) + 1) as asking:
            asked = [asking.submit(check) for check in meanwhile]
            restored, problems = self._give_baseline()
            asked += [asking.submit(check) for check in after()]
            self.problems += [problem for answer in asked if (problem := answer.result()) is not None]
        self.problems += problems
        return restored

    def _give_baseline(self) -> tuple[tuple[int, ...], list[str]]:
        """Have the baseline stand with a signal on every port; the ports that had other circuits, and what is wrong."""
        restored: tuple[int, ...] = ()
        if not self.lab.has_switch:
            return restored, []
        try:
            restored = self._restore_baseline()
            return restored, self._signal_problems()
        except BadInput as error:
            name = self.lab.name
            return restored, [f"switch: {error}; `rackloop heal {name}` heals the whole rack, its other ports too"]
        except RackloopError as error:
            return restored, [f"switch: {error}"]

    def _restore_baseline(self) -> tuple[int, ...]:
        """Make the baseline the live map; ports that had other circuits. Raises LabError where it does not stand."""
        fabric, deadline, baseline = self.equipment.fabric, self.deadline, self.lab.baseline_map()

        def attempt() -> PortMap:
            live = fabric.live_map(deadline)
            apply_full(fabric, live, baseline, deadline)
            return live.pairs

        before = deadline.retry(attempt, StaleGeneration, every_s=0.0)
        if wrong := disturbed_ports(fabric.live_map(deadline).pairs, baseline):
            ports = ", ".join(str(port) for port in sorted(wrong))
            raise LabError(f"ports {ports} do not take their baseline circuits; look for a stuck or unplugged port")
        return tuple(sorted(disturbed_ports(before, baseline)))

    def _signal_problems(self) -> list[str]:
        fabric = self.equipment.fabric
        dark = wait_for_signal(fabric, sorted(fabric.live_map(self.deadline).pairs.ports()), self.deadline)
        ports = ", ".join(map(str, dark))
        return [f"ports {ports} have no signal; look at the cables, the drives and the servers' power"] if dark else []
