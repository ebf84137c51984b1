"""Power of the outlets of PDUs by SNMP."""

from __future__ import annotations

from typing import ClassVar

from rackloop.clock import Deadline
from rackloop.errors import DeadlineExceeded, ProtocolError
from rackloop_drivers.power.snmp._agent import SnmpAgent
from rackloop_drivers.power.snmp._codec import APC, CYBERPOWER, OutletCommand, OutletMib, OutletState, Pending

_POLL_S = 0.1


class _Outlet:
    """The PowerPort that is outlet ``number`` of the PDU behind an agent."""

    _mib: ClassVar[OutletMib]

    def __init__(self, agent: SnmpAgent, number: int) -> None:
        self._agent = agent
        self._number = number

    def turn_on(self, deadline: Deadline) -> None:
        """Close the outlet's relay; the PDU says that it is on, and that nothing is pending, when this returns."""
        self._turn(deadline, on=True)

    def turn_off(self, deadline: Deadline) -> None:
        """Open the outlet's relay; the PDU says that it is off, and that nothing is pending, when this returns."""
        self._turn(deadline, on=False)

    def is_on(self, deadline: Deadline) -> bool:
        """Whether the outlet's relay is closed now, whatever is pending."""
        is_on, _ = self._read(deadline)
        return is_on

    def _turn(self, deadline: Deadline, *, on: bool) -> None:
        # A command that is pending would undo this one later: the new one takes its place.
        if self._read(deadline) != (on, False):
            command = OutletCommand.IMMEDIATE_ON if on else OutletCommand.IMMEDIATE_OFF
            self._agent.set(self._mib.command(self._number), command, deadline)
        if not deadline.poll(lambda: self._read(deadline) == (on, False), every_s=_POLL_S):
            raise DeadlineExceeded(
                f"outlet {self._number} of {self._agent.address} was told to be {'on' if on else 'off'} and is "
                "not; look at the delays that the PDU is set to"
            )

    def _read(self, deadline: Deadline) -> tuple[bool, bool]:
        """Whether the outlet is on, and whether a command is pending for it."""
        oids = self._mib.state(self._number), self._mib.pending(self._number)
        state, pending = self._agent.get(*oids, deadline=deadline)
        try:
            return OutletState(state) is OutletState.ON, Pending(pending) is Pending.YES
        except ValueError:
            raise ProtocolError(
                f"outlet {self._number} of {self._agent.address} has the state {state} and pending {pending}; "
                "expected 1 or 2 of both"
            ) from None


class ApcOutlet(_Outlet):
    """An outlet of an APC switched rack PDU (PowerNet-MIB, rPDUOutlet)."""

    _mib = APC


class CyberPowerOutlet(_Outlet):
    """An outlet of a CyberPower switched PDU (CPS-MIB, ePDUOutlet)."""

    _mib = CYBERPOWER
