"""The units of APC and CyberPower as lab descriptions name them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, ClassVar

from rackloop.abilities import PowerPort
from rackloop_drivers.boxes import Opening, OverNetwork, PduDriver

if TYPE_CHECKING:
    from rackloop_drivers.boxes import Outlets, SimulatedPlace
    from rackloop_drivers.power.snmp._agent import SnmpAgent
    from rackloop_drivers.power.snmp._codec import OutletMib


_NO_CERTIFICATE = (
    "SNMP with a community has no certificates: leave it out, and keep the unit on a network of its own; "
    "driver: redfish verifies certificates"
)


class _SnmpPduDriver(OverNetwork, PduDriver):
    is_simulated: ClassVar[bool] = True
    schemes: ClassVar[frozenset[str]] = frozenset()
    # Without an account it is the community.
    login_takes: ClassVar[frozenset[str]] = frozenset({"password"})
    instead: ClassVar[Mapping[str, str]] = dict.fromkeys(("ca_file", "verify"), _NO_CERTIFICATE)

    def own_address(self) -> tuple[str, str] | None:
        """The address: an agent has one unit."""
        return self._at(161)

    @abstractmethod
    def _dialect(self) -> tuple[Callable[[SnmpAgent, int], PowerPort], OutletMib]:
        """The driver of one outlet, and what the unit's outlets are called."""

    def open(self, opening: Opening) -> Callable[[int], PowerPort]:  # noqa: ARG002 - a driver's signature
        """A function from the number of an outlet to its power port."""
        from rackloop_drivers.power.snmp._agent import SnmpAgent

        agent = SnmpAgent(str(self.address), self.login())
        outlet, _ = self._dialect()
        return lambda number: outlet(agent, number)

    @asynccontextmanager
    async def simulated(self, outlets: Outlets, place: SimulatedPlace) -> AsyncIterator[Mapping[str, Any]]:
        """The unit's agent, by community."""
        from rackloop_drivers.power.snmp._peer import SnmpPdu

        account, password_file = place.account()
        _, mib = self._dialect()
        async with SnmpPdu(outlets, mib, account.password) as agent:
            yield {"address": agent.address, "user": None, "password_file": str(password_file)}


class ApcPduDriver(_SnmpPduDriver):
    """A unit of APC, by SNMP."""

    def _dialect(self) -> tuple[Callable[[SnmpAgent, int], PowerPort], OutletMib]:
        from rackloop_drivers.power.snmp import APC, ApcOutlet

        return ApcOutlet, APC


class CyberPowerPduDriver(_SnmpPduDriver):
    """A unit of CyberPower, by SNMP."""

    def _dialect(self) -> tuple[Callable[[SnmpAgent, int], PowerPort], OutletMib]:
        from rackloop_drivers.power.snmp import CYBERPOWER, CyberPowerOutlet

        return CyberPowerOutlet, CYBERPOWER
