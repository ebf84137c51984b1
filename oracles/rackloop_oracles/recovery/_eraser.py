"""The interface that makes units of stripes unreadable or wrong on purpose, and mends them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from rackloop_oracles.recovery._system import Place, Stripe


class Eraser(Protocol):
    """Damages places beneath the system. ``mend`` undoes it, and the oracle always calls it.

    ``erase``: reading any of these bytes fails aloud, until they are written again or ``mend``. ``corrupt``: reading
    them brings other bytes and no error, until then. Both add to what is damaged already. After ``mend`` they read as
    they were last written. Where ``whole_drives``, all of a drive is damaged that has one of the places. What it
    cannot do it refuses with NotSupported.
    """

    @property
    def whole_drives(self) -> bool: ...
    def erase(self, places: Sequence[Place]) -> None: ...
    def corrupt(self, places: Sequence[Place]) -> None: ...
    def mend(self) -> None: ...


def positions_hit(eraser: Eraser, stripe: Stripe, places: Collection[Place]) -> frozenset[int]:
    """The positions of a stripe that are damaged when the eraser is given these places."""
    if eraser.whole_drives:
        drives = {place.drive for place in places}
        return frozenset(number for number, unit in enumerate(stripe.units) if unit.drive in drives)
    return frozenset(number for number, unit in enumerate(stripe.units) if unit in places)
