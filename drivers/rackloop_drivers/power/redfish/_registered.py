"""Controllers and units that speak Redfish, as lab descriptions name them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, ClassVar

from rackloop.abilities import PowerPort
from rackloop_drivers.boxes import BmcDriver, Controller, Opening, OverTls, PduDriver, SimulatedController

if TYPE_CHECKING:
    from rackloop_drivers.boxes import Chassis, Outlets, SimulatedPlace
    from rackloop_drivers.power.redfish._service import RedfishService

_SECURE = "https://"


class _OverRedfish(OverTls):
    is_simulated: ClassVar[bool] = True

    def service(self, opening: Opening) -> RedfishService:
        """The service, logged out of in the end."""
        from rackloop_drivers.power.redfish._service import RedfishService

        address = str(self.address)
        url = address if "://" in address else _SECURE + address
        service = RedfishService(url, self.login(), verify=self.verify and (self.ca_file or True))
        opening.closing.callback(service.close)
        return service


class RedfishBmcDriver(_OverRedfish, BmcDriver):
    """A management controller that speaks Redfish."""

    def open(self, opening: Opening) -> Controller:
        """The controller."""
        from rackloop_drivers.power.redfish._driver import RedfishEventLog, RedfishPowerPort

        service = self.service(opening)
        return Controller(RedfishPowerPort(service), RedfishEventLog(service))

    @asynccontextmanager
    async def simulated(
        self, chassis: Chassis, place: SimulatedPlace
    ) -> AsyncIterator[tuple[SimulatedController, Mapping[str, Any]]]:
        """The controller, by HTTPS."""
        from rackloop_drivers.power.redfish._peer import RedfishBmc

        account, password_file = place.account()
        async with RedfishBmc(chassis, account, place.tls) as bmc:
            where = {"address": bmc.url, "user": account.user, "password_file": str(password_file)}
            yield bmc, where | {"ca_file": str(place.ca_file)}


class RedfishPduDriver(_OverRedfish, PduDriver):
    """A unit that speaks Redfish."""

    def open(self, opening: Opening) -> Callable[[int], PowerPort]:
        """A function from the number of an outlet to its power port."""
        from rackloop_drivers.power.redfish._driver import RedfishOutlet

        service = self.service(opening)
        return lambda number: RedfishOutlet(service, number)

    @asynccontextmanager
    async def simulated(self, outlets: Outlets, place: SimulatedPlace) -> AsyncIterator[Mapping[str, Any]]:
        """The unit, by HTTPS."""
        from rackloop_drivers.power.redfish._peer import RedfishPdu

        account, password_file = place.account()
        async with RedfishPdu(outlets, account, place.tls) as pdu:
            where = {"address": pdu.url, "user": account.user, "password_file": str(password_file)}
            yield where | {"ca_file": str(place.ca_file)}
