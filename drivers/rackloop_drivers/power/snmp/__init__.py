"""PDUs that are switched by SNMP, of APC and CyberPower: the drivers for them, and the boxes simulated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rackloop.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from rackloop_drivers.power.snmp._agent import SnmpAgent
    from rackloop_drivers.power.snmp._codec import APC, CYBERPOWER, OutletMib
    from rackloop_drivers.power.snmp._driver import ApcOutlet, CyberPowerOutlet
    from rackloop_drivers.power.snmp._peer import SnmpPdu

__all__ = ["APC", "CYBERPOWER", "ApcOutlet", "CyberPowerOutlet", "OutletMib", "SnmpAgent", "SnmpPdu"]

__getattr__ = lazy_getattr(__name__)
