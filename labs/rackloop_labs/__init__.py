"""The three ways to have a rack: mock, virtual, physical."""

from rackloop_labs.bench import Bench
from rackloop_labs.mock import MockLab
from rackloop_labs.open_lab import only_run_on, open_lab
from rackloop_labs.ssh_access import ssh_accesses

__all__ = ["Bench", "MockLab", "only_run_on", "open_lab", "ssh_accesses"]
