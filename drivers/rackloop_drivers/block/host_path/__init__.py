"""A drive of a server, by its node there, and what holds it for one user."""

from rackloop_drivers.block.host_path._array import ArrayDevice as ArrayDevice
from rackloop_drivers.block.host_path._driver import HostPath as HostPath
from rackloop_drivers.block.host_path._serving import Serving as Serving
from rackloop_drivers.block.host_path._shared import SharedPath as SharedPath
