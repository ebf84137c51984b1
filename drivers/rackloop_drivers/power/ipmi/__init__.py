"""IPMI: servers' controllers by `ipmitool`, and the controller simulated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rackloop.door import opening

if TYPE_CHECKING:
    from rackloop_drivers.power.ipmi._driver import IpmiEventLog, IpmiPowerPort
    from rackloop_drivers.power.ipmi._peer import IpmiBmc
    from rackloop_drivers.power.ipmi._tool import Ipmitool

__all__ = ["IpmiBmc", "IpmiEventLog", "IpmiPowerPort", "Ipmitool"]

__getattr__ = opening(
    __name__,
    {"IpmiBmc": "_peer", "IpmiEventLog": "_driver", "IpmiPowerPort": "_driver", "Ipmitool": "_tool"},
)
