"""The three ways to have a rack: mock, virtual, physical."""

from rackloop_labs.bench import Bench
from rackloop_labs.mock import MockLab
from rackloop_labs.open_lab import only_run_on, open_lab

__all__ = ["Bench", "MockLab", "only_run_on", "open_lab"]
