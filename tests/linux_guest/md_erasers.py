"""What makes drives of a guest's array fail, and what has their images hold other bytes behind its back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from rackloop.clock import Clock
from rackloop.errors import NotSupported
from rackloop_models.under_test import MdSystem
from rackloop_oracles.recovery import Place
from tests.linux_guest.md_guest import MdGuest

# Slow enough that the oracle looks in while it goes on: there are some MiB.
_REBUILT_KIB_PER_S = 4096
_REBUILD_S = 60.0


class DriveEraser:
    """Has drives of the array fail as mdadm does it, and nothing rebuilt: neither by the spares there are."""

    whole_drives = True

    def __init__(self, guest: MdGuest) -> None:
        self._guest = guest

    def erase(self, places: Sequence[Place]) -> None:
        """Fail the drives that have these places."""
        self._guest.freeze()
        self._guest.fail(dict.fromkeys(place.drive for place in places))

    def corrupt(self, places: Sequence[Place]) -> None:
        """Raises NotSupported: what is wrong silently is wrong sector by sector."""
        raise NotSupported(f"a drive is not wrong as a whole: {places[0].drive}")

    def mend(self) -> None:
        """Give all drives back, and have the array rebuilt as fast as it can be."""
        self._guest.give_back()
        self._guest.thaw()


class ImageEraser:
    """Has places of drives hold other bytes: in their images, outside of the guest."""

    whole_drives = False

    def __init__(self, images: Mapping[str, Path]) -> None:
        self._images = images
        self._corrupted: list[tuple[Place, bytes]] = []

    def erase(self, places: Sequence[Place]) -> None:
        """Raises NotSupported: an image can always be read."""
        raise NotSupported(f"an image can always be read: {places[0].drive}")

    def corrupt(self, places: Sequence[Place]) -> None:
        """Have other bytes there."""
        for place in places:
            with self._images[place.drive].open("r+b") as image:
                image.seek(place.offset)
                right = image.read(place.length)
                image.seek(place.offset)
                image.write(bytes(byte ^ 1 for byte in right))
            self._corrupted.append((place, right))

    def mend(self) -> None:
        """Put the right bytes back."""
        for place, right in reversed(self._corrupted):
            with self._images[place.drive].open("r+b") as image:
                image.seek(place.offset)
                image.write(right)
        self._corrupted.clear()


def thawed_system(guest: MdGuest, clock: Clock, *, size_bytes: int) -> MdSystem:
    """The array as the oracle asks it: a repair lets the kernel rebuild, by the spares there are, and not too fast."""
    return MdSystem(
        guest,
        guest.array,
        clock,
        rebuild_s=_REBUILD_S,
        rebuild_kib_per_s=_REBUILT_KIB_PER_S,
        size_bytes=size_bytes,
    )
