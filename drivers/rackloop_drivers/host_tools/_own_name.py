"""Names of a drive on a server: of its place, and its own."""

from __future__ import annotations

from rackloop.abilities import Executor
from rackloop.abilities.inventory import SeenDrive
from rackloop.clock import Deadline
from rackloop.drive_identifiers import normal_text
from rackloop.errors import LabError
from rackloop_drivers.host_tools._survey import name_of

# The names under by-id that lead to the node now.
_BY_ID = """
node=$(readlink -f "$1")
for name in /dev/disk/by-id/*; do
    [ "$(readlink -f "$name")" = "$node" ] && echo "$name"
done
exit 0
"""
_UNIQUE = ("wwn-0x", "nvme-eui.", "nvme-nguid.", "nvme-uuid.")


def place_of(seen: SeenDrive) -> str:
    """The by-path name of a drive, which leads to whatever is there later, else its node."""
    return f"/dev/disk/by-path/{seen.by_paths[0]}" if seen.by_paths else seen.device


def own_name(executor: Executor, seen: SeenDrive, deadline: Deadline) -> str:
    """The name under ``/dev/disk/by-id`` that leads to a drive that was seen while it is there, and to no other.

    Raises LabError where no name does.
    """
    place, identity = place_of(seen), seen.identity
    listed = executor.run(["sh", "-c", _BY_ID, "names", place], deadline).stdout.splitlines()
    known = set(identity.identifiers.values())
    serial = normal_text(identity.serial).replace(" ", "_")
    of_this = [name for name in listed if any(name.endswith(f"/{kind}{one}") for kind in _UNIQUE for one in known)]
    of_this += [name for name in listed if serial and name.endswith((f"_{serial}", f"-{serial}"))]
    if not of_this:
        raise LabError(
            f"{name_of(executor)}:{place}: no name under /dev/disk/by-id has the serial {identity.serial} or another "
            "identifier of the drive, so that it cannot be told from the others; is udev running there?"
        )
    return of_this[0]
