"""Playing a schedule: its faults begin and end on time, in order, and never more of them than it allows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from rackloop.clock import Clock
from rackloop.errors import BadInput, FaultRefused, LabError
from rackloop.faults import FaultCutShort, FaultSpec
from rackloop.faults.schedules._bounds import Taking, excess, nothing_known, require_within_bound
from rackloop.faults.schedules._schedule import Schedule, Step
from rackloop.names import guess
from rackloop.safety.undo import UndoFailed

Condition = Callable[[], bool]
"""True where a reason to begin no fault holds now."""

_POLL_NS = 20_000_000
# A begin that is later than this was kept waiting; what comes after it keeps its distance.
_ON_TIME_NS = 10_000_000
_MICROSECONDS = 6


class Breaking(Protocol):
    """The guard of faults that a player uses.

    ``begin`` returns once the fault stands; where it raises nothing stands, unless it raises UndoFailed. ``end``
    returns once the fault does no longer stand; or, where what ``begin`` gave says by ``stands`` that it does, another
    fault keeps it, and with the end of that it is mended too.
    """

    def begin(self, spec: FaultSpec, /) -> Any: ...

    def end(self, injection: Any, /) -> None: ...


@dataclass(frozen=True)
class Done:
    """The outcome of one step, in nanoseconds of the player's clock; ``index`` counts the unrolled steps.

    ``begun_ns`` is when the fault was commanded, ``stood_ns`` when it stood, ``mending_ns`` when its end was commanded,
    ``ended_ns`` when it was mended; one that never came is None. ``late_s`` is how much later than the schedule says it
    began, waiting for its turn included. ``injection`` is what ``begin`` gave.
    """

    index: int
    fault: FaultSpec
    begun_ns: int
    late_s: float
    stood_ns: int | None = None
    mending_ns: int | None = None
    ended_ns: int | None = None
    error: str | None = None
    injection: Any = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Played:
    """The played part of a schedule. ``held_s`` is by how much its last steps came later for having to wait."""

    schedule: Schedule
    started_ns: int
    ended_ns: int
    done: tuple[Done, ...]
    held_s: float

    @property
    def errors(self) -> tuple[str, ...]:
        """The failures, one sentence each."""
        return tuple(done.error for done in self.done if done.error)

    def as_schedule(self) -> Schedule:
        """A schedule that does again what was done, at the same times."""
        steps = tuple(
            Step(
                round((done.begun_ns - self.started_ns) / 1e9, _MICROSECONDS),
                round((done.ended_ns - done.stood_ns) / 1e9, _MICROSECONDS),
                done.fault,
            )
            for done in self.done
            if done.stood_ns is not None and done.ended_ns is not None
        )
        return replace(self.schedule, steps=steps, recovery_s=0.0, pause=(), repeats=1, places=())


class ScheduleFailed(LabError):
    """Faults of a schedule could not be begun or ended. ``played`` has what was done nevertheless."""

    def __init__(self, played: Played) -> None:
        self.played = played
        super().__init__(
            f"schedule {played.schedule.name} was not played as it is written: " + "; ".join(played.errors)
        )


def play(
    schedule: Schedule,
    breaking: Breaking,
    clock: Clock,
    *,
    taking: Taking = nothing_known,
    conditions: Mapping[str, Condition] | None = None,
    on_begin: Callable[[int, Step], None] | None = None,
) -> Played:
    """Begin and end the faults of ``schedule``, and return once all have ended.

    ``conditions`` are those its ``pause`` may name. A fault that may not begin yet, because of a pause, the bound or
    the recovery, waits, and all after it come later by as much; those that stand end when they should meanwhile. One
    that another keeps from being mended counts as standing until it is. After a fault that could not be ended no other
    is begun. One whose own parameters have it stand longer than its step, such as ``down_s``, stands that long.

    Whatever happens, all that stands is ended before this returns or raises. Raises BadInput, before anything is done,
    for a schedule that exceeds its bound or a pause that is not known; ScheduleFailed where the bench failed; anything
    else that ``begin`` raises, NotSupported for one, as it is.
    """
    known = conditions or {}
    require_within_bound(schedule, taking)
    for name in schedule.pause:
        if name not in known:
            raise BadInput(
                f"schedule {schedule.name} pauses while {name!r}, which no condition tells; {guess(name, known)}"
            )
    player = _Player(
        schedule, breaking, clock, taking, [known[name] for name in schedule.pause], on_begin or (lambda _i, _s: None)
    )
    played = player.play()
    if played.errors:
        raise ScheduleFailed(played)
    return played


@dataclass
class _Standing:
    done: Done
    ends_ns: int


@dataclass
class _Player:
    schedule: Schedule
    breaking: Breaking
    clock: Clock
    taking: Taking
    pauses: Iterable[Condition]
    on_begin: Callable[[int, Step], None]
    standing: list[_Standing] = field(default_factory=list)
    kept: list[Done] = field(default_factory=list)
    done: list[Done] = field(default_factory=list)
    held_ns: int = 0
    healed_ns: int | None = None
    is_stuck: bool = False

    def play(self) -> Played:
        started_ns = self.clock.now_ns()
        try:
            for index, step in enumerate(self.schedule.unrolled().steps):
                self._await_turn(step, started_ns + round(step.at_s * 1e9))
                if self.is_stuck:
                    break
                self._begin(index, step, started_ns + round(step.at_s * 1e9))
            while self.standing:
                self._end_next()
            self._settle_kept()
        except BaseException as error:
            while self.standing:
                self._end(self.standing.pop())
            self._settle_kept()
            for problem in (done.error for done in self.done if done.error):
                error.add_note(problem)
            raise
        done = tuple(sorted(self.done, key=lambda each: each.index))
        return Played(self.schedule, started_ns, self.clock.now_ns(), done, self.held_ns / 1e9)

    def _await_turn(self, step: Step, planned_ns: int) -> None:
        """Return when the step may begin; what is due to end meanwhile ends."""
        look_ns: int | None = planned_ns + self.held_ns
        while look_ns is not None and not self.is_stuck:
            self._sleep_until(look_ns)
            look_ns = self._not_before(step)
        late_ns = self.clock.now_ns() - planned_ns
        if late_ns > self.held_ns + _ON_TIME_NS:
            self.held_ns = late_ns

    def _not_before(self, step: Step) -> int | None:
        """The moment to look again whether the step may begin; None where it may."""
        now_ns = self.clock.now_ns()
        if any(holds() for holds in self.pauses):
            return now_ns + _POLL_NS
        if not self.standing:
            self._settle_kept()
            ready_ns = now_ns if self.healed_ns is None else self.healed_ns + round(self.schedule.recovery_s * 1e9)
            return ready_ns if ready_ns > now_ns else None
        faults = [each.done.fault for each in self.standing] + [done.fault for done in self.kept]
        if excess(faults, step.fault, self.schedule.most, self.taking) is not None:
            return min(each.ends_ns for each in self.standing)
        return None

    def _sleep_until(self, when_ns: int) -> None:
        """Sleep, and end what is due to end by then."""
        while not self.is_stuck and any(each.ends_ns <= when_ns for each in self.standing):
            self._end_next()
        self.clock.sleep_until_ns(when_ns)

    def _begin(self, index: int, step: Step, planned_ns: int) -> None:
        self.on_begin(index, step)
        begun_ns = self.clock.now_ns()
        done = Done(index, step.fault, begun_ns, late_s=(begun_ns - planned_ns) / 1e9)
        try:
            injection = self.breaking.begin(step.fault)
        except (LabError, FaultRefused) as error:
            # What may stand and could not be mended is not in the bound's count.
            self.is_stuck = self.is_stuck or isinstance(error, UndoFailed)
            self.done.append(replace(done, error=f"{step} was not begun: {error}"))
            return
        stood_ns = self.clock.now_ns()
        done = replace(done, stood_ns=stood_ns, injection=injection)
        self.standing.append(_Standing(done, stood_ns + round(step.stands_s * 1e9)))

    def _end_next(self) -> None:
        """Wait for the end that is next, and end it; of several at one moment the last begun goes first."""
        following = min(self.standing, key=lambda each: (each.ends_ns, -each.done.index))
        self.clock.sleep_until_ns(following.ends_ns)
        self.standing.remove(following)
        self._end(following)

    def _end(self, standing: _Standing) -> None:
        self._mend(replace(standing.done, mending_ns=self.clock.now_ns()))
        for done in [done for done in self.kept if not _stands(done)]:
            self.kept.remove(done)
            self._mended(done)

    def _mend(self, done: Done) -> None:
        try:
            self.breaking.end(done.injection)
        except (LabError, FaultCutShort) as error:
            self.is_stuck = True
            # It may itself be mended, and one that it kept be not.
            is_mended = getattr(done.injection, "stands", True) is False
            said = f"with the end of {done.fault}" if is_mended else f"{done.fault} was not ended"
            ended_ns = self.clock.now_ns() if is_mended else None
            self.done.append(replace(done, ended_ns=ended_ns, error=f"{said}: {error}"))
            return
        if _stands(done):
            self.kept.append(done)
        else:
            self._mended(done)

    def _mended(self, done: Done) -> None:
        self.healed_ns = self.clock.now_ns()
        self.done.append(replace(done, ended_ns=self.healed_ns))

    def _settle_kept(self) -> None:
        """Mend what others kept, now that none of the schedule stands; what stays is kept by something else."""
        kept, self.kept = self.kept, []
        for done in kept:
            self._mend(done)
        for done in self.kept:
            self.is_stuck = True
            self.done.append(replace(done, error=f"{done.fault} was not ended: a fault not of this schedule keeps it"))
        self.kept = []


def _stands(done: Done) -> bool:
    """Whether what was told to end stands nevertheless."""
    return getattr(done.injection, "stands", False) is True
