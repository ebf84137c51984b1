"""Recognition of ZFS pool members by their labels; the kernel shows no holder for one.

Source: "ZFS On-Disk Specification" (Sun Microsystems, 2006), chapter 1: a label is 256 KiB, its second half an array
of uberblocks, each starting with the magic number in the byte order of the machine that wrote it.
"""

from __future__ import annotations

import os

LABEL_BYTES = 256 * 1024
UBERBLOCK_BYTES = 1024
UBERBLOCK_MAGIC = 0x00BAB10C
_MAGICS = frozenset(UBERBLOCK_MAGIC.to_bytes(8, order) for order in ("little", "big"))


def zfs_label_at(fd: int, start: int) -> bool:
    """Whether one of the two labels at the front of the device, or of the partition that starts there, is ZFS's."""
    for label in range(2):
        ring = os.pread(fd, LABEL_BYTES // 2, start + label * LABEL_BYTES + LABEL_BYTES // 2)
        if any(ring[at : at + 8] in _MAGICS for at in range(0, len(ring), UBERBLOCK_BYTES)):
            return True
    return False
