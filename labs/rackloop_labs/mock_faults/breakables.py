"""The breakable parts of a mock rack that labd keeps, and all of them together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rackloop.abilities import Breakable
from rackloop.clock import Deadline
from rackloop.errors import NotSupported
from rackloop.lab import Lab, Part, PartKind
from rackloop_drivers.breakable import RackdBreakable
from rackloop_drivers.rackd import RackdControl
from rackloop_labs.labd_control import LabdControl

KINDS = {
    PartKind.BMC: frozenset({"unreachable"}),
    PartKind.CABLING: frozenset({"miswire"}),
    PartKind.CONTROL: frozenset({"garbled", "lost"}),
    PartKind.NETWORK: frozenset({"partition"}),
    PartKind.SWITCH_PORT: frozenset({"slow_training", "stuck"}),
    PartKind.SERVER: frozenset({"crash", "hang", "nmi"}),
}
"""The ways each kind of part that labd keeps can be broken in."""


class LabdBreakable:
    """A part of a mock rack that labd breaks and mends, called ``resource`` there.

    What was broken by another way than this is in ``standing`` under a name that begins with ``#``, and can be mended
    by it.
    """

    def __init__(self, control: LabdControl, resource: str) -> None:
        self._control = control
        self._resource = resource
        self.kinds = KINDS[Part.of(resource).kind]

    def break_as(self, key: str, fault: Mapping[str, Any], deadline: Deadline) -> None:
        """Break it under ``key``; it is broken when this returns.

        Raises NotSupported for another kind, BadInput for parameters that make no sense.
        """
        if fault.get("kind") not in self.kinds:
            ways = ", ".join(sorted(self.kinds))
            raise NotSupported(f"{self._resource} cannot be broken as {fault.get('kind')!r}, only as {ways}")
        self._control.break_as(self._resource, key, fault, deadline)

    def mend(self, key: str, deadline: Deadline) -> None:
        """Mend what stands under ``key``, if anything does."""
        self._control.mend(self._resource, key, deadline)

    def standing(self, deadline: Deadline) -> dict[str, Mapping[str, Any]]:
        """The standing faults, by key."""
        return self._control.standing(self._resource, deadline)


def mock_breakables(lab: Lab, rackd: RackdControl, labd: LabdControl) -> dict[str, Breakable]:
    """Everything of a mock rack that can be broken, by the names that faults and the undo journal use."""
    parts: dict[str, Breakable] = {str(Part.drive(name)): RackdBreakable(rackd, name) for name in lab.drives}
    kept: list[Part] = []
    if lab.has_switch:
        kept += [Part(PartKind.CONTROL), Part(PartKind.CABLING)]
        kept += map(Part.switch_port, range(1, lab.fabric.ports + 1))
    kept += [Part(kind, name) for kind in (PartKind.SERVER, PartKind.NETWORK) for name in lab.servers]
    kept += [Part(PartKind.BMC, name) for name, server in lab.servers.items() if server.bmc is not None]
    return parts | {name: LabdBreakable(labd, name) for name in map(str, kept)}
