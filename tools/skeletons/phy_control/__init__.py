"""The example box: its driver, and the box itself, simulated."""

from skeletons.phy_control._driver import ExamplePhyControl as ExamplePhyControl
from skeletons.phy_control._peer import SimExample as SimExample
from skeletons.phy_control._registered import ExamplePhyDriver as ExamplePhyDriver
