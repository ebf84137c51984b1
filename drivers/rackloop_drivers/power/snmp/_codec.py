"""The outlets in the MIBs of APC (PowerNet-MIB) and CyberPower (CPS-MIB), and the meanings of their integers.

Both have the same tables, each in its own place.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

Oid = tuple[int, ...]

_ENTERPRISES = (1, 3, 6, 1, 4, 1)


class OutletCommand(IntEnum):
    """A value to write to an outlet's command (OutletControlOutletCommand)."""

    IMMEDIATE_ON = 1
    IMMEDIATE_OFF = 2
    IMMEDIATE_REBOOT = 3
    DELAYED_ON = 4
    DELAYED_OFF = 5
    DELAYED_REBOOT = 6
    CANCEL_PENDING = 7


class OutletState(IntEnum):
    """A state read of an outlet (OutletStatusOutletState)."""

    ON = 1
    OFF = 2


class Pending(IntEnum):
    """A command that waits to be carried out, or none (OutletStatusCommandPending)."""

    YES = 1
    NO = 2


@dataclass(frozen=True)
class OutletMib:
    """One manufacturer's tables: rPDU of APC, ePDU of CyberPower."""

    manufacturer: str
    unit: Oid

    @property
    def model(self) -> Oid:
        """IdentModelNumber."""
        return (*self.unit, 1, 5, 0)

    @property
    def outlet_count(self) -> Oid:
        """IdentDeviceNumOutlets."""
        return (*self.unit, 1, 8, 0)

    def name(self, outlet: int) -> Oid:
        """OutletControlOutletName."""
        return (*self.unit, 3, 3, 1, 1, 2, outlet)

    def command(self, outlet: int) -> Oid:
        """OutletControlOutletCommand; reading it gives the outlet's state."""
        return (*self.unit, 3, 3, 1, 1, 4, outlet)

    def state(self, outlet: int) -> Oid:
        """OutletStatusOutletState."""
        return (*self.unit, 3, 5, 1, 1, 4, outlet)

    def pending(self, outlet: int) -> Oid:
        """OutletStatusCommandPending."""
        return (*self.unit, 3, 5, 1, 1, 5, outlet)


APC = OutletMib("APC", (*_ENTERPRISES, 318, 1, 1, 12))
CYBERPOWER = OutletMib("CyberPower", (*_ENTERPRISES, 3808, 1, 1, 3))
