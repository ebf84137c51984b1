"""The drives of a virtual rack as rackd breaks and switches them: no real drive can be told so."""

from __future__ import annotations

from pathlib import Path

from rackloop.abilities import Breakable, FaultRegister, PowerPort
from rackloop.clock import Clock
from rackloop.lab import Lab, Part
from rackloop_drivers.breakable import RackdBreakable
from rackloop_drivers.power import RackdPowerPort
from rackloop_drivers.rackd import RackdControl
from rackloop_labs.mock_faults.registers import RackdRegister


class RackdDrives:
    """The faults and the power of the drives of ``lab``, by the ``control`` socket of the rackd that keeps them."""

    def __init__(self, lab: Lab, control: Path, clock: Clock) -> None:
        self._rackd = RackdControl(control, clock)
        names = {str(Part.drive(name)): name for name in lab.drives}
        self.breakable: dict[str, Breakable] = {part: RackdBreakable(self._rackd, name) for part, name in names.items()}
        self.power: dict[str, PowerPort] = {part: RackdPowerPort(self._rackd, part) for part in names}
        self.registers: tuple[FaultRegister, ...] = (RackdRegister(self._rackd, self.breakable),)

    def close(self) -> None:
        """Close the connection."""
        self._rackd.close()
