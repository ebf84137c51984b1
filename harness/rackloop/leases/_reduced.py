"""A lab as the holder of a part of it sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rackloop.leases._slice import Slice

if TYPE_CHECKING:
    from rackloop.lab import Lab


def reduced(lab: Lab, part: Slice) -> Lab:
    """The description with the servers and drives of ``part`` alone, and the cabling between them."""
    if part.whole:
        return lab
    drives = {name: drive for name, drive in lab.drives.items() if name in part.drives}
    behind = {drive.expander for drive in drives.values()}
    return lab.model_copy(
        update={
            "servers": {name: server for name, server in lab.servers.items() if name in part.servers},
            "drives": drives,
            "expanders": {name: expander for name, expander in lab.expanders.items() if name in behind},
            "baseline": {name: joined for name, joined in lab.baseline.items() if name in part.servers},
        }
    )
