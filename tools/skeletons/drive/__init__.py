"""The example box: its driver, and the box itself, simulated."""

from skeletons.drive._driver import ExampleDrive as ExampleDrive
from skeletons.drive._peer import SimExample as SimExample
