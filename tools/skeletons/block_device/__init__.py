"""The example box: its driver, and the box itself, simulated."""

from skeletons.block_device._driver import ExampleBlockDevice
from skeletons.block_device._peer import SimExample

__all__ = ["ExampleBlockDevice", "SimExample"]
