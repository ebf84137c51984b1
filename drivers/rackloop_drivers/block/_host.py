"""A drive of a server as I/O on that server reaches it."""

from __future__ import annotations

from collections.abc import Mapping

from rackloop.abilities import BlockUsage, Executor
from rackloop.clock import Clock, Deadline
from rackloop.inventory import SeenDrive
from rackloop_drivers.host_tools import name_of, read_drive

_LOOK_S = 30.0


class HostPath:
    """A BlockDevice behind a node of the server where ``executor`` runs commands, asked each time it is used.

    ``device`` is as :class:`~rackloop_drivers.drive.HostDrive` takes it, and ``location`` says it in the same words.
    Raises LabError where no drive is there, ToolError and UnknownFormat as the tools do.
    """

    def __init__(self, executor: Executor, device: str, clock: Clock) -> None:
        self._executor = executor
        self._device = device
        self._clock = clock

    @property
    def location(self) -> str:
        """The server and the node, as given."""
        return f"{name_of(self._executor)}:{self._device}"

    @property
    def size_bytes(self) -> int:
        """The size of the drive."""
        return self._seen().identity.size_bytes

    @property
    def drive_bytes(self) -> int:
        """The size of the drive, which is that of its node."""
        return self.size_bytes

    def identifiers(self) -> Mapping[str, str]:
        """What the tools of the server read of the drive behind the node."""
        identity = self._seen().identity
        return {"serial": identity.serial, **identity.identifiers}

    def fio_options(self) -> dict[str, str]:
        """Options for fio's libaio engine, beside the page cache; fio takes a bare colon for a list of files."""
        return {"ioengine": "libaio", "direct": "1", "filename": self.probe_target().replace(":", "\\:")}

    def probe_target(self) -> str:
        """The by-path name of what is there now, which leads to whatever is there later; else its node."""
        seen = self._seen()
        return f"/dev/disk/by-path/{seen.by_paths[0]}" if seen.by_paths else seen.device

    def usage(self) -> BlockUsage:
        """Who uses the drive on its server, as lsblk says."""
        return self._seen().usage

    def claim_exclusive(self) -> int | None:
        """None: nothing on this machine can claim a drive of another."""
        return None

    def _seen(self) -> SeenDrive:
        return read_drive(self._executor, self._device, Deadline.after(self._clock, _LOOK_S))
