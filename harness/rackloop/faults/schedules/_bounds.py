"""The bound of a schedule: how much it may break at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from rackloop.errors import BadInput
from rackloop.faults import FaultSpec, kind_of_fault
from rackloop.faults.schedules._schedule import Bound, Schedule, Step
from rackloop.lab import Parts
from rackloop.units import counted

SAME_S = 1e-6
"""Times are written with microseconds; less than that apart is the same moment."""

Taking = Callable[[FaultSpec], Parts]
"""Says which parts a fault may touch, by its blast radius in a lab."""


def nothing_known(_fault: FaultSpec) -> Parts:
    """Nothing: where no lab is known only faults are counted."""
    return Parts()


def excess(standing: Iterable[FaultSpec], new: FaultSpec, most: Bound, taking: Taking) -> str | None:
    """The reason that ``new`` may not begin while ``standing`` stand, in words; None where it may."""
    before = list(standing)
    if any((fault.kind, fault.target) == (new.kind, new.target) for fault in before):
        return f"{new} stands already"
    for fault in before if kind_of_fault(new).mechanism.needs_signal else ():
        if kind_of_fault(fault).mechanism.takes_links and taking(fault).overlaps(taking(new)):
            return f"{fault} has taken the signal of {new.target}"
    taken = Parts.all_of(taking(fault) for fault in (*before, new))
    # What one kind of fault does not touch, it cannot have too much of.
    for found, noun, allowed, names in (
        (len(before) + 1, "fault", most.faults, ()),
        (len(taken.drives), "drive", most.drives, sorted(taken.drives)),
        (len(taken.servers), "server", most.servers, sorted(taken.servers)),
    ):
        if found > allowed:
            which = f" ({', '.join(names)})" if names else ""
            return f"{counted(found, noun)}{which} would be broken at once, and the schedule allows {allowed}"
    return None


def bound_problems(schedule: Schedule, taking: Taking = nothing_known) -> Iterator[tuple[int, str]]:
    """The steps at which a schedule breaks more than it may, or leaves too little recovery, with what to do."""
    steps = schedule.unrolled().steps
    seen = set()
    recent: list[Step] = []
    for number, step in enumerate(steps):
        index = number % max(1, len(schedule.steps))
        if index not in seen and (problem := _problem(recent, step, schedule, taking)):
            seen.add(index)
            yield index, problem
        last = max(recent, key=lambda each: each.ends_s, default=step)
        recent = [each for each in recent if each.ends_s > step.at_s or each is last] + [step]


def _problem(earlier: Sequence[Step], step: Step, schedule: Schedule, taking: Taking) -> str | None:
    standing = [other for other in earlier if other.ends_s > step.at_s + SAME_S]
    why = excess([other.fault for other in standing], step.fault, schedule.most, taking)
    if why is not None:
        if not standing:
            return f"{why}; raise most: if what is tested is meant to survive that"
        ended_s = max(other.ends_s for other in standing)
        return f"{why}; begin it at {ended_s:g} s, or raise most: if what is tested is meant to survive that"
    if standing or not earlier:
        return None
    ready_s = max(other.ends_s for other in earlier) + schedule.recovery_s
    if step.at_s < ready_s - SAME_S:
        return f"begins before the rack had its recovery of {schedule.recovery_s:g} s; begin it at {ready_s:g} s"
    return None


def require_within_bound(schedule: Schedule, taking: Taking = nothing_known) -> None:
    """Raise BadInput with every step at which ``schedule`` exceeds its own bound."""
    found = [f"{schedule.where(index)}: {problem}" for index, problem in bound_problems(schedule, taking)]
    if found:
        raise BadInput("\n".join(found))
