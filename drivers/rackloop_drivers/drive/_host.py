"""A drive of a server, asked through the tools of that server."""

from __future__ import annotations

from rackloop.abilities import DriveIdentity, Executor
from rackloop.clock import Deadline
from rackloop_drivers.host_tools import name_of, read_drive


class HostDrive:
    """A Drive behind a node of the server where ``executor`` runs commands.

    ``device`` is the node, a link to it, or the path of a port (``pci-0000:10:00.0``), looked up each time. ATA and
    SAS drives are asked by smartctl, NVMe drives by nvme-cli; both need root there.
    """

    def __init__(self, executor: Executor, device: str) -> None:
        self._executor = executor
        self._device = device

    @property
    def location(self) -> str:
        """The server and the node, as given: ``srv1:/dev/sda``."""
        return f"{name_of(self._executor)}:{self._device}"

    def identify(self, deadline: Deadline) -> DriveIdentity:
        """The identity that the drive reports, with every identifier, and its by-path name and slot where known.

        Raises LabError where no drive is there or it cannot be asked, ToolError where a tool is missing,
        UnknownFormat, with the raw text, where a tool's output is of a version that is not known here.
        """
        return read_drive(self._executor, self._device, deadline).identity

    def health(self, deadline: Deadline) -> dict[str, int]:
        """The drive's counters by the names of :mod:`rackloop.inspection.health`; raises as :meth:`identify` does."""
        return dict(read_drive(self._executor, self._device, deadline).counters)
