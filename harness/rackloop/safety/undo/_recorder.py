"""The recorder of acts: each is announced, journalled, made and recorded, in this order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from rackloop.errors import BadInput, FabricError, LabError, NotSupported
from rackloop.lab import Part, PartKind
from rackloop.record import ActLog
from rackloop.record.acts import Act, InverseAct, touched_ports
from rackloop.safety._destructive_guard import require_may_disturb
from rackloop.safety.undo._journal import Entry, Journal
from rackloop.safety.undo._kept import KeptLinks
from rackloop.safety.undo._undo import LAST_S

if TYPE_CHECKING:
    from rackloop.lab import Lab
    from rackloop.safety.leases import HeldLease

T = TypeVar("T")

_LEAST_UNDO_S = 30.0
# SCPI 1999.0, volume 2, chapter 21.8: command errors, and of the others what tells that a command was not begun: it is
# protected, nothing is to be triggered, it conflicts with the state, or names what there is not; and a line too long.
_SYNTAX_ERRORS = range(-199, -99)
_REFUSED_BEFORE_ACTING = frozenset({-203, -211, -221, -222, -224, -363})


@dataclass(frozen=True)
class ActRecorder:
    """Makes acts on ``lab`` in the journalled order. ``run`` names the run in the journal; ``log`` may be left out.

    ``keep`` is called with the entry of each act that may have happened. With ``lease`` an act is made only while that
    is held, and only on what it has; without one a physical lab refuses every act. No act takes the link from a drive
    that is not scratch, unless ``disturbs`` names it.
    """

    lab: Lab
    journal: Journal
    run: str
    log: ActLog = field(default_factory=ActLog)
    keep: Callable[[Entry], None] = lambda _entry: None
    lease: HeldLease | None = None
    disturbs: frozenset[str] = frozenset()

    @cached_property
    def kept_links(self) -> KeptLinks:
        """The links that no act may take away."""
        return KeptLinks(self.lab, self.disturbs)

    def keeping(self, keep: Callable[[Entry], None]) -> ActRecorder:
        """This recorder, calling ``keep`` as well."""

        def both(entry: Entry) -> None:
            self.keep(entry)
            keep(entry)

        return replace(self, keep=both)

    def require_lease(self) -> None:
        """Ask the store whether the lease is held, where there is one. Raises LeaseLost where it is over."""
        if self.lease is not None:
            self.lease.require()

    def undo_s(self, entries: Iterable[Entry]) -> float:
        """The time in s that undoing ``entries`` may take: part after part, and all that is to boot boots at once."""
        parts, time_s = {(entry.ability, entry.part) for entry in entries}, self.lab.time_s
        kinds = [PartKind.SERVER if ability == "power" else part.kind for ability, part in parts]
        waits_s = kinds.count(PartKind.SLOT) * time_s("spin_up") + (PartKind.SERVER in kinds) * time_s("boot")
        return max(_LEAST_UNDO_S, len(kinds) * time_s("act") + waits_s + LAST_S)

    def perform(
        self,
        resource: str,
        what: Act,
        inverse: Sequence[InverseAct],
        act: Callable[[], T],
        result: Callable[[T], Mapping[str, Any]] = lambda _: {},
    ) -> T:
        """Announce, journal, act, record. Raises what ``act`` raises.

        Where the lease is over it raises LeaseLost, where it does not have what is acted on BadInput; nothing was done.

        An act that the box refused is marked as failed: nothing is left to undo. One that ended in any other way, a
        lost acknowledgement or an interrupt, keeps standing, because it may have happened.
        """
        return self.intend(resource, what, inverse).make(act, result)

    def intend(self, resource: str, what: Act, inverse: Sequence[InverseAct]) -> IntendedAct:
        """Announce and journal an act that is made later, or withdrawn; it is on disk when this returns.

        Raises as :meth:`perform` does. Where the process dies before the act, healing finds that it never happened.
        """
        require_may_disturb(self.lab, self.lease)
        if self.lease is not None:
            self.lease.require_covers(Part.of_resource(resource), touched_ports(what, inverse))
        number = self.log.announce(what, resource)
        lease = None if self.lease is None else self.lease.lease
        try:
            entry = self.journal.intend(self.lab.name, self.run, resource, what=what, inverse=inverse, lease=lease)
        except LabError as error:
            self.log.done(number, error=f"not made: {error}")
            raise
        return IntendedAct(self, entry, number)


@dataclass(frozen=True)
class IntendedAct:
    """An act that stands in the journal and was not made yet."""

    recorder: ActRecorder
    entry: Entry
    number: int

    def make(self, act: Callable[[], T], result: Callable[[T], Mapping[str, Any]] = lambda _: {}) -> T:
        """Act and record, as :meth:`ActRecorder.perform` does; LeaseLost where the lease was found over meanwhile."""
        recorder = self.recorder
        try:
            if recorder.lease is not None:
                recorder.lease.check()
            value = act()
        except BaseException as error:
            if _is_refusal(error):
                recorder.journal.failed(self.entry, str(error))
            else:
                recorder.keep(self.entry)
            recorder.log.done(self.number, error=f"{type(error).__name__}: {error}")
            raise
        entry = self.entry
        try:
            outcome = result(value)
            entry = recorder.journal.acted(entry, outcome)
        finally:
            recorder.keep(entry)
        recorder.log.done(self.number, result=outcome)
        return value

    def withdraw(self, reason: str) -> None:
        """Record that the act will not be made: nothing is left to undo."""
        self.recorder.journal.failed(self.entry, reason)
        self.recorder.log.done(self.number, error=f"not made: {reason}")


def _is_refusal(error: BaseException) -> bool:
    """Whether nothing was done.

    Of the switch's numbers, those alone that it gives before it acts: a hardware error may have left half a map. A
    FabricError without a number says nothing. A lease that is lost when the switch's turn is asked for is found lost
    before the act.
    """
    from rackloop.safety.leases import LeaseLost

    if isinstance(error, FabricError):
        return error.code in _SYNTAX_ERRORS or error.code in _REFUSED_BEFORE_ACTING
    return isinstance(error, (NotSupported, BadInput, LeaseLost))
