"""Shrinking a schedule that makes a test fail to the least that still does, by delta debugging.

The algorithm is ddmin of A. Zeller and R. Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", IEEE
Transactions on Software Engineering 28(2), 2002.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise
from typing import TypeVar

from rackloop.errors import BadInput, LabError
from rackloop.faults import KINDS
from rackloop.faults.schedules import SHORTEST_S, Schedule, Step

T = TypeVar("T")

_DIGITS = 3


class _OutOfRuns(Exception):
    pass


@dataclass(frozen=True)
class Shrunk:
    """The least schedule found that fails.

    ``is_minimal`` says that nothing more could be taken away from it; otherwise the runs were used up, or it was
    interrupted. ``runs`` counts the runs it took, ``flaky`` the candidates that failed once and not always: each
    counted as one that does not fail.
    """

    schedule: Schedule
    runs: int
    flaky: int
    is_minimal: bool
    is_interrupted: bool = False


def shrink(
    schedule: Schedule,
    fails: Callable[[Schedule], bool],
    *,
    times: int = 1,
    most_runs: int = 200,
    is_allowed: Callable[[Schedule], bool] = lambda _schedule: True,
    on_run: Callable[[int, Schedule, Schedule], None] | None = None,
) -> Shrunk:
    """The least schedule that still ``fails``, found with at most ``most_runs`` runs.

    First steps are left out, all of them to begin with (the test may fail without any), then by delta debugging; then
    what is left is made simpler: without parameters, earlier, shorter, in rounder figures. A candidate counts as
    failing only if it fails ``times`` times of ``times``. Candidates that are not ``is_allowed``, by the bound for one,
    or of which that raises BadInput, as the lab cannot have them, are not run. ``on_run`` hears, before each run, its
    number, the candidate and the best so far. KeyboardInterrupt ends the search with the best so far.

    Raises BadInput, before anything is run, where ``most_runs`` are fewer than ``times``; LabError where ``schedule``
    itself does not fail ``times`` times of ``times``: what it showed before it does not show again.
    """
    if most_runs < times:
        raise BadInput(
            f"{most_runs} runs are too few to see a schedule fail {times} of {times} times; "
            "allow more runs, or ask for fewer times"
        )
    search = _Search(schedule.unrolled(), fails, times, most_runs, is_allowed, on_run or (lambda _n, _c, _b: None))
    if not search.fails(search.best):
        raise LabError(
            f"schedule {schedule.name} did not fail {times} of {times} times, so that it cannot be shrunk: "
            + ("it failed sometimes; try fewer times" if search.flaky else "it never failed")
        )
    is_interrupted = False
    try:
        search.run()
        is_minimal = True
    except _OutOfRuns:
        is_minimal = False
    except KeyboardInterrupt:
        is_minimal, is_interrupted = False, True
    return Shrunk(search.best, search.runs, search.flaky, is_minimal, is_interrupted)


@dataclass
class _Search:
    best: Schedule
    _fails: Callable[[Schedule], bool]
    _times: int
    _most_runs: int
    _is_allowed: Callable[[Schedule], bool]
    _on_run: Callable[[int, Schedule, Schedule], None]
    runs: int = 0
    flaky: int = 0
    _known: dict[str, bool] = field(default_factory=dict)

    def run(self) -> None:
        """Make ``best`` as small as it gets: what is simpler may let more be left out."""
        if self._try(replace(self.best, steps=(), places=())):
            return
        before = None
        while before != self.best:
            before = self.best
            ddmin(self.best.steps, lambda steps: self._try(replace(self.best, steps=tuple(steps), places=())))
            self._drop_pauses()
            while any(self._try(candidate) for candidate in _simpler(self.best)):
                pass

    def fails(self, candidate: Schedule) -> bool:
        """Whether the candidate fails every time; asked once for each candidate."""
        key = repr(candidate)
        if key not in self._known:
            self._known[key] = self._fails_every_time(candidate)
        return self._known[key]

    def _fails_every_time(self, candidate: Schedule) -> bool:
        for turn in range(self._times):
            if self.runs >= self._most_runs:
                raise _OutOfRuns
            self.runs += 1
            self._on_run(self.runs, candidate, self.best)
            if not self._fails(candidate):
                self.flaky += turn > 0
                return False
        return True

    def _try(self, candidate: Schedule) -> bool:
        """Take the candidate if it fails."""
        try:
            is_allowed = self._is_allowed(candidate)
        except BadInput:
            is_allowed = False
        if not is_allowed or not self.fails(candidate):
            return False
        self.best = candidate
        return True

    def _drop_pauses(self) -> None:
        if self.best.pause:
            self._try(replace(self.best, pause=()))
        if self.best.recovery_s:
            self._try(replace(self.best, recovery_s=0.0))


def _simpler(schedule: Schedule) -> Iterator[Schedule]:
    """Candidates that are a little simpler, the boldest first. Each is less by a measure that has an end."""
    steps = schedule.steps
    for index, step in enumerate(steps):
        known = KINDS[step.fault.kind].parameters if step.fault.kind in KINDS else {}
        for key in step.fault.parameters:
            if key in known and known[key].is_required:
                continue
            rest = {name: value for name, value in step.fault.parameters.items() if name != key}
            yield _with(schedule, index, replace(step, fault=replace(step.fault, parameters=rest)))
    for index, step in enumerate(steps):
        for at_s in _less(step.at_s, since=steps[index - 1].at_s if index else 0.0):
            shift_s = step.at_s - at_s
            later = (replace(other, at_s=round(other.at_s - shift_s, _DIGITS)) for other in steps[index:])
            yield replace(schedule, steps=(*steps[:index], *later), places=())
        for at_s in _less(step.at_s, since=steps[index - 1].at_s if index else 0.0):
            yield _with(schedule, index, replace(step, at_s=at_s))
    for index, step in enumerate(steps):
        for lasts_s in _less(step.lasts_s, since=0.0):
            shorter = replace(step, lasts_s=lasts_s)
            # Where its own parameters have it stand as long, it would be the same run.
            if lasts_s >= SHORTEST_S and shorter.stands_s < step.stands_s:
                yield _with(schedule, index, shorter)


def _less(value_s: float, *, since: float) -> Iterator[float]:
    """Times between ``since`` and ``value_s``: none at all, the half, then what is left without its last digits."""
    span_s = value_s - since
    found = [since, since + span_s / 2, *(int(value_s / unit) * unit for unit in (10.0, 1.0, 0.1, 0.01, 0.001))]
    for candidate_s in dict.fromkeys(round(each, _DIGITS) for each in found):
        if since <= candidate_s < value_s:
            yield candidate_s


def _with(schedule: Schedule, index: int, step: Step) -> Schedule:
    """The schedule with another step at ``index``, in the order of time."""
    changed: Sequence[Step] = [*schedule.steps[:index], step, *schedule.steps[index + 1 :]]
    return replace(schedule, steps=tuple(sorted(changed, key=lambda each: each.at_s)), places=())


def ddmin(items: Sequence[T], fails: Callable[[Sequence[T]], bool]) -> Sequence[T]:
    """A part of ``items``, in their order, that ``fails`` and of which no single item can be left out.

    ``fails`` holds for all of ``items``; it may be asked the same twice.
    """
    granularity = 2
    while len(items) >= 2:
        chunks = _chunks(items, granularity)
        complements = [list(chain(*chunks[:at], *chunks[at + 1 :])) for at in range(len(chunks))]
        if smaller := next((chunk for chunk in chunks if fails(chunk)), None):
            items, granularity = smaller, 2
        elif rest := next((rest for rest in complements if len(chunks) > 2 and fails(rest)), None):
            items, granularity = rest, max(granularity - 1, 2)
        elif granularity < len(items):
            granularity = min(len(items), 2 * granularity)
        else:
            break
    return items


def _chunks(items: Sequence[T], count: int) -> list[Sequence[T]]:
    bounds = [len(items) * number // count for number in range(count + 1)]
    return [items[low:high] for low, high in pairwise(bounds)]
