"""A drive of a server that is written while others of the same lease hold it."""

from __future__ import annotations

from rackloop.clock import Deadline
from rackloop.drive_identifiers import normal_text
from rackloop.errors import LabError
from rackloop_drivers.block.host_path._driver import HostPath, place_of

# The names under by-id that lead to the node now.
_BY_ID = """
node=$(readlink -f "$1")
for name in /dev/disk/by-id/*; do
    [ "$(readlink -f "$name")" = "$node" ] && echo "$name"
done
exit 0
"""
_UNIQUE = ("wwn-0x", "nvme-eui.", "nvme-nguid.", "nvme-uuid.")


class SharedPath(HostPath):
    """A HostPath that nothing claims, for a fault of a drive that a test of the same lease writes meanwhile.

    Bound to one drive it goes by a name under ``/dev/disk/by-id`` that leads to no other, as a claimed one does; each
    session still compares the drive with its identity, and writes none that the server's kernel uses.
    """

    def claim_exclusive(self) -> None:
        """Claim nothing. Raises LabError where no name leads to the drive alone."""
        seen = self._last or self._seen()
        identity = self._only or seen.identity
        argv = ["sh", "-c", _BY_ID, "names", place_of(seen)]
        listed = self._executor.run(argv, Deadline.after(self._clock, self._within_s)).stdout.splitlines()
        known = set(identity.identifiers.values())
        serial = normal_text(identity.serial).replace(" ", "_")
        of_this = [name for name in listed if any(name.endswith(f"/{kind}{one}") for kind in _UNIQUE for one in known)]
        of_this += [name for name in listed if serial and name.endswith((f"_{serial}", f"-{serial}"))]
        if not of_this:
            raise LabError(
                f"{self.location}: no name under /dev/disk/by-id has the serial {identity.serial} or another "
                "identifier of the drive, so that it cannot be told from the others; is udev running there?"
            )
        self._name = of_this[0]
