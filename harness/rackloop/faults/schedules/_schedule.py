"""Schedules of faults: steps on a time line, and how much may be broken at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rackloop.faults import FaultSpec, commanded_s

SHORTEST_S = 0.001
"""Drawn and shrunk times are whole milliseconds: they survive being written down, and people can read them."""

WORDS = ("drives", "ports", "servers")
"""Targets of a random schedule that stand for all of a lab that may be broken."""


@dataclass(frozen=True)
class Step:
    """A fault that begins ``at_s`` seconds after the schedule and stands for ``lasts_s`` seconds at the least."""

    at_s: float
    lasts_s: float
    fault: FaultSpec

    @property
    def stands_s(self) -> float:
        """The time that it stands: ``lasts_s``, or what the fault's own parameters say where that is longer."""
        return max(self.lasts_s, commanded_s(self.fault) or 0.0)

    @property
    def ends_s(self) -> float:
        """The moment it ends, in seconds after the beginning of the schedule."""
        return self.at_s + self.stands_s

    def __str__(self) -> str:
        return f"{self.fault} at {self.at_s:g} s"


@dataclass(frozen=True)
class Bound:
    """The most that may be broken at once: faults, and the drives and servers that these may touch.

    It is what the system under test is meant to survive. One of each by default.
    """

    faults: int = 1
    drives: int = 1
    servers: int = 1


@dataclass(frozen=True)
class Schedule:
    """Faults in the order they begin.

    A fault begins while another one stands if ``most`` allows it, else at least ``recovery_s`` seconds after the last
    one ended. While one of the conditions named in ``pause`` holds none begins. ``repeats`` is how often the steps are
    gone through. ``seed`` is what they were drawn with, None where they were written. ``places`` say where each step
    stands in its file, for messages.
    """

    name: str
    steps: tuple[Step, ...]
    most: Bound = Bound()
    recovery_s: float = 0.0
    pause: tuple[str, ...] = ()
    repeats: int = 1
    seed: int | None = None
    places: tuple[str, ...] = field(default=(), compare=False, repr=False)

    @property
    def round_s(self) -> float:
        """The duration of one round of steps, until the next may begin."""
        return max((step.ends_s for step in self.steps), default=0.0) + self.recovery_s

    @property
    def lasts_s(self) -> float:
        """The duration of all rounds without delay or pause, until the last fault has ended."""
        return self.round_s * self.repeats - self.recovery_s if self.steps else 0.0

    def unrolled(self) -> Schedule:
        """The same schedule with its repeats written out."""
        if self.repeats == 1:
            return self
        rounds = range(self.repeats)
        steps = tuple(
            replace(step, at_s=round(step.at_s + number * self.round_s, 6)) for number in rounds for step in self.steps
        )
        return replace(self, steps=steps, repeats=1, places=self.places * self.repeats)

    def where(self, index: int) -> str:
        """The step at ``index`` for a message: its place in the file where that is known, its number, what it is."""
        return f"{place_before(self.places, index)}step {index + 1} of schedule {self.name}, {self.steps[index]}"

    def placed_faults(self) -> Iterator[tuple[str, FaultSpec]]:
        """The fault of each step, after its place in the file for a message."""
        for index, step in enumerate(self.steps):
            yield place_before(self.places, index), step.fault


@dataclass(frozen=True)
class FaultChoice:
    """A fault that a random schedule may draw: on one of ``targets``, for a time between the two of ``lasts_s``.

    :data:`WORDS` among the targets stand for all of the lab that may be broken.
    """

    kind: str
    targets: tuple[str, ...]
    lasts_s: tuple[float, float]
    weight: float = 1.0
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def faults(self) -> Iterator[FaultSpec]:
        """The fault on each of its targets."""
        for target in self.targets:
            yield FaultSpec(self.kind, target, self.parameters)


@dataclass(frozen=True)
class RandomSchedule:
    """A schedule that is drawn from ``choices``: a fault every ``every_s`` seconds on average, for ``duration_s``.

    ``most``, ``recovery_s`` and ``pause`` are those of :class:`Schedule`. ``seed`` is None where each run chooses its
    own. ``places`` say where each choice stands in its file, for messages.
    """

    name: str
    choices: tuple[FaultChoice, ...]
    every_s: float
    duration_s: float
    most: Bound = Bound()
    recovery_s: float = 0.0
    pause: tuple[str, ...] = ()
    seed: int | None = None
    places: tuple[str, ...] = field(default=(), compare=False, repr=False)

    def placed_faults(self) -> Iterator[tuple[str, FaultSpec]]:
        """Each fault that may be drawn, after the place of its choice in the file for a message."""
        for index, choice in enumerate(self.choices):
            for fault in choice.faults():
                yield place_before(self.places, index), fault


def place_before(places: Sequence[str], index: int) -> str:
    """The beginning of a message about what stands at ``index``: its place in the file, where that is known."""
    return f"{places[index]}: " if index < len(places) else ""
