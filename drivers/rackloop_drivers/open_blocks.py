"""Sessions with the drive of any lab, at this machine or at a server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rackloop.abilities import WritableDrive
from rackloop.errors import NotSupported
from rackloop_drivers.block import DevicePath, HostPath, NbdExport

if TYPE_CHECKING:
    from rackloop.abilities import BlockDevice
    from rackloop.clock import Clock
    from rackloop_drivers.block.nbd_session import NbdSession
    from rackloop_drivers.block.path_session import PathSession

# A server's kernel tries again what a drive does not answer, each time for half a minute; that the way to it was cut
# is known sooner.
_KERNEL_S = 60.0


def open_blocks(
    device: BlockDevice | WritableDrive, clock: Clock, *, within_s: float = 5.0
) -> NbdSession | PathSession:
    """A session with the drive of any lab as blocks; a context manager.

    It writes only where ``device`` is a WritableDrive that is still open. What it gives are
    :class:`~rackloop.abilities.blocks.FailFastBlocks` where reads can be told not to retry (an export of rackd's), else
    plain Blocks. ``within_s`` is how long an NBD server may let a request wait; the kernel of this machine is waited
    for, that of a server for a minute at least.

    Raises NotSupported for a device of a kind that nothing reaches, and as the sessions do.
    """
    from rackloop_drivers.block.nbd_session import FailFastNbdSession, NbdSession
    from rackloop_drivers.block.path_session import PathSession

    reached = device.device if isinstance(device, WritableDrive) else device
    if isinstance(reached, DevicePath):
        return PathSession(device)
    if isinstance(reached, HostPath):
        return NbdSession(device, clock, within_s=max(within_s, _KERNEL_S))
    if not isinstance(reached, NbdExport):
        raise NotSupported(f"{reached.probe_target()} is a {type(reached).__name__}, and nothing reaches one from here")
    try:
        return FailFastNbdSession(device, clock, within_s=within_s)
    except NotSupported:
        return NbdSession(device, clock, within_s=within_s)
