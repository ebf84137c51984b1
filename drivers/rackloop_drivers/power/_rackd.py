"""The power of a simulated box, switched through rackd's control socket."""

from __future__ import annotations

from rackloop.clock import Deadline
from rackloop.errors import ProtocolError
from rackloop_drivers.rackd import RackdControl


class RackdPowerPort:
    """A PowerPort of a simulated rack. ``target`` is ``switch``, ``server:NAME`` or ``drive:ID``."""

    def __init__(self, control: RackdControl, target: str) -> None:
        self._control = control
        self.target = target

    def turn_on(self, deadline: Deadline) -> None:
        """Give it power; it is on when this returns."""
        self._control.request("power", deadline, target=self.target, on=True)

    def turn_off(self, deadline: Deadline) -> None:
        """Take its power away; it is off when this returns."""
        self._control.request("power", deadline, target=self.target, on=False)

    def is_on(self, deadline: Deadline) -> bool:
        """Whether it has power."""
        answer = self._control.request("power", deadline, target=self.target)
        if not isinstance(answer.get("on"), bool):
            raise ProtocolError(f"rackd did not say whether {self.target} is on: {answer}")
        return bool(answer["on"])
