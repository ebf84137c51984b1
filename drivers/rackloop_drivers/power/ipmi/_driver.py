"""Power and event log of a server through its IPMI controller."""

from __future__ import annotations

from datetime import datetime

from rackloop.abilities import SystemEvent
from rackloop.clock import Deadline
from rackloop.errors import DeadlineExceeded, LabError
from rackloop_drivers.power.ipmi import _codec as codec
from rackloop_drivers.power.ipmi._tool import Ipmitool

_POLL_S = 0.2


class IpmiPowerPort:
    """The PowerPort of the server a controller belongs to. Off is hard: the chassis control Power down."""

    def __init__(self, ipmitool: Ipmitool) -> None:
        self._ipmitool = ipmitool

    def turn_on(self, deadline: Deadline) -> None:
        """Turn the server on; the controller says that it is on when this returns."""
        self._turn("on", deadline, on=True)

    def turn_off(self, deadline: Deadline) -> None:
        """Cut the server's power; the controller says that it is off when this returns."""
        self._turn("off", deadline, on=False)

    def is_on(self, deadline: Deadline) -> bool:
        """Whether the chassis has power."""
        return codec.power_state(self._ipmitool.run("chassis", "power", "status", deadline=deadline))

    def _turn(self, act: str, deadline: Deadline, *, on: bool) -> None:
        # Many controllers refuse to turn off what is off.
        if self.is_on(deadline) == on:
            return
        self._ipmitool.run("chassis", "power", act, deadline=deadline)
        if not deadline.poll(lambda: self.is_on(deadline) == on, every_s=_POLL_S):
            raise DeadlineExceeded(f"{self._ipmitool.address} was told power {act} and is not; look at the server")


class IpmiInterrupt:
    """The DiagnosticInterrupt of the server a controller belongs to: the chassis control of that name."""

    def __init__(self, ipmitool: Ipmitool) -> None:
        self._ipmitool = ipmitool

    def require_possible(self, deadline: Deadline) -> None:
        """Return where the server has power; whether it takes an NMI, ipmitool cannot ask."""
        if not codec.power_state(self._ipmitool.run("chassis", "power", "status", deadline=deadline)):
            raise LabError(f"{self._ipmitool.address} has no power, and takes no NMI; turn it on first")

    def interrupt(self, deadline: Deadline) -> None:
        """Pulse an NMI; raises as :meth:`require_possible` does."""
        self.require_possible(deadline)
        self._ipmitool.run("chassis", "power", "diag", deadline=deadline)


class IpmiEventLog:
    """The SystemEventLog of a controller (SEL). Times are of its own clock, to the second, read as UTC."""

    def __init__(self, ipmitool: Ipmitool) -> None:
        self._ipmitool = ipmitool

    def events(self, deadline: Deadline) -> list[SystemEvent]:
        """Every entry, oldest first."""
        return codec.log_events(self._ipmitool.table("sel", "list", deadline=deadline))

    def now(self, deadline: Deadline) -> datetime:
        """The log's clock."""
        return codec.log_time(self._ipmitool.run("sel", "time", "get", deadline=deadline))
