"""The storage switch (``docs/reference/storageswitch.md``), run where tenants' I/O is made."""

from rackloop_drivers.storage_switch._configuration import SwitchedTenant as SwitchedTenant
from rackloop_drivers.storage_switch._switch import StorageSwitch as StorageSwitch
