"""Controllers that speak IPMI, as lab descriptions name them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from rackloop.lab.yaml import whole
from rackloop_drivers.boxes import BmcDriver, Controller, Opening, OverNetwork, SimulatedController

if TYPE_CHECKING:
    from rackloop_drivers.boxes import Chassis, SimulatedPlace


class IpmiBmcDriver(OverNetwork, BmcDriver):
    """A management controller that speaks IPMI."""

    is_simulated: ClassVar[bool] = True

    cipher_suite: Annotated[int, whole(0, 17)] = 17
    """The cipher suite to log in with: 17 is SHA-256 with AES-128, 3 is SHA-1 with AES-128."""

    def open(self, opening: Opening) -> Controller:  # noqa: ARG002 - a driver's signature
        """The controller."""
        from rackloop_drivers.power.ipmi._driver import IpmiEventLog, IpmiPowerPort
        from rackloop_drivers.power.ipmi._tool import Ipmitool

        ipmitool = Ipmitool(str(self.address), self.login(), cipher_suite=self.cipher_suite)
        return Controller(IpmiPowerPort(ipmitool), IpmiEventLog(ipmitool))

    @asynccontextmanager
    async def simulated(
        self, chassis: Chassis, place: SimulatedPlace
    ) -> AsyncIterator[tuple[SimulatedController, Mapping[str, Any]]]:
        """The controller, by RMCP+."""
        from rackloop_drivers.power.ipmi._peer import IpmiBmc

        account, password_file = place.account()
        async with IpmiBmc(chassis, account) as bmc:
            yield bmc, {"address": bmc.address, "user": account.user, "password_file": str(password_file)}
