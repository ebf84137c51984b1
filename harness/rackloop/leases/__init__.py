"""Leases: who may work on which slice of a rack, until when, and under which fencing token.

A slice is granted all or nothing and never grown, so nobody waits for a part while holding another, and nothing can
deadlock. A queue decides who is next; a token that only grows decides who was last.
"""

from rackloop.leases._fenced import fenced, unknown_token
from rackloop.leases._holder import Holder, Process
from rackloop.leases._holding import HeldLease, holding, leased, obtain
from rackloop.leases._lease import Attempt, Lease, LeaseLost, RackLeased, Theft, Ticket
from rackloop.leases._leases import HEARTBEAT_S, Leases
from rackloop.leases._one_store import leases_of
from rackloop.leases._reduced import reduced
from rackloop.leases._slice import Slice, slice_of, slice_of_ports, slice_of_resource
from rackloop.leases._table import raise_token, require_held
from rackloop.leases._terms import LeaseTerms

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
