"""Leases: who may work on which slice of a rack, until when, and under which fencing token.

A slice is granted all or nothing and never grown, so nobody waits for a part while holding another, and nothing can
deadlock. A queue decides who is next; a token that only grows decides who was last.
"""

from rackloop.leases._fenced import fenced
from rackloop.leases._holder import Holder, Process
from rackloop.leases._holding import HeldLease, holding
from rackloop.leases._lease import Lease, LeaseLost, RackLeased, Ticket
from rackloop.leases._leases import HEARTBEAT_S, Leases
from rackloop.leases._slice import Slice, slice_of, slice_of_ports, slice_of_resource
from rackloop.leases._table import raise_token, require_held

__all__ = [
    "HEARTBEAT_S",
    "HeldLease",
    "Holder",
    "Lease",
    "LeaseLost",
    "Leases",
    "Process",
    "RackLeased",
    "Slice",
    "Ticket",
    "fenced",
    "holding",
    "raise_token",
    "require_held",
    "slice_of",
    "slice_of_ports",
    "slice_of_resource",
]
