"""Guests of a virtual rack: their image, the one that is booted and saved, their machines, the matrix of their drives.

Nothing is loaded here: only the process that is the lab needs what talks to QEMU.
"""

from typing import TYPE_CHECKING

from rackloop.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from rackloop_labs.virtual_rack.described_rack import not_virtual as not_virtual

__getattr__ = lazy_getattr(__name__)
