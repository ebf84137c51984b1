"""The example box: its driver, and the box itself, simulated."""

from skeletons.fabric._driver import ExampleFabric as ExampleFabric
from skeletons.fabric._peer import SimExample as SimExample
from skeletons.fabric._registered import ExampleFabricDriver as ExampleFabricDriver
