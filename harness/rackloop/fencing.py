"""Fencing tokens: a number that only grows, given to each controller of a lab before it takes the switch's lock.

A controller that was thought dead and comes back holds a lower number than its successor, and the switch refuses it
(Kleppmann, How to do distributed locking, 2016).
"""

from __future__ import annotations

from rackloop.leases import raise_token
from rackloop.store import Store


def next_token(store: Store, lab: str) -> int:
    """A token higher than every one given for ``lab`` before, on disk in the lab's store when this returns.

    Any number of processes may ask at once. Raises LabError where the store cannot be written.
    """
    with store.transaction(lab) as tables:
        return raise_token(tables, lab)
