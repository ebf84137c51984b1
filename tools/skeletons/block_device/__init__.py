"""The example box: its driver, and the box itself, simulated."""

from skeletons.block_device._driver import ExampleBlockDevice as ExampleBlockDevice
from skeletons.block_device._peer import SimExample as SimExample
