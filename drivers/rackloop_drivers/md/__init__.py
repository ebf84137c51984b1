"""Arrays of drives by the kernel of a server (Linux md): made by mdadm, taken apart when the rack is healed."""

from rackloop_drivers.md._host_array import MD_ARRAY as MD_ARRAY
from rackloop_drivers.md._host_array import ArrayThere as ArrayThere
from rackloop_drivers.md._host_array import HostArray as HostArray
from rackloop_drivers.md._host_array import HostArrays as HostArrays
from rackloop_drivers.md._host_array import array_of as array_of
