"""Leases: who may work on which slice of a rack, until when, and under which fencing token.

A slice is granted all or nothing and never grown, so nobody waits for a part while holding another, and nothing can
deadlock. A queue decides who is next; a token that only grows decides who was last.
"""

from rackloop.safety.leases._fenced import fenced, unknown_token
from rackloop.safety.leases._holder import Holder, Process
from rackloop.safety.leases._holding import HeldLease, holding, leased, obtain
from rackloop.safety.leases._lease import Attempt, Lease, LeaseLost, RackLeased, Theft, Ticket
from rackloop.safety.leases._leases import HEARTBEAT_S, Leases
from rackloop.safety.leases._one_store import leases_of
from rackloop.safety.leases._reduced import reduced
from rackloop.safety.leases._slice import Slice, slice_of, slice_of_ports, slice_of_resource
from rackloop.safety.leases._table import raise_token, require_held
from rackloop.safety.leases._terms import LeaseTerms

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
    "Slice",
    "Theft",
    "Ticket",
    "fenced",
    "holding",
    "leased",
    "leases_of",
    "obtain",
    "raise_token",
    "reduced",
    "require_held",
    "slice_of",
    "slice_of_ports",
    "slice_of_resource",
    "unknown_token",
]
