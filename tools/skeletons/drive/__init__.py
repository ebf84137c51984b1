"""The example box: its driver, and the box itself, simulated."""

from skeletons.drive._driver import ExampleDrive
from skeletons.drive._peer import SimExample

__all__ = ["ExampleDrive", "SimExample"]
