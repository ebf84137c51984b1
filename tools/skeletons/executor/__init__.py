"""The example box: its driver, and the box itself, simulated."""

from skeletons.executor._driver import ExampleExecutor
from skeletons.executor._peer import SimExample

__all__ = ["ExampleExecutor", "SimExample"]
