"""Sessions with the drive of any lab that I/O reaches from this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rackloop.abilities import WritableDrive
from rackloop.errors import NotSupported
from rackloop_drivers.block import DevicePath, NbdExport

if TYPE_CHECKING:
    from rackloop.abilities import BlockDevice
    from rackloop.clock import Clock
    from rackloop_drivers.block.nbd_session import NbdSession
    from rackloop_drivers.block.path_session import PathSession


def open_blocks(
    device: BlockDevice | WritableDrive, clock: Clock, *, within_s: float = 5.0
) -> NbdSession | PathSession:
    """A session with the drive of any lab that I/O reaches from this machine, as blocks; a context manager.

    It writes only where ``device`` is a WritableDrive that is still open. What it gives are
    :class:`~rackloop.abilities.blocks.FailFastBlocks` where reads can be told not to retry (an export of rackd's), else
    plain Blocks. ``within_s`` is how long an NBD server may let a request wait; a kernel is waited for.

    Raises NotSupported for a drive of another machine, and as the sessions do.
    """
    from rackloop_drivers.block.nbd_session import FailFastNbdSession, NbdSession
    from rackloop_drivers.block.path_session import PathSession

    reached = device.device if isinstance(device, WritableDrive) else device
    if isinstance(reached, DevicePath):
        return PathSession(device)
    if not isinstance(reached, NbdExport):
        raise NotSupported(f"{reached.probe_target()} is at another machine, out of the harness's own reach")
    try:
        return FailFastNbdSession(device, clock, within_s=within_s)
    except NotSupported:
        return NbdSession(device, clock, within_s=within_s)
