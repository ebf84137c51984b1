"""A drive of a server that is written while others of the same lease hold it."""

from __future__ import annotations

from dataclasses import replace

from rackloop.clock import Deadline
from rackloop_drivers.block.host_path._driver import HostPath
from rackloop_drivers.host_tools import own_name


class SharedPath(HostPath):
    """A HostPath that nothing claims, for a fault of a drive that a test of the same lease writes meanwhile.

    Bound to one drive it goes by a name under ``/dev/disk/by-id`` that leads to no other, as a claimed one does; each
    session still compares the drive with its identity, and writes none that the server's kernel uses.
    """

    def claim_exclusive(self) -> None:
        """Claim nothing. Raises LabError where no name leads to the drive alone."""
        seen = self._last or self._seen()
        deadline = Deadline.after(self._clock, self._within_s)
        wanted = seen if self._only is None else replace(seen, identity=self._only)
        self._name = own_name(self._executor, wanted, deadline)
