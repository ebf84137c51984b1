"""A rack without a switch: every drive is cabled to its server for good."""

from rackloop_drivers.fabric.static._driver import StaticFabric

__all__ = ["StaticFabric"]
