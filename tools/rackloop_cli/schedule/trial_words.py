"""The words for what a trial of a search changes in the best schedule so far."""

from __future__ import annotations

from collections.abc import Sequence

from rackloop.faults.schedules import Schedule, Step
from rackloop.units import counted, format_quantity

_MOST_NAMED = 3


def tried(best: Schedule, candidate: Schedule) -> str:
    """``without hang of d01 at 1 s``, ``hang of d01 lasts 300 ms, not 600 ms``: the difference of ``candidate``."""
    left, new = list(best.steps), []
    for step in candidate.steps:
        if step in left:
            left.remove(step)
        else:
            new.append(step)
    if not new and left:
        return _without(left, candidate.steps)
    if new and len(new) == len(left):
        later = " and those after it as much earlier" if len(new) > 1 else ""
        return f"{_other(left[0], new[0])}{later}"
    if candidate.pause != best.pause:
        return "without pauses"
    if candidate.recovery_s != best.recovery_s:
        return "without time to recover"
    return "as it is"


def _without(left: Sequence[Step], kept: Sequence[Step]) -> str:
    if not kept:
        return "without any fault"
    if len(left) <= _MOST_NAMED:
        return f"without {_named(left)}"
    return f"only {_named(kept)}" if len(kept) <= _MOST_NAMED else f"without {counted(len(left), 'fault')}"


def _named(steps: Sequence[Step]) -> str:
    return ", ".join(map(str, steps))


def _other(old: Step, new: Step) -> str:
    """The difference of a step in words."""
    if gone := [name for name in old.fault.parameters if name not in new.fault.parameters]:
        return f"{old} without {', '.join(gone)}"
    if new.at_s != old.at_s:
        return f"{old.fault} begins at {new.at_s:g} s, not {old.at_s:g} s"
    return f"{old} lasts {format_quantity(new.lasts_s, 's')}, not {format_quantity(old.lasts_s, 's')}"
