"""Labs: mock, virtual and physical racks."""

from rackloop_labs.bench import Bench
from rackloop_labs.mock import MockLab
from rackloop_labs.open_lab import open_lab, open_leased
from rackloop_labs.ssh_access import ssh_accesses

__all__ = ["Bench", "MockLab", "open_lab", "open_leased", "ssh_accesses"]
