"""How a rack is to be leased, as a command line says it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rackloop.safety.leases._leases import Leases
from rackloop.safety.leases._slice import Slice, slice_of

if TYPE_CHECKING:
    from rackloop.lab import Lab


@dataclass(frozen=True)
class LeaseTerms:
    """How a lab is to be leased: the whole rack, or ``servers`` with what they have at the baseline.

    It is waited for in the queue for ``wait_s``, the higher ``priority`` first. ``within`` is a lease that a person
    took before, of which this one is a part. With ``steal_why``, which is kept, it is taken from whoever has it, or,
    where ``robbing`` names leases by their ids, from those alone.
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
