"""The part of a group of sectors that is in memory."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rackloop_models.erasure import Bytes
from rackloop_models.local_erasure._layout import SECTOR_BYTES, Layout

Mask = NDArray[np.bool_]

# A group costs this much at least, so that there are not too many mappings of memory.
LEAST_CHARGE = 16


class CachedGroup:
    """The cached part of a group. Arrays of ``rows`` are page-aligned, as the codec likes them.

    ``present``: rows that hold the user sector as it is. ``dirty``: those that the drive does not have yet.
    ``redundancy`` is that of the first ``base`` user sectors as they were before those that are ``changed`` did
    change; ``redundancy_known`` says that it is in memory, ``redundancy_on_drive`` that it is behind sector ``base`` on
    the drive. ``old`` has changed sectors as they were; ``lost`` are those whose old content is nowhere any more.
    """

    def __init__(self, layout: Layout, rows: Bytes) -> None:
        self.rows = rows
        self.present: Mask = np.zeros(layout.k, np.bool_)
        self.dirty: Mask = np.zeros(layout.k, np.bool_)
        self.changed: Mask = np.zeros(layout.k, np.bool_)
        self.lost: Mask = np.zeros(layout.k, np.bool_)
        self.old: dict[int, Bytes] = {}
        self.base = 0
        self.redundancy: Bytes = np.zeros((layout.m, SECTOR_BYTES), np.uint8)
        self.redundancy_known = False
        self.redundancy_on_drive = False
        self.charge = LEAST_CHARGE

    @property
    def is_redundant(self) -> bool:
        """Whether there is redundancy that stands for anything, in memory or on the drive."""
        return self.redundancy_known or self.redundancy_on_drive

    def forget_redundancy(self) -> None:
        """No redundancy stands for anything any more: it has to be computed from all sectors."""
        self.base = 0
        self.redundancy_known = self.redundancy_on_drive = False
        self.settle_changes()

    def settle_changes(self) -> None:
        """The redundancy is that of the sectors as they are."""
        self.changed[:] = False
        self.lost[:] = False
        self.old.clear()
