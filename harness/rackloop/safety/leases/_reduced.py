"""A lab as the holder of a part of it sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rackloop.safety.leases._slice import Slice

if TYPE_CHECKING:
    from rackloop.lab import Lab


def reduced(lab: Lab, part: Slice) -> Lab:
    """The description with the servers and drives of ``part`` alone, and the cabling between them.

    Of the others it tells that they are not in the lease.
    """
    if part.whole:
        return lab
    drives = {name: drive for name, drive in lab.drives.items() if name in part.drives}
    behind = {drive.expander for drive in drives.values()}
    lacking = f"not in the lease, which has {part}; lease it too"
    missing = {name: f"server {name} is {lacking}" for name in lab.servers if name not in part.servers}
    missing |= {name: f"drive {name} is {lacking}" for name in lab.drives if name not in drives}
    return lab.telling(missing).model_copy(
        update={
            "servers": {name: server for name, server in lab.servers.items() if name in part.servers},
            "drives": drives,
            "expanders": {name: expander for name, expander in lab.expanders.items() if name in behind},
            "baseline": {name: joined for name, joined in lab.baseline.items() if name in part.servers},
        }
    )
