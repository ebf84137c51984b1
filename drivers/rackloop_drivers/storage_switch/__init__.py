"""The storage switch (``docs/reference/storageswitch.md``), run where tenants' I/O is made."""

from rackloop_drivers.storage_switch._configuration import SwitchedTenant as SwitchedTenant
from rackloop_drivers.storage_switch._scheduler import SCHEDULERS as SCHEDULERS
from rackloop_drivers.storage_switch._scheduler import scheduler_of as scheduler_of
from rackloop_drivers.storage_switch._switch import StorageSwitch as StorageSwitch
from rackloop_drivers.storage_switch._switch import require_admitted as require_admitted
