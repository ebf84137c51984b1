"""Redfish: servers' controllers and PDUs, the drivers for them, and both boxes simulated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rackloop.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from rackloop_drivers.power.redfish._certificate import serve_tls
    from rackloop_drivers.power.redfish._driver import RedfishEventLog, RedfishOutlet, RedfishPowerPort
    from rackloop_drivers.power.redfish._peer import RedfishBmc, RedfishPdu
    from rackloop_drivers.power.redfish._service import RedfishService

__all__ = [
    "RedfishBmc",
    "RedfishEventLog",
    "RedfishOutlet",
    "RedfishPdu",
    "RedfishPowerPort",
    "RedfishService",
    "serve_tls",
]

__getattr__ = lazy_getattr(__name__)
