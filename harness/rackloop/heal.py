"""Giving a rack back its baseline after a run that did not: from any process, after any end of the run.

The journal says what may be left of it. Beyond the journal, the map is compared with the baseline and restored, for
a switch that lost its power lost its map with it; power that no entry explains is reported and not touched, for
somebody may have a hand in that box.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rackloop.abilities import PowerPort
from rackloop.clock import Clock, Deadline
from rackloop.errors import LabError, NotSupported, StaleGeneration
from rackloop.guard import require_may_disturb
from rackloop.journal import Entry, Journal, JournalDamaged
from rackloop.journalled import Equipment, apply_full, undo, wait_for_signal
from rackloop.portmap import PortMap, disturbed_ports

if TYPE_CHECKING:
    from rackloop.lab import Lab


@dataclass(frozen=True)
class HealReport:
    """What heal did: the entries it undid, the ports it gave their baseline circuits that no entry explained, and a
    sentence for each thing that is still not as it should be.
    """  # noqa: D205

    undone: tuple[Entry, ...]
    restored_ports: tuple[int, ...]
    problems: tuple[str, ...]
    took_s: float

    @property
    def is_healed(self) -> bool:
        """Whether the lab stands at its baseline and nothing is left to undo."""
        return not self.problems


def heal(lab: Lab, journal: Journal, equipment: Equipment, clock: Clock, deadline: Deadline) -> HealReport:
    """Undo what stands in the journal for ``lab``, then restore and read back its baseline.

    May be run again and again, and after having been killed itself. Raises BadInput for a physical lab, LabError
    where the journal cannot be written; what the bench refuses is in the report's ``problems``.
    """
    require_may_disturb(lab)
    started_ns = clock.now_ns()
    problems: list[str] = []
    try:
        standing = journal.standing(lab.name)
    except JournalDamaged as damage:
        problems.append(str(damage))
        standing = list(damage.readable)
    undone: tuple[Entry, ...] = ()
    if standing:
        try:
            outcome = undo(standing, equipment, journal, deadline)
        except JournalDamaged as damage:
            # What was undone could not be marked so; undoing it again does no harm.
            problems.append(str(damage))
        else:
            undone = outcome.undone
            problems += outcome.problems
    # Each controller takes its time to say whether power is on, so all are asked at once, while the map is restored.
    with ThreadPoolExecutor(len(equipment.power) or 1) as asking:
        asked = [asking.submit(_power_problem, name, port, deadline) for name, port in equipment.power.items()]
        restored, switch_problems = _give_baseline(lab, equipment, deadline)
        problems += [problem for answer in asked if (problem := answer.result()) is not None]
    problems += switch_problems
    return HealReport(undone, restored, tuple(dict.fromkeys(problems)), (clock.now_ns() - started_ns) / 1e9)


def _power_problem(name: str, port: PowerPort, deadline: Deadline) -> str | None:
    try:
        if not port.is_on(deadline):
            return f"power port {name} is off and no journal entry says why; turn it on if it should be"
    except (LabError, NotSupported) as error:
        return f"power port {name}: {error}"
    return None


def _give_baseline(lab: Lab, equipment: Equipment, deadline: Deadline) -> tuple[tuple[int, ...], list[str]]:
    """Have the baseline stand with a signal on every port; the ports that had other circuits, and what is wrong."""
    restored: tuple[int, ...] = ()
    if not lab.has_switch:
        return restored, []
    try:
        restored = _restore_baseline(equipment, lab.baseline_map(), deadline)
        return restored, _signal_problems(equipment, deadline)
    except (LabError, NotSupported) as error:
        return restored, [f"switch: {error}"]


def _restore_baseline(equipment: Equipment, baseline: PortMap, deadline: Deadline) -> tuple[int, ...]:
    """Make the baseline the live map; the ports that had other circuits. Raises LabError where it does not stand."""
    fabric = equipment.fabric
    while True:
        live = fabric.live_map(deadline)
        try:
            apply_full(fabric, live, baseline, deadline)
        except StaleGeneration:
            if deadline.is_over():
                raise
            continue
        wrong = disturbed_ports(fabric.live_map(deadline).pairs, baseline)
        if wrong:
            ports = ", ".join(str(port) for port in sorted(wrong))
            raise LabError(f"ports {ports} do not take their baseline circuits; look for a stuck or unplugged port")
        return tuple(sorted(disturbed_ports(live.pairs, baseline)))


def _signal_problems(equipment: Equipment, deadline: Deadline) -> list[str]:
    mapped = equipment.fabric.live_map(deadline).pairs.ports()
    dark = wait_for_signal(equipment.fabric, sorted(mapped), deadline)
    if not dark:
        return []
    ports = ", ".join(str(port) for port in dark)
    return [f"ports {ports} have no signal; look at the cables, the drives and the servers' power"]
