"""Leases: the right to work on parts of a rack, for a time and under a fencing token.

The parts of a lease are granted all or nothing and never grow, so no holder waits for a part while holding another, and
nothing can deadlock. A queue decides which request is next; a token that only grows decides which holder was last.
"""

from rackloop.safety.leases._fenced import fenced, unknown_token
from rackloop.safety.leases._holder import Holder, Process
from rackloop.safety.leases._holding import HeldLease, holding, leased, obtain
from rackloop.safety.leases._lease import Attempt, Lease, LeaseLost, RackLeased, Theft, Ticket
from rackloop.safety.leases._leases import HEARTBEAT_S, Leases, LeaseTerms
from rackloop.safety.leases._shared_store import leases_of
from rackloop.safety.leases._table import raise_token, require_held

__all__ = [
    "HEARTBEAT_S",
    "Attempt",
    "HeldLease",
    "Holder",
    "Lease",
    "LeaseLost",
    "LeaseTerms",
    "Leases",
    "Process",
    "RackLeased",
    "Theft",
    "Ticket",
    "fenced",
    "holding",
    "leased",
    "leases_of",
    "obtain",
    "raise_token",
    "require_held",
    "unknown_token",
]
