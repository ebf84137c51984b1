"""The guard of faults: every fault that begins through it is ended, whatever comes in between."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from threading import Lock, RLock
from typing import TYPE_CHECKING, Protocol, Self

from rackloop.abilities import SignalRestorer
from rackloop.clock import Clock, Deadline
from rackloop.errors import BadInput, FaultRefused, RackloopError
from rackloop.faults._catalogue import KINDS, commanded_s
from rackloop.names import guess
from rackloop.record import FaultPhase
from rackloop.record.acts import MendPart
from rackloop.safety.undo import WORTH_ENDING_NS, UndoFailed, journalled, undo

if TYPE_CHECKING:
    from types import TracebackType

    from rackloop.faults._kind import FaultKind, FaultSpec
    from rackloop.lab import Lab, Parts
    from rackloop.record import EventSink, Stage
    from rackloop.safety.undo import ActRecorder, Entry, Equipment

# Times the lab's time for an act.
_END_TAKES = 6
_HARNESS = "harness"
# They touch no part of the rack, and without what they break no part of it can be told anything.
_OF_THE_CONTROL_LINK = frozenset({"control_lost", "control_garbled"})
_NO_KEY = re.compile(r"[^A-Za-z0-9_.-]")
_LONGEST_RUN = 64
# Two guards of one process may break the same part under keys that must differ.
_NUMBERS = count(1)


@dataclass
class Injection:
    """A fault that was begun. ``number`` counts those of its guard; moments are nanoseconds of the guard's clock.

    ``effect`` is what was first seen of it, None where nothing was. One that ``is_ended`` and ``stands``
    could not be mended, be it that another fault keeps it from that.
    """

    number: int
    spec: FaultSpec
    key: str
    radius: Parts
    commanded_ns: int
    acknowledged_ns: int | None = None
    effect: Stage | None = None
    healed_ns: int | None = None
    is_ended: bool = False
    entries: list[Entry] = field(default_factory=list)

    @property
    def stands(self) -> bool:
        """Whether it was not ended."""
        return self.healed_ns is None

    @property
    def lasts_ns(self) -> int | None:
        """For how long it stands by its own parameters; None where until it is ended, or where it never stood."""
        lasts_s = commanded_s(self.spec)
        return None if lasts_s is None or self.acknowledged_ns is None else round(lasts_s * 1e9)


class FaultCutShort(RackloopError):
    """A fault ended before the time of its parameters, or before it was told to (0 ns): it showed too little."""

    def __init__(self, injection: Injection, early_ns: int) -> None:
        said = " and ".join(name for name in ("down_s", "up_s", "count") if name in injection.spec.parameters)
        early = f"ended {early_ns / 1e6:.0f} ms before its {said or 'time'}: let it stand so long, or ask for less"
        gone = "stood no longer when it was ended: something else has given back meanwhile what it took away"
        super().__init__(f"fault {injection.number}, {injection.spec}, {early if early_ns else gone}")


class EffectWatch(Protocol):
    """An observer of faults that take effect: the rack's own log, a server's kernel, a job that reads."""

    def first_effect(self, injection: Injection) -> Stage | None:
        """The first effect seen of a fault, asked once it is mended or could not be; None where none was."""
        ...


class Faults:
    """Breaks what ``equipment`` has of ``lab`` and mends it; a context manager that ends on leaving what still stands.

    What it does is journalled by ``recorder``. The phases of each fault go to ``events`` as those of ``test``.
    ``objections`` may give reasons of others against a fault. Safe to use from several threads.
    """

    def __init__(
        self,
        lab: Lab,
        equipment: Equipment,
        clock: Clock,
        recorder: ActRecorder,
        *,
        events: EventSink | None = None,
        test: str = "",
        watch: EffectWatch | None = None,
        objections: Callable[[FaultSpec], list[str]] = lambda _spec: [],
    ) -> None:
        self._lab = lab
        self._equipment = equipment
        self._clock = clock
        self._recorder = recorder
        self._events = events
        self._test = test
        self._watch = watch
        self._objections = objections
        self._lock = Lock()
        self._ending = RLock()
        self._made: list[Injection] = []
        # Mended and not told yet: the fault, when that was, and how long it took, in nanoseconds.
        self._healed: list[tuple[Injection, int, int]] = []

    @property
    def made(self) -> tuple[Injection, ...]:
        """Every fault that was begun, the first first, ended ones included."""
        return tuple(self._made)

    @contextmanager
    def injected(self, spec: FaultSpec) -> Iterator[Injection]:
        """Have the fault stand while the block runs; raises as :meth:`begin` and :meth:`end` do.

        One whose own parameters say for how long, such as ``down_s``, stands so long: leaving the block waits for that.
        An error of the block ends it at once and goes on, with a note of what could not be mended.
        """
        injection = self.begin(spec)
        try:
            yield injection
        except BaseException as error:
            try:
                self.end(injection)
            except Exception as problem:  # noqa: BLE001 - it is the note of an error that goes on
                error.add_note(str(problem))
            raise
        if injection.lasts_ns is not None and injection.acknowledged_ns is not None:
            self._clock.sleep_until_ns(injection.acknowledged_ns + injection.lasts_ns)
        self.end(injection)

    def begin(self, spec: FaultSpec) -> Injection:
        """Make the fault; it stands when this returns, and its inverse was journalled before.

        Raises BadInput where there is no such fault or target, FaultRefused with every reason against it, NotSupported
        where nothing in the rack can make it, LabError where the equipment fails, UndoFailed where what may stand then
        could not be mended at once: it is ended with the guard.
        """
        kind = kind_of_fault(spec)
        deadline = Deadline.after(self._clock, self._lab.time_s("act"))
        radius = kind.blast_radius(self._lab, spec)
        against = kind.preconditions(self._lab, self._equipment, spec, deadline, self._recorder.disturbs)
        if reasons := [*against, *self._objections(spec)]:
            raise FaultRefused(str(spec), reasons)
        now_ns = self._clock.now_ns()
        with self._lock:
            key = f"{_NO_KEY.sub('-', self._recorder.run)[:_LONGEST_RUN]}/{now_ns}-{next(_NUMBERS)}"
            injection = Injection(len(self._made) + 1, spec, key, radius, now_ns)
            self._made.append(injection)
        acting = journalled(self._equipment, self._recorder.keeping(injection.entries.append))
        self._tell(injection, "commanded", now_ns)
        try:
            request = kind.request(self._lab, spec, key=key, request_id=now_ns)
            kind.mechanism.begin(self._lab, acting, request, deadline)
        except BaseException as error:
            if not injection.entries:
                # Nothing was made, so that nothing is left to end.
                with self._lock:
                    injection.healed_ns = now_ns
            elif isinstance(error, RackloopError):
                self._give_up(injection, error)
            raise
        injection.acknowledged_ns = self._clock.now_ns()
        self._tell(injection, "acknowledged", injection.acknowledged_ns)
        return injection

    def _give_up(self, injection: Injection, error: RackloopError) -> None:
        """Mend a fault whose begin failed, and which may stand. Raises UndoFailed from ``error`` where it may still."""
        try:
            self.end(injection)
        except RackloopError as problem:
            said = problem.problems if isinstance(problem, UndoFailed) else (str(problem),)
            raise UndoFailed((f"{injection.spec} may stand, as its begin failed: {error}", *said)) from error
        if injection.stands:
            kept = f"{injection.spec} may stand, kept by another fault, as its begin failed: {error}"
            raise UndoFailed((kept,)) from error

    def end(self, injection: Injection) -> None:
        """Mend what the fault broke and read back that it is; one that was ended already is left alone.

        Where another fault that stands keeps it from being mended, it is with the end of that one. Raises UndoFailed
        with every part that could not be mended. What fails when it is mended, be it that its effect cannot be seen or
        told, is raised as well. Raises FaultCutShort where it is mended and was told to stand longer, or where one that
        takes links away stood no longer.
        """
        with self._ending:
            if not injection.stands:
                return
            began_ns = self._clock.now_ns()
            was_gone = not injection.is_ended and self._is_gone(injection)
            injection.is_ended = True
            problems = self._mend(injection)
            for other in reversed(self.made):
                if other.is_ended and other.stands and other is not injection:
                    problems += self._mend(other)
            # No observer, and no full disk, may keep a fault from being mended.
            early_ns = self._ended_early_by_ns(injection, began_ns)
            try:
                self._look(injection, began_ns)
                if early_ns or was_gone:
                    self._tell(injection, "cut_short", began_ns)
                self._tell_healed()
            finally:
                if problems:
                    raise UndoFailed(tuple(dict.fromkeys(problems)))
            if early_ns or was_gone:
                raise FaultCutShort(injection, early_ns)

    def _is_gone(self, injection: Injection) -> bool:
        """Whether a fault that takes links away stood and does no longer, as far as its part can say."""
        has_stood = injection.acknowledged_ns is not None and kind_of_fault(injection.spec).mechanism.takes_links
        parts = [entry.resource for entry in injection.entries if has_stood and entry.inverses(MendPart)]
        deadline = Deadline.after(self._clock, self._lab.time_s("act"))
        try:
            return any(injection.key not in self._equipment.breakable[part].standing(deadline) for part in parts)
        except RackloopError:
            return False

    def _ended_early_by_ns(self, injection: Injection, ended_ns: int) -> int:
        """By how much a fault ended before it was told to, having been ended at ``ended_ns``; 0 where it did not."""
        if injection.lasts_ns is None or injection.healed_ns is None:
            return 0
        until_ns = injection.commanded_ns + injection.lasts_ns
        if ended_ns + WORTH_ENDING_NS >= until_ns:
            return 0
        # What nothing can end early was waited for.
        was_waited_for = injection.healed_ns >= until_ns and not isinstance(self._equipment.phy, SignalRestorer)
        return 0 if was_waited_for else until_ns - ended_ns

    def end_all(self) -> None:
        """End what stands, the last first, whatever fails. Raises UndoFailed with all that could not be mended.

        Where all was, the first error of those that look on or take it down is raised.
        """
        problems: list[str] = []
        failures: list[Exception] = []
        for injection in reversed(self.made):
            try:
                self.end(injection)
            except UndoFailed as error:
                problems += error.problems
            except Exception as error:  # noqa: BLE001 - the others are to be ended too, then it is raised
                failures.append(error)
                if injection.stands:
                    problems.append(f"{injection.spec}: {error}")
        if problems:
            raise UndoFailed(tuple(dict.fromkeys(problems))) from next(iter(failures), None)
        if failures:
            raise failures[0]

    def saw(self, injection: Injection, effect: Stage) -> None:
        """Record the first effect that was seen, during the fault or afterwards; of several the first told."""
        if injection.effect is None:
            injection.effect = effect
            self._tell(injection, "effect", effect.at_ns, effect.error_ns, effect.clock)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.end_all()
        except Exception as problem:
            if error is None:
                raise
            error.add_note(str(problem))

    def _mend(self, injection: Injection) -> list[str]:
        """End a fault; what could not be mended, unless another fault explains that."""
        others = [other for other in self.made if other.stands and other is not injection]
        dark = {port for other in others for port in other.radius.switch_ports}
        started_ns = self._clock.now_ns()
        recorder = self._recorder
        takes_s = max(_END_TAKES * self._lab.time_s("act"), recorder.undo_s(injection.entries))
        deadline = Deadline.after(self._clock, takes_s)
        # Once the lease is over, its next holder heals the rack; this run may not touch it any more.
        recorder.require_lease()
        outcome = undo(
            injection.entries, self._equipment, recorder.journal, deadline, dark=dark, check=recorder.require_lease
        )
        if outcome.problems:
            # What was ended already hinders nobody, or two that cannot be mended would excuse each other.
            hindering = (other for other in others if not other.is_ended)
            return [] if any(_may_hinder(other, injection) for other in hindering) else list(outcome.problems)
        injection.healed_ns = self._clock.now_ns()
        self._healed.append((injection, injection.healed_ns, injection.healed_ns - started_ns))
        return []

    def _look(self, injection: Injection, mended_ns: int) -> None:
        """Take down what the watch saw of a fault before its mending began at ``mended_ns``, and not the mending."""
        if self._watch is None or (seen := self._watch.first_effect(injection)) is None:
            return
        if seen.at_ns - seen.error_ns <= mended_ns:
            self.saw(injection, seen)

    def _tell_healed(self) -> None:
        while self._healed:
            injection, at_ns, took_ns = self._healed.pop(0)
            self._tell(injection, "healed", at_ns, took_ns)

    def _tell(self, injection: Injection, phase: str, at_ns: int, error_ns: int = 0, clock: str = _HARNESS) -> None:
        if self._events is not None:
            fault = (injection.number, injection.spec.kind, injection.spec.target, dict(injection.spec.parameters))
            self._events.write(FaultPhase(self._test, *fault, phase, at_ns, error_ns, clock))


def _may_hinder(standing: Injection, ended: Injection) -> bool:
    """Whether a fault may keep another from being mended: it is one of the control link, or reaches what mends it."""
    reach, mended = standing.radius, ended.radius
    at_servers = mended.servers | {server for server, _port in mended.server_ports}
    if reach.switch_ports & mended.switch_ports or reach.servers & at_servers:
        return True
    # Without a switch, a drive that is gone, or a port that is, may be all that the two have in common.
    if kind_of_fault(standing.spec).mechanism.takes_links and reach.overlaps(mended):
        return True
    # A management controller touches no I/O, and may be what gives its server power again.
    return standing.spec.kind in _OF_THE_CONTROL_LINK or standing.spec.target in mended.servers


def kind_of_fault(spec: FaultSpec) -> FaultKind:
    """The kind of the catalogue that a specification names. Raises BadInput where there is none."""
    try:
        return KINDS[spec.kind]
    except KeyError:
        raise BadInput(f"there is no fault called {spec.kind!r}; {guess(spec.kind, KINDS)}") from None
