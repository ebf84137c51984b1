"""The fault registers of a mock rack: labd, and rackd for the drives."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from rackloop.clock import Deadline
from rackloop.lab import Part, PartKind
from rackloop_drivers.breakable import standing_by_drive
from rackloop_drivers.rackd import RackdControl
from rackloop_labs.labd_control import LabdControl


class LabdRegister:
    """A FaultRegister of those of ``parts`` that labd keeps."""

    def __init__(self, control: LabdControl, parts: Collection[str]) -> None:
        self._control = control
        self.parts = frozenset(part for part in parts if Part.of(part).kind is not PartKind.DRIVE)

    def standing(self, deadline: Deadline) -> dict[str, dict[str, Mapping[str, Any]]]:
        """The standing faults, by part and key."""
        found = self._control.all_standing(deadline)
        return {name: faults for name, faults in found.items() if name in self.parts}


class RackdRegister:
    """A FaultRegister of those of ``parts`` that are drives of a simulated rack."""

    def __init__(self, control: RackdControl, parts: Collection[str]) -> None:
        self._control = control
        self.parts = frozenset(part for part in parts if Part.of(part).kind is PartKind.DRIVE)

    def standing(self, deadline: Deadline) -> dict[str, dict[str, Mapping[str, Any]]]:
        """The standing faults, by part and key."""
        found = {str(Part.drive(drive)): faults for drive, faults in standing_by_drive(self._control, deadline).items()}
        return {name: faults for name, faults in found.items() if name in self.parts}
