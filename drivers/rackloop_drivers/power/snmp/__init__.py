"""PDUs that are switched by SNMP, of APC and CyberPower: the drivers for them, and the boxes simulated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rackloop.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from rackloop_drivers.power.snmp._agent import SnmpAgent as SnmpAgent
    from rackloop_drivers.power.snmp._codec import APC as APC
    from rackloop_drivers.power.snmp._codec import CYBERPOWER as CYBERPOWER
    from rackloop_drivers.power.snmp._codec import OutletMib as OutletMib
    from rackloop_drivers.power.snmp._driver import ApcOutlet as ApcOutlet
    from rackloop_drivers.power.snmp._driver import CyberPowerOutlet as CyberPowerOutlet
    from rackloop_drivers.power.snmp._peer import SnmpPdu as SnmpPdu
    from rackloop_drivers.power.snmp._registered import ApcPduDriver as ApcPduDriver
    from rackloop_drivers.power.snmp._registered import CyberPowerPduDriver as CyberPowerPduDriver

__getattr__ = lazy_getattr(__name__)
