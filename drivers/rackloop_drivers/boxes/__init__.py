"""Parts of drivers for several kinds of box: accounts, and the power and the event log of simulated boxes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rackloop.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from rackloop_drivers.boxes._login import Account as Account
    from rackloop_drivers.boxes._login import Login as Login
    from rackloop_drivers.boxes._simulated import Chassis as Chassis
    from rackloop_drivers.boxes._simulated import EventKind as EventKind
    from rackloop_drivers.boxes._simulated import LoggedEvent as LoggedEvent
    from rackloop_drivers.boxes._simulated import MemorySwitching as MemorySwitching
    from rackloop_drivers.boxes._simulated import Outlets as Outlets
    from rackloop_drivers.boxes._simulated import PowerListener as PowerListener
    from rackloop_drivers.boxes._simulated import PowerSwitching as PowerSwitching

__getattr__ = lazy_getattr(__name__)
