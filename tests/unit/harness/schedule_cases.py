"""A rack of names only, and schedules for it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from hypothesis import strategies as st

from rackloop.clock import VirtualClock
from rackloop.errors import LabError
from rackloop.faults import FaultSpec
from rackloop.faults.schedules import Bound, FaultChoice, RandomSchedule, Schedule, Step
from rackloop.lab import Parts
from tests.parts import parts

SERVERS = {"srv1": ("d01", "d02"), "srv2": ("d03", "d04")}


def taking(fault: FaultSpec) -> Parts:
    """A server has its drives with it; a port has one."""
    if fault.target in SERVERS:
        return parts(drives=SERVERS[fault.target], servers=[fault.target])
    return parts(drives=[fault.target])


def step(at_s: float, lasts_s: float, target: str = "d01", kind: str = "hang", **parameters: object) -> Step:
    return Step(at_s, lasts_s, FaultSpec(kind, target, parameters))


def schedule(*steps: Step, most: int | Bound = 1, recovery_s: float = 0.0, **others: object) -> Schedule:
    bound = Bound(most, most, most) if isinstance(most, int) else most
    return Schedule("storm", steps, bound, recovery_s, **others)  # type: ignore[arg-type]  # what a case wants


TIMES = st.integers(0, 30_000).map(lambda ms: ms / 1000)
SPANS = st.integers(1, 5_000).map(lambda ms: ms / 1000)
TEXTS = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x2FF, exclude_categories=["Cc"]), max_size=9)
NUMBERS = st.floats(1, 1e6, allow_nan=False)
PARAMETERS = {
    "hang": st.just({}),
    "fail_slow": st.fixed_dictionaries({}, optional={"extra_us": NUMBERS | st.integers(1, 10**6)}),
    "phy_drop": st.fixed_dictionaries({}, optional={"down_s": st.floats(0, 3600)}),
    "phy_flap": st.fixed_dictionaries({}, optional={"down_s": st.floats(0, 2), "count": st.integers(1, 9)}),
    "media_error": st.fixed_dictionaries(
        {}, optional={"lba": st.integers(0, 10**12), "on": st.sampled_from(["read", "both"])}
    ),
    "control_lost": st.fixed_dictionaries({}, optional={"match": TEXTS, "probability": st.floats(0.001, 1)}),
}
KINDS = tuple(PARAMETERS)
TARGETS = ("d01", "d02", "d03", "srv1", "srv1.p0", "port 17")
FAULTS = st.sampled_from(KINDS).flatmap(
    lambda kind: st.builds(FaultSpec, st.just(kind), st.sampled_from(TARGETS), PARAMETERS[kind])
)
NAMES = st.from_regex(r"[A-Za-z][A-Za-z0-9_-]{0,31}", fullmatch=True)
BOUNDS = st.builds(Bound, st.integers(1, 9), st.integers(0, 99), st.integers(0, 9))


@st.composite
def any_schedules(draw: st.DrawFn) -> Schedule:
    """Schedules of one fault at a time, whatever they break."""
    recovery_s = draw(TIMES)
    at_s = 0.0
    steps = []
    for gap_s, lasts_s, fault in draw(st.lists(st.tuples(TIMES, SPANS, FAULTS), max_size=6)):
        steps.append(Step(round(at_s + gap_s, 3), lasts_s, fault))
        at_s = math.ceil(1000 * (steps[-1].ends_s + recovery_s)) / 1000
    return Schedule(
        draw(NAMES),
        tuple(steps),
        draw(BOUNDS),
        recovery_s,
        tuple(draw(st.lists(NAMES, max_size=2, unique=True))),
        draw(st.integers(1, 5)),
        draw(st.none() | st.integers(0, 2**63 - 1)),
    )


CHOICES = st.sampled_from(KINDS).flatmap(
    lambda kind: st.builds(
        FaultChoice,
        kind=st.just(kind),
        targets=st.lists(st.sampled_from(["d01", "d02", "d03", "d04"]), min_size=1, max_size=4).map(tuple),
        lasts_s=st.tuples(SPANS, SPANS).map(lambda pair: (min(pair), max(pair))),
        weight=st.integers(1, 40).map(lambda number: number / 4),
        parameters=PARAMETERS[kind],
    )
)
RANDOM_SCHEDULES = st.builds(
    RandomSchedule,
    name=NAMES,
    choices=st.lists(CHOICES, min_size=1, max_size=4).map(tuple),
    every_s=st.integers(200, 5_000).map(lambda ms: ms / 1000),
    duration_s=st.integers(1, 20_000).map(lambda ms: ms / 1000),
    most=st.builds(Bound, st.integers(1, 3), st.integers(1, 3), st.integers(0, 3)),
    recovery_s=st.integers(0, 2_000).map(lambda ms: ms / 1000),
    pause=st.just(()),
    seed=st.none() | st.integers(0, 2**63 - 1),
)


@dataclass
class TellingRack:
    """Breaks and mends in no time, or in the time it is told, and remembers when."""

    clock: VirtualClock
    takes_s: float = 0.0
    mending_s: float = 0.0
    refuses: frozenset[str] = frozenset()
    keeps: frozenset[str] = frozenset()
    standing: list[FaultSpec] = field(default_factory=list)
    told: list[tuple[float, str, str]] = field(default_factory=list)

    def begin(self, spec: FaultSpec) -> FaultSpec:
        """Break it, unless its target is one that refuses."""
        self._tell("begin", spec)
        if spec.target in self.refuses:
            raise LabError(f"{spec.target} does not break")
        self.clock.advance(self.takes_s)
        self.standing.append(spec)
        return spec

    def end(self, injection: FaultSpec) -> None:
        """Mend it, unless its target is one that stays broken."""
        self._tell("end", injection)
        self.clock.advance(self.mending_s)
        if injection.target in self.keeps:
            raise LabError(f"{injection.target} does not mend")
        self.standing.remove(injection)

    def _tell(self, what: str, spec: FaultSpec) -> None:
        self.told.append((self.clock.now_ns() / 1e9, what, spec.target))
