"""The example box: its driver, and the box itself, simulated."""

from skeletons.power_port._driver import ExamplePowerPort as ExamplePowerPort
from skeletons.power_port._peer import SimExample as SimExample
from skeletons.power_port._registered import ExamplePduDriver as ExamplePduDriver
