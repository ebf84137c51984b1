"""The order in which every act on a rack is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from rackloop.actlog import ActLog
from rackloop.errors import BadInput, FabricError, LabError, NotSupported
from rackloop.guard import require_may_disturb
from rackloop.journal import Entry, Journal, touched_ports
from rackloop.journalled._kept import KeptLinks

if TYPE_CHECKING:
    from rackloop.lab import Lab
    from rackloop.leases import HeldLease

T = TypeVar("T")


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
    log: ActLog | None = None
    keep: Callable[[Entry], None] | None = None
    lease: HeldLease | None = None
    disturbs: frozenset[str] = frozenset()

    @cached_property
    def kept_links(self) -> KeptLinks:
        """The links that no act may take away."""
        return KeptLinks(self.lab, self.disturbs)

    def keeping(self, keep: Callable[[Entry], None]) -> ActRecorder:
        """This recorder, calling ``keep`` as well."""
        outer = self.keep

        def both(entry: Entry) -> None:
            if outer is not None:
                outer(entry)
            keep(entry)

        return replace(self, keep=both)

    def require_lease(self) -> None:
        """Ask the store whether the lease is held, where there is one. Raises LeaseLost where it is over."""
        if self.lease is not None:
            self.lease.require()

    def perform(
        self,
        ability: str,
        resource: str,
        what: Mapping[str, Any],
        inverse: Sequence[Mapping[str, Any]],
        act: Callable[[], T],
        result: Callable[[T], Mapping[str, Any]] = lambda _: {},
    ) -> T:
        """Announce, journal, act, record. Raises what ``act`` raises.

        Where the lease is over it raises LeaseLost, where it does not have what is acted on BadInput; nothing was done.

        An act that the box refused is marked as failed: nothing is left to undo. One that ended in any other way, a
        lost acknowledgement or an interrupt, keeps standing, because it may have happened.
        """
        require_may_disturb(self.lab, self.lease)
        if self.lease is not None:
            self.lease.require_covers(resource, touched_ports(what, inverse))
        number = self.log.announce(ability, {"resource": resource, **what}) if self.log else 0
        try:
            entry = self.journal.intend(
                self.lab.name,
                self.run,
                ability,
                resource,
                what=what,
                inverse=inverse,
                lease=None if self.lease is None else self.lease.lease,
            )
        except LabError as error:
            self._done(number, error=f"not made: {error}")
            raise
        try:
            value = act()
        except BaseException as error:
            if _is_refusal(error):
                self.journal.failed(entry, str(error))
            else:
                self._keep(entry)
            self._done(number, error=f"{type(error).__name__}: {error}")
            raise
        outcome = result(value)
        try:
            entry = self.journal.acted(entry, outcome)
        finally:
            self._keep(entry)
        self._done(number, result=outcome)
        return value

    def _keep(self, entry: Entry) -> None:
        if self.keep is not None:
            self.keep(entry)

    def _done(self, number: int, *, error: str | None = None, result: Mapping[str, Any] | None = None) -> None:
        if self.log is not None:
            self.log.done(number, error=error, result=result)


def _is_refusal(error: BaseException) -> bool:
    """Whether nothing was done. A FabricError without the switch's own number does not say that.

    A lease that is lost when the switch's turn is asked for is found lost before the act.
    """
    from rackloop.leases import LeaseLost

    refusals = (NotSupported, BadInput, LeaseLost)
    return isinstance(error, refusals) or (isinstance(error, FabricError) and error.code != 0)
