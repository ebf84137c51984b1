"""The erasure of a drive of a server, by its protocol."""

from __future__ import annotations

from rackloop.abilities import Executor
from rackloop_drivers.drive.host_drive._erase_ata import AtaErasure
from rackloop_drivers.drive.host_drive._erase_nvme import NvmeErasure
from rackloop_drivers.drive.host_drive._erase_scsi import ScsiErasure
from rackloop_drivers.drive.host_drive._erasing import Erasure, Tools


def erasure_by(executor: Executor, protocol: str, node: str) -> Erasure:
    """The erasure of the drive that ``node``, a name of its block device on the server, leads to."""
    tools = Tools(executor, node)
    if protocol == "nvme":
        return NvmeErasure(tools)
    return AtaErasure(tools) if protocol == "sata" else ScsiErasure(tools)
