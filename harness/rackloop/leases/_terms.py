"""How a rack is to be leased, as a command line says it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rackloop.leases._holding import HeldLease, holding
from rackloop.leases._leases import Leases
from rackloop.leases._one_store import leases_of
from rackloop.leases._slice import Slice, slice_of
from rackloop.store import Store

if TYPE_CHECKING:
    from rackloop.lab import Lab


@dataclass(frozen=True)
class LeaseTerms:
    """How a lab is to be leased: the whole rack, or ``servers`` with what they have at the baseline.

    ``within`` is a lease that a person took before, of which this one is a part. With ``steal_why`` it is taken from
    whoever has it, or, where ``robbing`` names leases, from those alone.
    """

    servers: tuple[str, ...] = ()
    purpose: str = ""
    priority: int = 0
    wait_s: float = 0.0
    steal_why: str | None = None
    robbing: frozenset[str] | None = None
    within: str | None = None

    def part_of(self, lab: Lab, leases: Leases) -> Slice:
        """What is to be leased. Raises BadInput for servers that are not there, and a lease that nobody holds."""
        if self.servers:
            return slice_of(lab, self.servers)
        return leases.find(self.within).slice if self.within else slice_of(lab)


_WHOLE = LeaseTerms()


@contextmanager
def leased(lab: Lab, store: Store, terms: LeaseTerms = _WHOLE) -> Iterator[HeldLease]:
    """Hold a lease of ``lab`` while the block runs; raises as :func:`leases_of`, :func:`holding` and ``part_of`` do."""
    leases = leases_of(lab, store)
    wanted = terms.part_of(lab, leases)
    with holding(
        leases,
        wanted,
        purpose=terms.purpose,
        priority=terms.priority,
        wait_s=terms.wait_s,
        steal_why=terms.steal_why,
        robbing=terms.robbing,
        within=terms.within,
    ) as held:
        yield held
