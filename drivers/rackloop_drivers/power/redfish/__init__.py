"""Redfish: servers' controllers and PDUs, the drivers for them, and both boxes simulated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rackloop.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from rackloop_drivers.power.redfish._certificate import serve_tls as serve_tls
    from rackloop_drivers.power.redfish._console import RedfishConsole as RedfishConsole
    from rackloop_drivers.power.redfish._console_peer import SshConsolePeer as SshConsolePeer
    from rackloop_drivers.power.redfish._driver import RedfishEventLog as RedfishEventLog
    from rackloop_drivers.power.redfish._driver import RedfishInterrupt as RedfishInterrupt
    from rackloop_drivers.power.redfish._driver import RedfishOutlet as RedfishOutlet
    from rackloop_drivers.power.redfish._driver import RedfishPowerPort as RedfishPowerPort
    from rackloop_drivers.power.redfish._peer import RedfishBmc as RedfishBmc
    from rackloop_drivers.power.redfish._peer import RedfishPdu as RedfishPdu
    from rackloop_drivers.power.redfish._registered import RedfishBmcDriver as RedfishBmcDriver
    from rackloop_drivers.power.redfish._registered import RedfishConsoleDriver as RedfishConsoleDriver
    from rackloop_drivers.power.redfish._registered import RedfishPduDriver as RedfishPduDriver
    from rackloop_drivers.power.redfish._service import RedfishService as RedfishService

__getattr__ = lazy_getattr(__name__)
