"""The example box: its driver, and the box itself, simulated."""

from skeletons.executor._driver import ExampleExecutor as ExampleExecutor
from skeletons.executor._peer import SimExample as SimExample
