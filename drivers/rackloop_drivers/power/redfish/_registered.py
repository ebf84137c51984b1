"""Controllers and units that speak Redfish, as lab descriptions name them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from rackloop.abilities import Console, PowerPort
from rackloop.clock import Deadline
from rackloop.errors import BadInput, NotSupported
from rackloop.lab.yaml import File, Text
from rackloop_drivers.boxes import (
    BmcDriver,
    ConsoleDriver,
    ConsoleOpening,
    Controller,
    Opening,
    OverTls,
    PduDriver,
    SimulatedController,
)
from rackloop_drivers.endpoint import is_ipv6

if TYPE_CHECKING:
    from rackloop_drivers.boxes import Chassis, Outlets, SimulatedPlace
    from rackloop_drivers.power.redfish._service import RedfishService
    from rackloop_drivers.stream_console import Stream

_SECURE = "https://"


class _OverRedfish(OverTls):
    is_simulated: ClassVar[bool] = True
    # What is logged in to in the clear shows its password.
    schemes: ClassVar[frozenset[str]] = frozenset({"https"})
    login_takes: ClassVar[frozenset[str]] = frozenset({"user", "password"})
    instead: ClassVar[Mapping[str, str]] = {
        "cipher_suite": "Redfish speaks HTTPS, which agrees on ciphers by itself: leave it out (driver: ipmi has it)"
    }

    def service(self, opening: Opening) -> RedfishService:
        """The service, logged out of in the end."""
        from rackloop_drivers.power.redfish._service import RedfishService

        address = str(self.address)
        url = address if "://" in address else _SECURE + (f"[{address}]" if is_ipv6(address) else address)
        service = RedfishService(url, self.login(), verify=self.verify and (self.ca_file or True))
        opening.closing.callback(service.close)
        return service


class RedfishBmcDriver(_OverRedfish, BmcDriver):
    """A management controller that speaks Redfish."""

    def own_address(self) -> tuple[str, str] | None:
        """The address: a controller of several servers is refused."""
        return self._at(443)

    def open(self, opening: Opening) -> Controller:
        """The controller."""
        from rackloop_drivers.power.redfish._driver import RedfishEventLog, RedfishInterrupt, RedfishPowerPort

        service = self.service(opening)
        return Controller(RedfishPowerPort(service), RedfishEventLog(service), RedfishInterrupt(service))

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

    unit: Text | None = None
    """The one meant of several units behind the address, by the last part of its path, such as 2."""

    def own_address(self) -> tuple[str, str] | None:
        """The address, and the unit where it is one of several there."""
        own = self._at(443)
        return own if own is None or self.unit is None else (own[0], f"unit {self.unit} of {own[1]}")

    def open(self, opening: Opening) -> Callable[[int], PowerPort]:
        """A function from the number of an outlet to its power port."""
        from rackloop_drivers.power.redfish._driver import RedfishOutlet

        service = self.service(opening)
        return lambda number: RedfishOutlet(service, number, self.unit)

    @asynccontextmanager
    async def simulated(self, outlets: Outlets, place: SimulatedPlace) -> AsyncIterator[Mapping[str, Any]]:
        """The unit, by HTTPS."""
        from rackloop_drivers.power.redfish._peer import RedfishPdu

        account, password_file = place.account()
        async with RedfishPdu(outlets, account, place.tls) as pdu:
            where = {"address": pdu.url, "user": account.user, "password_file": str(password_file)}
            # A simulated service has one unit, whichever the description means.
            only = {} if self.unit is None else {"unit": pdu.unit}
            yield where | {"ca_file": str(place.ca_file)} | only


class RedfishConsoleDriver(ConsoleDriver):
    """The console that a controller shows by SSH, where its Redfish service says, with the account of the bmc."""

    is_simulated: ClassVar[bool] = True
    by_bmc: ClassVar[frozenset[str]] = frozenset({"redfish"})

    known_hosts: File | None = None
    """The known_hosts file with the SSH key of the controller, relative to this file."""

    def open(self, opening: ConsoleOpening) -> Console:
        """The console."""
        from rackloop_drivers.power.redfish._console import RedfishConsole

        bmc = opening.bmc
        if not isinstance(bmc, RedfishBmcDriver) or self.known_hosts is None:
            raise BadInput("the console is that of a bmc that speaks Redfish; give bmc: and known_hosts:")
        known_hosts = self.known_hosts

        def shell(host: str, port: int, deadline: Deadline) -> Stream:
            login = bmc.login()
            # Where Redfish refused the account this raises: another failure may lock it.
            login.password()
            return opening.shell(host, port, login.user, bmc.password, known_hosts, deadline)

        return RedfishConsole(bmc.service(opening), shell, opening.clock, opening.remembered)

    @asynccontextmanager
    async def simulated(
        self,
        chassis: Chassis,
        place: SimulatedPlace,
        bmc: SimulatedController | None,
    ) -> AsyncIterator[Mapping[str, Any]]:
        """The controller's own."""
        from rackloop_drivers.power.redfish._peer import RedfishBmc

        if not isinstance(bmc, RedfishBmc) or bmc.console is None:
            raise NotSupported(f"{chassis.server} has no controller that speaks Redfish, and so no such console")
        known_hosts = place.folder / f"{place.name}.known_hosts"
        known_hosts.write_text(bmc.console.known_hosts_line)
        yield {"known_hosts": str(known_hosts)}

    def at(self, endpoint: Mapping[str, Any]) -> Self:
        """The console where its simulation answers."""
        return self.model_copy(update={"known_hosts": Path(endpoint["known_hosts"])})

    def lacking(self) -> Iterator[tuple[str, str]]:
        """The host key."""
        if self.known_hosts is None:
            yield "known_hosts", "is missing: the file with the SSH key of the controller"
