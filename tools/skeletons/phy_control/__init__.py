"""The example box: its driver, and the box itself, simulated."""

from skeletons.phy_control._driver import ExamplePhyControl
from skeletons.phy_control._peer import SimExample

__all__ = ["ExamplePhyControl", "SimExample"]
