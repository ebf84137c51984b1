"""Fixed cabling of a rack without a switch."""

from rackloop_drivers.fabric.static._driver import StaticFabric as StaticFabric
from rackloop_drivers.fabric.static._registered import StaticFabricDriver as StaticFabricDriver
