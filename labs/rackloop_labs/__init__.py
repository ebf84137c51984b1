"""Labs: mock, virtual and physical racks."""

from rackloop_labs.bench import Bench as Bench
from rackloop_labs.mock import MockLab as MockLab
from rackloop_labs.open_lab import open_lab as open_lab
from rackloop_labs.open_lab import open_leased as open_leased
from rackloop_labs.ssh_access import ssh_accesses as ssh_accesses
