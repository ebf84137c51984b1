"""Leases: the right to work on parts of a rack, for a time and under a fencing token.

The parts of a lease are granted all or nothing and never grow, so no holder waits for a part while holding another, and
nothing can deadlock. A queue decides which request is next; a token that only grows decides which holder was last.
"""

from rackloop.safety.leases._fenced import fenced as fenced
from rackloop.safety.leases._fenced import unknown_token as unknown_token
from rackloop.safety.leases._holder import Holder as Holder
from rackloop.safety.leases._holder import Process as Process
from rackloop.safety.leases._holding import HeldLease as HeldLease
from rackloop.safety.leases._holding import holding as holding
from rackloop.safety.leases._holding import leased as leased
from rackloop.safety.leases._holding import obtain as obtain
from rackloop.safety.leases._lease import Attempt as Attempt
from rackloop.safety.leases._lease import Lease as Lease
from rackloop.safety.leases._lease import LeaseLost as LeaseLost
from rackloop.safety.leases._lease import RackLeased as RackLeased
from rackloop.safety.leases._lease import Theft as Theft
from rackloop.safety.leases._lease import Ticket as Ticket
from rackloop.safety.leases._leases import HEARTBEAT_S as HEARTBEAT_S
from rackloop.safety.leases._leases import Leases as Leases
from rackloop.safety.leases._leases import LeaseTerms as LeaseTerms
from rackloop.safety.leases._shared_store import leases_of as leases_of
from rackloop.safety.leases._table import raise_token as raise_token
from rackloop.safety.leases._table import require_held as require_held
