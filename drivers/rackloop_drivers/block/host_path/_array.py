"""An md array of a server as a block device, which is served to this machine as a drive is."""

from __future__ import annotations

from rackloop.abilities import BlockUsage, DriveIdentity, Executor
from rackloop.clock import Clock
from rackloop_drivers.block.host_path._serving import Serving
from rackloop_drivers.host_tools import name_of


class ArrayDevice:
    """A BlockDevice: the array with this UUID behind ``node``, where ``executor`` runs commands.

    The kernel of the server tells whether it is that one, by ``md/uuid``, whenever it is served, which begins within
    ``within_s``. Nothing claims it: the drives beneath are held.
    """

    def __init__(
        self, executor: Executor, clock: Clock, node: str, uuid: str, size_bytes: int, *, within_s: float
    ) -> None:
        self._executor = executor
        self._clock = clock
        self._node = node
        self._within_s = within_s
        self._identity = DriveIdentity("md array", uuid, "", "md", size_bytes)

    @property
    def location(self) -> str:
        """The server and the node."""
        return f"{name_of(self._executor)}:{self._node}"

    @property
    def size_bytes(self) -> int:
        """The size of the array."""
        return self._identity.size_bytes

    def fio_options(self) -> dict[str, str]:
        """Options for fio's libaio engine, beside the page cache."""
        return {"ioengine": "libaio", "direct": "1", "filename": self._node}

    def probe_target(self) -> str:
        """Its node."""
        return self._node

    def usage(self) -> BlockUsage:
        """No users: rackprobe looks for them when it serves the array."""
        return BlockUsage()

    def claim_exclusive(self) -> None:
        """Claim nothing."""

    def serve(self, *, writes: bool) -> Serving:
        """Have rackprobe serve it to this machine; raises as :class:`~rackloop_drivers.block.HostPath` does."""
        return Serving(
            self._executor,
            self._clock,
            self.location,
            self._node,
            self._identity,
            writes=writes,
            within_s=self._within_s,
        )
