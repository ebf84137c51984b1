"""Controllers that speak IPMI, as lab descriptions name them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any, ClassVar
from urllib.parse import urlsplit

from rackloop.abilities import Console
from rackloop.errors import BadInput
from rackloop.lab.yaml import Text, whole
from rackloop_drivers.boxes import (
    BmcDriver,
    ConsoleDriver,
    ConsoleOpening,
    Controller,
    Opening,
    OverNetwork,
    SimulatedController,
)
from rackloop_drivers.endpoint import host_and_port

if TYPE_CHECKING:
    from rackloop_drivers.boxes import Chassis, SimulatedPlace


_CipherSuite = Annotated[int, whole(0, 17)]
_NO_CERTIFICATE = (
    "IPMI has no certificates: leave it out; cipher_suite: says how its sessions are protected, and driver: redfish "
    "verifies certificates"
)


class IpmiBmcDriver(OverNetwork, BmcDriver):
    """A management controller that speaks IPMI."""

    is_simulated: ClassVar[bool] = True
    schemes: ClassVar[frozenset[str]] = frozenset()
    login_takes: ClassVar[frozenset[str]] = frozenset({"user", "password"})
    instead: ClassVar[Mapping[str, str]] = dict.fromkeys(("ca_file", "verify"), _NO_CERTIFICATE)

    cipher_suite: _CipherSuite = 17
    """The cipher suite to log in with: 17 is SHA-256 with AES-128, 3 is SHA-1 with AES-128."""

    def own_address(self) -> tuple[str, str] | None:
        """The address: a controller has one server."""
        return self._at(623)

    def open(self, opening: Opening) -> Controller:  # noqa: ARG002 - a driver's signature
        """The controller."""
        from rackloop_drivers.power.ipmi._driver import IpmiEventLog, IpmiInterrupt, IpmiPowerPort
        from rackloop_drivers.power.ipmi._tool import Ipmitool

        ipmitool = Ipmitool(str(self.address), self.login(), cipher_suite=self.cipher_suite)
        return Controller(IpmiPowerPort(ipmitool), IpmiEventLog(ipmitool), IpmiInterrupt(ipmitool))

    @asynccontextmanager
    async def simulated(
        self, chassis: Chassis, place: SimulatedPlace
    ) -> AsyncIterator[tuple[SimulatedController, Mapping[str, Any]]]:
        """The controller, by RMCP+."""
        from rackloop_drivers.power.ipmi._peer import IpmiBmc

        account, password_file = place.account()
        async with IpmiBmc(chassis, account) as bmc:
            yield bmc, {"address": bmc.address, "user": account.user, "password_file": str(password_file)}


class IpmiConsoleDriver(ConsoleDriver):
    """The console of a controller's server by Serial over LAN, with the account of the bmc."""

    is_simulated: ClassVar[bool] = True
    by_bmc: ClassVar[frozenset[str]] = frozenset({"ipmi", "redfish"})

    address: Text | None = None
    """The address of the controller's IPMI, 'host' or 'host:port'; by default the host of the bmc."""
    cipher_suite: _CipherSuite | None = None
    """The cipher suite to log in with; by default that of the bmc, or 17."""

    def open(self, opening: ConsoleOpening) -> Console:
        """The console."""
        from rackloop_drivers.power.ipmi._console import IpmiConsole
        from rackloop_drivers.power.ipmi._tool import Ipmitool

        bmc = opening.bmc
        if not isinstance(bmc, OverNetwork):
            raise BadInput("the console is that of a bmc with an address and an account; give bmc: in the description")
        # The port of another service is not that of its IPMI.
        where = self.address or (str(bmc.address) if isinstance(bmc, IpmiBmcDriver) else _host_of(str(bmc.address)))
        usual = bmc.cipher_suite if isinstance(bmc, IpmiBmcDriver) else 17
        suite = usual if self.cipher_suite is None else self.cipher_suite
        return IpmiConsole(Ipmitool(where, bmc.login(), cipher_suite=suite), opening.clock)

    @asynccontextmanager
    async def simulated(
        self, chassis: Chassis, place: SimulatedPlace, bmc: SimulatedController | None
    ) -> AsyncIterator[Mapping[str, Any]]:
        """The controller's own, or, where it speaks Redfish, another with the same account."""
        from rackloop_drivers.power.ipmi._peer import IpmiBmc

        if isinstance(bmc, IpmiBmc):
            yield {}
            return
        account = getattr(bmc, "account", None) or place.account()[0]
        async with IpmiBmc(chassis, account) as other:
            yield {"address": other.address}

    def lacking(self) -> Iterator[tuple[str, str]]:
        """Nothing but an address that leads somewhere, where one is given."""
        if self.address is not None:
            try:
                host_and_port(self.address, 0)
            except BadInput as error:
                yield "address", str(error)


def _host_of(address: str) -> str:
    """The host of an address, with a port or without, or of a URL. Raises BadInput where it is none."""
    return urlsplit(address).hostname or address if "://" in address else host_and_port(address, 0)[0]
