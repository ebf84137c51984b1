"""IPMI: servers' controllers by `ipmitool`, and the controller simulated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rackloop.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from rackloop_drivers.power.ipmi._console import IpmiConsole as IpmiConsole
    from rackloop_drivers.power.ipmi._driver import IpmiEventLog as IpmiEventLog
    from rackloop_drivers.power.ipmi._driver import IpmiInterrupt as IpmiInterrupt
    from rackloop_drivers.power.ipmi._driver import IpmiPowerPort as IpmiPowerPort
    from rackloop_drivers.power.ipmi._peer import IpmiBmc as IpmiBmc
    from rackloop_drivers.power.ipmi._registered import IpmiBmcDriver as IpmiBmcDriver
    from rackloop_drivers.power.ipmi._registered import IpmiConsoleDriver as IpmiConsoleDriver
    from rackloop_drivers.power.ipmi._tool import Ipmitool as Ipmitool

__getattr__ = lazy_getattr(__name__)
