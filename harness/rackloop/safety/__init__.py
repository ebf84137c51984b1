"""Safety of a rack and its data: the destructive guard, heal, and ending the commands that a dead run left."""

from typing import TYPE_CHECKING

from rackloop.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from rackloop.safety._derived_permits import TenantRegion as TenantRegion
    from rackloop.safety._derived_permits import array_export as array_export
    from rackloop.safety._derived_permits import tenant_exports as tenant_exports
    from rackloop.safety._destructive_guard import NOT_SCRATCH as NOT_SCRATCH
    from rackloop.safety._destructive_guard import Guard as Guard
    from rackloop.safety._destructive_guard import Leased as Leased
    from rackloop.safety._destructive_guard import Located as Located
    from rackloop.safety._destructive_guard import ReportsIdentity as ReportsIdentity
    from rackloop.safety._destructive_guard import place_of as place_of
    from rackloop.safety._heal import HealReport as HealReport
    from rackloop.safety._heal import heal as heal
    from rackloop.safety._orphans import END_ALL as END_ALL
    from rackloop.safety._orphans import END_LABELLED as END_LABELLED
    from rackloop.safety._orphans import end_orphans as end_orphans

__getattr__ = lazy_getattr(__name__)
