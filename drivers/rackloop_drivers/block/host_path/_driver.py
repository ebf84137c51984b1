"""A drive of a server as I/O on that server reaches it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

from rackloop.abilities import BlockUsage, DriveIdentity, Executor
from rackloop.abilities.inventory import SeenDrive
from rackloop.clock import Clock, Deadline
from rackloop.errors import LabError
from rackloop_drivers.block.host_path._holder import Holder
from rackloop_drivers.block.host_path._serving import Serving
from rackloop_drivers.host_tools import NoDriveThere, identify_drive, name_of, place_of

_BY_PATH = "/dev/disk/by-path/"
_TAKES_S = 30.0


class HostPath:
    """A BlockDevice behind a node of the server where ``executor`` runs commands, asked each time it is used.

    ``device`` is as :class:`~rackloop_drivers.drive.HostDrive` takes it, and ``location`` says it in the same words.
    With ``only`` it is that drive alone: it can be used once it is claimed, and then goes by a name that vanishes with
    the drive. A question to the server may take ``within_s``. Raises LabError where no drive is there, ToolError and
    UnknownFormat as the tools do.
    """

    def __init__(
        self,
        executor: Executor,
        device: str,
        clock: Clock,
        *,
        only: DriveIdentity | None = None,
        within_s: float = _TAKES_S,
    ) -> None:
        self._executor = executor
        self._device = device
        self._clock = clock
        self._only = only
        self._within_s = within_s
        self._name: str | None = None
        self._last: SeenDrive | None = None

    @property
    def location(self) -> str:
        """The server and the node, as given."""
        return f"{name_of(self._executor)}:{self._device}"

    @property
    def size_bytes(self) -> int:
        """The size of the drive."""
        return (self._only or self._seen().identity).size_bytes

    def drive_bytes(self) -> int:
        """The size of the drive, which is that of its node."""
        return self.size_bytes

    def identifiers(self) -> Mapping[str, str]:
        """The identifiers that the tools of the server read of the drive behind the node."""
        identity = self._seen().identity
        return {"serial": identity.serial, **identity.identifiers}

    def bound_to(self, identity: DriveIdentity) -> Self:
        """A path to that drive alone, to be claimed before it is used."""
        bound = type(self)(self._executor, self._device, self._clock, only=identity, within_s=self._within_s)
        bound._last = self._last  # noqa: SLF001 - a HostPath too
        return bound

    def fio_options(self) -> dict[str, str]:
        """Options for fio's libaio engine, beside the page cache; fio takes a bare colon for a list of files.

        Raises LabError where no drive is there: fio would make a file of that name.
        """
        name = self.probe_target() if self._only is not None else place_of(self._seen())
        return {"ioengine": "libaio", "direct": "1", "filename": name.replace(":", "\\:")}

    def probe_target(self) -> str:
        """The by-path name of what is there now, which leads to whatever is there later; else its node.

        Of a port without a drive it is the beginning of the names that drives there have: rackprobe looks for one
        whenever it opens it. Of one drive alone it is a name under ``/dev/disk/by-id``, which leads to no other. Raises
        LabError where that one is not claimed.
        """
        if self._only is not None:
            if self._name is None:
                raise LabError(f"{self.location}: drive {self._only.serial} is not claimed; ask the guard")
            return self._name
        try:
            return place_of(self._seen())
        except NoDriveThere:
            return self.port_target()

    def port_target(self) -> str:
        """The name by which rackprobe finds whichever drive is at the port whenever it looks, of whatever kind.

        Where the path is that of one drive's node, it is this.
        """
        return self._device if self._device.startswith("/") else f"{_BY_PATH}{self._device}"

    def usage(self) -> BlockUsage:
        """The users of the drive on its server, as lsblk says."""
        return self._seen().usage

    def seen(self, deadline: Deadline) -> SeenDrive:
        """The drive there, with its size and its users, by one survey."""
        self._last = identify_drive(self._executor, self._device, deadline)
        return self._last

    def claim_exclusive(self) -> Holder | None:
        """Have rackprobe hold the drive on its server, until the claim is closed; it is checked there once more."""
        # Should another drive be there by now, the holder finds it out.
        seen = self._last or self._seen()
        identity = self._only or seen.identity
        holder = Holder(self._executor, self._clock, place_of(seen), identity, within_s=self._within_s)
        self._name = holder.name
        return holder

    def serve(self, *, writes: bool) -> Serving:
        """Have rackprobe serve the drive that is there to this machine, with ``writes`` to be written while it is held.

        Raises as :class:`Serving` does, and LabError where the drive to be served alone is not claimed.
        """
        if self._only is not None:
            identity, node = self._only, self.probe_target()
        else:
            seen = self._seen()
            identity, node = seen.identity, place_of(seen)
        return Serving(
            self._executor, self._clock, self.location, node, identity, writes=writes, within_s=self._within_s
        )

    def _seen(self) -> SeenDrive:
        return self.seen(Deadline.after(self._clock, self._within_s))
