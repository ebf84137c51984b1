"""Fixed cabling as lab descriptions name it."""

from __future__ import annotations

from typing import ClassVar

from rackloop_drivers.boxes import FabricDriver, FabricOpening, OpenedFabric
from rackloop_drivers.fabric.static._driver import StaticFabric


class StaticFabricDriver(FabricDriver):
    """Drives that are attached to servers for good."""

    is_simulated: ClassVar[bool] = True
    is_fixed: ClassVar[bool] = True

    def open(self, opening: FabricOpening) -> OpenedFabric:
        """The cables."""
        return OpenedFabric(StaticFabric(opening.cabling, opening.signals))
