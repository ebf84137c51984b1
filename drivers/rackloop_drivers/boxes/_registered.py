"""Bases of the drivers that lab descriptions name, registered in the entry-point group ``rackloop.drivers``.

A driver is a model of its keys in the description that knows how its box is opened, and how it is simulated, if it is.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, runtime_checkable

from pydantic import ConfigDict, PrivateAttr

from rackloop.abilities import Console, Host, PhyControl, PortState, PowerPort, SystemEventLog
from rackloop.abilities import Fabric as FabricAbility
from rackloop.clock import Clock, Deadline
from rackloop.errors import BadInput, NotSupported
from rackloop.lab import Bmc, Fabric, Lab, LabState, Pdu, Phy, Secret, SecretReference, SerialConsole
from rackloop.lab.yaml import Description, File, Flag, Text
from rackloop.portmap import PortMap
from rackloop_drivers.boxes._login import Login
from rackloop_drivers.endpoint import host_and_port

if TYPE_CHECKING:
    import asyncio

    from rackloop_drivers.boxes._simulated import Chassis, Outlets
    from rackloop_drivers.boxes._simulated_place import SimulatedPlace
    from rackloop_drivers.remembered import Remembered
    from rackloop_drivers.stream_console import Stream

_ONLY_ITS_KEYS = ConfigDict(extra="forbid")


@dataclass(frozen=True)
class Opening:
    """The resources that every driver is opened with; ``closing`` takes the calls to make in the end."""

    clock: Clock
    closing: ExitStack


@dataclass(frozen=True)
class FabricOpening(Opening):
    """The resources that a fabric is opened with.

    ``token`` is the fencing token to lock a switch with. ``on_exchange`` is told of each line that went over a wire,
    for the evidence of a run. ``cabling`` joins what the baseline joins, and ``signals`` says of its ends whether they
    have a signal, where servers can tell.
    """

    deadline: Deadline
    token: int | None = None
    on_exchange: Callable[[Any], None] | None = None
    cabling: PortMap = field(default_factory=PortMap)
    signals: Callable[..., dict[int, PortState]] | None = None


@dataclass(frozen=True)
class PhyOpening(Opening):
    """The resources that a PHY driver is opened with: a lab whose ports all have numbers, and its servers.

    ``paths`` has the server, and the beginning of the names under /dev/disk/by-path, of each port that may be a SAS
    HBA's, by number.
    """

    lab: Lab
    hosts: Mapping[str, Host]
    paths: Mapping[int, tuple[str, str]]


@runtime_checkable
class SignalReporter(Protocol):
    """A PhyControl that tells whether ports have a signal, which fixed cables cannot tell of themselves."""

    def port_states(self, ports: Collection[int], deadline: Deadline) -> dict[int, PortState]: ...


class Shell(Protocol):
    """Opens a shell by SSH, with an account's password, where the host key is one of ``known_hosts``."""

    def __call__(
        self, host: str, port: int, user: str, password: Secret | None, known_hosts: Path, deadline: Deadline
    ) -> Stream: ...


@dataclass(frozen=True)
class ConsoleOpening(Opening):
    """The setting of a serial console: the server's controller, where it answers, if it has one, and SSH.

    ``remembered`` is for what a controller says of its console, which is the same from run to run.
    """

    bmc: BmcDriver | None
    shell: Shell
    remembered: Remembered


class OpenedFabric(NamedTuple):
    """A fabric that is open; ``phy`` takes the signal from its ports, if it can."""

    fabric: FabricAbility
    phy: PhyControl | None = None


@runtime_checkable
class DiagnosticInterrupt(Protocol):
    """A server's controller that can pulse an NMI. It returns once the controller has; what the kernel does is its own.

    A server without power raises LabError, and a deadline that is over DeadlineExceeded; nothing is pulsed then.
    ``require_possible`` raises the same, and NotSupported where the controller says that it has none; it pulses none.
    """

    def require_possible(self, deadline: Deadline) -> None: ...
    def interrupt(self, deadline: Deadline) -> None: ...


class Controller(NamedTuple):
    """A server's management controller that is open."""

    power: PowerPort
    event_log: SystemEventLog | None = None
    interrupt: DiagnosticInterrupt | None = None


class SimulatedController(Protocol):
    """A simulated management controller: its network cable can be pulled."""

    @property
    def is_pulled(self) -> bool: ...
    async def pull_cable(self, *, out: bool) -> None: ...


class SimulatedSwitch(Protocol):
    """The process that simulates a switch in front of rackd; ``open`` says where it answers."""

    process: asyncio.subprocess.Process

    async def open(self, rackd: Path) -> Mapping[str, Any]: ...
    async def mishear(self, key: str, rule: dict[str, Any]) -> None: ...
    async def hear(self, key: str) -> None: ...
    async def stop(self) -> None: ...


class FabricDriver(Fabric):
    """A driver of switches, or of cables; registered as ``fabric.NAME``."""

    model_config = _ONLY_ITS_KEYS

    @abstractmethod
    def open(self, opening: FabricOpening) -> OpenedFabric:
        """The fabric. Raises LabError where it does not answer."""

    async def simulated(self, state: LabState) -> SimulatedSwitch:
        """Start the process that is the switch of a mock lab."""
        raise NotSupported(f"{self.driver} simulates no switch; {state.directory.name} needs one")


class PhyDriver(Phy):
    """A driver of what takes the signal from ports; registered as ``phy.NAME``."""

    model_config = _ONLY_ITS_KEYS

    @abstractmethod
    def open(self, opening: PhyOpening) -> PhyControl | None:
        """The PHY control, by port number; None where no port has one."""

    def simulated(self, place: SimulatedPlace) -> AbstractAsyncContextManager[Mapping[str, Any]]:
        """The box of a mock lab while the context lasts; what it gives replaces keys of the description."""
        raise NotSupported(f"{self.driver} simulates nothing at {place.name}")


class PduDriver(Pdu):
    """A driver of power distribution units; registered as ``pdu.NAME``."""

    model_config = _ONLY_ITS_KEYS

    @abstractmethod
    def open(self, opening: Opening) -> Callable[[int], PowerPort]:
        """A function from the number of an outlet to its power port. It asks nothing of the unit."""

    def simulated(self, outlets: Outlets, place: SimulatedPlace) -> AbstractAsyncContextManager[Mapping[str, Any]]:
        """The unit of a mock lab while the context lasts, switching ``outlets``; what it gives replaces keys."""
        raise NotSupported(f"{self.driver} simulates no unit; {outlets.name} of {place.name} is not there")


class BmcDriver(Bmc):
    """A driver of management controllers; registered as ``bmc.NAME``."""

    model_config = _ONLY_ITS_KEYS

    @abstractmethod
    def open(self, opening: Opening) -> Controller:
        """The controller. Nothing is asked of it before it is used."""

    def simulated(
        self, chassis: Chassis, place: SimulatedPlace
    ) -> AbstractAsyncContextManager[tuple[SimulatedController, Mapping[str, Any]]]:
        """The controller of a mock server while the context lasts; the mapping replaces keys of the description."""
        raise NotSupported(
            f"{self.driver} simulates no controller; that of {chassis.server} at {place.name} is missing"
        )


class ConsoleDriver(SerialConsole):
    """A driver of serial consoles; registered as ``console.NAME``."""

    model_config = _ONLY_ITS_KEYS

    @abstractmethod
    def open(self, opening: ConsoleOpening) -> Console:
        """The console. Nothing is asked of it before it is opened itself."""

    def simulated(
        self, chassis: Chassis, place: SimulatedPlace, bmc: SimulatedController | None
    ) -> AbstractAsyncContextManager[Mapping[str, Any]]:
        """Serve the serial line of a mock server while the context lasts; what it gives replaces keys.

        ``bmc`` is the server's simulated controller, which may be what serves it.
        """
        raise NotSupported(f"{self.driver} simulates no console of {chassis.server} at {place.name}, with {bmc} or not")


class OverNetwork(Description):
    """The keys of a box that is reached over the network, with an account; for drivers to derive from besides."""

    address: Text | None = None
    """Its host name or IP address, or its URL; a simulated box makes its own."""
    user: Text | None = None
    """The account on it."""
    password: SecretReference | None = None
    """The place of the account's password, or, without an account, of the community."""

    schemes: ClassVar[frozenset[str] | None] = None
    """The schemes of URLs that may be its address; None for all."""
    login_takes: ClassVar[frozenset[str]] = frozenset()
    """The keys among ``user`` and ``password`` without which nothing can log in to it."""

    _login: Login | None = PrivateAttr(default=None)

    def login(self) -> Login:
        """The account, which all that talks to the box shares."""
        if self._login is None:
            self._login = Login(str(self.address), self.user, self.password)
        return self._login

    def lacking(self) -> Iterator[tuple[str, str]]:
        """The address, and what to log in with."""
        if "user" in self.login_takes and self.user is None:
            yield "user", "is missing: the account, without which nothing can log in"
        if "password" in self.login_takes and self.password is None:
            yield "password", "is missing: where it is kept, such as {env: NAME}; nothing can log in without it"
        if self.address is None:
            yield "address", "is missing: its host name, or its URL where it speaks HTTPS"
            return
        try:
            self._endpoint()
        except BadInput as error:
            yield "address", str(error)

    def _endpoint(self) -> tuple[str, int]:
        """The host and the port of its address; port 0 where none is given. Raises BadInput where it is no address."""
        address = str(self.address)
        if "@" in address:  # never quote it: messages end up in logs
            raise BadInput("an account must not stand in an address; give user: and password: instead")
        scheme, is_url, rest = address.partition("://")
        if is_url and self.schemes is not None and scheme.lower() not in self.schemes:
            urls = "".join(f", or {known}://host" for known in sorted(self.schemes))
            raise BadInput(f"{address!r} is no address that this driver speaks to; give 'host' or 'host:port'{urls}")
        return host_and_port(rest.partition("/")[0] if is_url else address, 0)

    def _at(self, default_port: int) -> tuple[str, str] | None:
        """The ``own_address`` of a box that shares its address with no other; None where that is no address."""
        try:
            host, port = self._endpoint()
        except BadInput:
            return None
        return "address", f"{host.lower()}:{port or default_port}"


class OverTls(OverNetwork):
    """The keys of a box that is reached by HTTPS."""

    ca_file: File | None = None
    """The certificate of the authority that signed its own, relative to this file."""
    verify: Flag = True
    """True where its certificate is verified; false takes any, and with it any impostor."""

    def lacking(self) -> Iterator[tuple[str, str]]:
        """The keys that every box lacks, and an authority by which nothing is verified."""
        yield from super().lacking()
        if self.ca_file is not None and not self.verify:
            yield "ca_file", "verifies nothing: verify: false takes any certificate; delete one of the two"
