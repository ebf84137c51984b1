"""Parts of drivers for several kinds of box: what they register, accounts, and what simulated boxes switch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rackloop.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from rackloop_drivers.boxes._listening import stop_listening as stop_listening
    from rackloop_drivers.boxes._login import Account as Account
    from rackloop_drivers.boxes._login import Login as Login
    from rackloop_drivers.boxes._registered import BmcDriver as BmcDriver
    from rackloop_drivers.boxes._registered import ConsoleDriver as ConsoleDriver
    from rackloop_drivers.boxes._registered import ConsoleOpening as ConsoleOpening
    from rackloop_drivers.boxes._registered import Controller as Controller
    from rackloop_drivers.boxes._registered import DiagnosticInterrupt as DiagnosticInterrupt
    from rackloop_drivers.boxes._registered import FabricDriver as FabricDriver
    from rackloop_drivers.boxes._registered import FabricOpening as FabricOpening
    from rackloop_drivers.boxes._registered import OpenedFabric as OpenedFabric
    from rackloop_drivers.boxes._registered import Opening as Opening
    from rackloop_drivers.boxes._registered import OverNetwork as OverNetwork
    from rackloop_drivers.boxes._registered import OverTls as OverTls
    from rackloop_drivers.boxes._registered import PduDriver as PduDriver
    from rackloop_drivers.boxes._registered import PhyDriver as PhyDriver
    from rackloop_drivers.boxes._registered import PhyOpening as PhyOpening
    from rackloop_drivers.boxes._registered import Shell as Shell
    from rackloop_drivers.boxes._registered import SignalReporter as SignalReporter
    from rackloop_drivers.boxes._registered import SimulatedController as SimulatedController
    from rackloop_drivers.boxes._registered import SimulatedSwitch as SimulatedSwitch
    from rackloop_drivers.boxes._serial_line import SerialLine as SerialLine
    from rackloop_drivers.boxes._simulated import Chassis as Chassis
    from rackloop_drivers.boxes._simulated import EventKind as EventKind
    from rackloop_drivers.boxes._simulated import LoggedEvent as LoggedEvent
    from rackloop_drivers.boxes._simulated import MemorySwitching as MemorySwitching
    from rackloop_drivers.boxes._simulated import Outlets as Outlets
    from rackloop_drivers.boxes._simulated import PowerListener as PowerListener
    from rackloop_drivers.boxes._simulated import PowerSwitching as PowerSwitching
    from rackloop_drivers.boxes._simulated_place import SimulatedPlace as SimulatedPlace

__getattr__ = lazy_getattr(__name__)
