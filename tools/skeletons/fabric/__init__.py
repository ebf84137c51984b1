"""The example box: its driver, and the box itself, simulated."""

from skeletons.fabric._driver import ExampleFabric
from skeletons.fabric._peer import SimExample

__all__ = ["ExampleFabric", "SimExample"]
