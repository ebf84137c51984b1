"""Working within the lease that the user took before with `rackloop lab lease`."""

from __future__ import annotations

import sys

from rackloop.leases import Holder, Leases, Slice


def own_lease(leases: Leases, wanted: Slice) -> str | None:
    """The id of the user's own lease that has all of ``wanted``, which is told; None where there is none.

    A process's lease is that process's alone, also where the same user started it.
    """
    here = Holder.here(bound=False)
    for lease in leases.held():
        if lease.holder.process is None and lease.holder.user == here.user and lease.slice.contains(wanted):
            print(f"within your lease {lease.id}", file=sys.stderr)
            return lease.id
    return None
