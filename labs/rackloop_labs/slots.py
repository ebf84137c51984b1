"""The drives in the slots of an expander, each by itself, as the server that the expander is mapped to reaches them."""

from __future__ import annotations

from rackloop.errors import NotSupported
from rackloop_drivers.block import NbdExport
from rackloop_drivers.drive import RackdDrive
from rackloop_labs.bench import Bench


def drive_in_slot(bench: Bench, server: str, port: str, slot: int) -> tuple[RackdDrive, NbdExport]:
    """The drive in a slot of the expander that is mapped to a server port now, and how I/O reaches it.

    Raises NotSupported where the rack is no mock rack: there a drive is a device of its server.
    """
    drive, device = bench.drive(server, port), bench.device(server, port)
    if not isinstance(drive, RackdDrive) or not isinstance(device, NbdExport):
        raise NotSupported(f"slots are reached by themselves on mock racks only; lab {bench.lab.name} is none")
    return drive.in_slot(slot), device.in_slot(slot)
