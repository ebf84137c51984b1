"""Random schedules: the same seed draws the same faults at the same times."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rackloop.errors import BadInput
from rackloop.faults import FaultSpec, commanded_s
from rackloop.faults.schedules._bounds import SAME_S, Taking, excess, nothing_known
from rackloop.faults.schedules._schedule import SHORTEST_S, RandomSchedule, Schedule, Step
from rackloop.seed import Stream, stream

_DIGITS = 3


def drawn(chances: RandomSchedule, seed: int, *names: str, taking: Taking = nothing_known) -> Schedule:
    """The schedule that ``seed`` draws for what ``names`` name, such as a test.

    A fault that the bound or the recovery forbids where it was drawn waits until it is allowed; one that would end
    after ``duration_s`` is not begun, and is the last drawn. Raises BadInput for a fault that alone exceeds the bound.
    """
    _require_possible(chances, taking)
    chance = stream(seed, "schedule", chances.name, *names)
    steps: list[Step] = []
    recent: list[Step] = []
    at_s = 0.0
    while True:
        at_s = round(at_s + chance.expovariate(1 / chances.every_s), _DIGITS)
        fault, lasts_s = _fault(chances, chance)
        at_s = _soonest(recent, fault, at_s, chances, taking)
        if at_s + lasts_s > chances.duration_s:
            break
        steps.append(Step(at_s, lasts_s, fault))
        # Steps begin in order: what has ended by now matters no more, but for the last to end.
        last = max(recent, key=lambda step: step.ends_s, default=steps[-1])
        recent = [step for step in recent if step.ends_s > at_s or step is last] + steps[-1:]
    return Schedule(chances.name, tuple(steps), chances.most, chances.recovery_s, chances.pause, seed=seed)


def _fault(chances: RandomSchedule, chance: Stream) -> tuple[FaultSpec, float]:
    (choice,) = chance.choices(chances.choices, [choice.weight for choice in chances.choices])
    target = chance.choice(choice.targets)
    lasts_s = round(chance.uniform(*choice.lasts_s), _DIGITS)
    fault = FaultSpec(choice.kind, target, dict(choice.parameters))
    # Its own parameters may have it stand longer, and for no whole number of milliseconds.
    least_s = math.ceil(round(1000 * (commanded_s(fault) or 0.0), 6)) / 1000
    return fault, max(SHORTEST_S, least_s, lasts_s)


def _soonest(steps: Sequence[Step], fault: FaultSpec, at_s: float, chances: RandomSchedule, taking: Taking) -> float:
    """The first moment from ``at_s`` on at which ``fault`` may begin. Steps begin in order: nothing comes between."""
    ends = sorted({step.ends_s for step in steps if step.ends_s > at_s})
    for moment_s in (at_s, *ends):
        standing = [step.fault for step in steps if step.ends_s > moment_s + SAME_S]
        if standing and excess(standing, fault, chances.most, taking) is None:
            return round(moment_s, _DIGITS)
    if not steps:
        return at_s
    ready_ms = 1000 * (max(step.ends_s for step in steps) + chances.recovery_s)
    # Up to a whole one: a recovery must not be cut short.
    return max(at_s, math.ceil(round(ready_ms, 6)) / 1000)


def _require_possible(chances: RandomSchedule, taking: Taking) -> None:
    problems = [
        f"{place}schedule {chances.name} may draw {fault}: {why}; raise most: if what is tested is meant to survive "
        "that"
        for place, fault in chances.placed_faults()
        if (why := excess((), fault, chances.most, taking)) is not None
    ]
    if problems:
        raise BadInput("\n".join(problems))
