"""The hardware in a lab description: switch, servers, drives, expanders and power distribution units."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field, model_validator

from rackloop.drive_identifiers import IDENTIFIERS
from rackloop.lab._driver import Driven, registered_drivers
from rackloop.lab._profiles import Profile, ProfileName, Timing, load_profile
from rackloop.lab._secret_reference import SecretReference
from rackloop.lab.yaml import (
    Description,
    Eui64,
    File,
    Flag,
    Name,
    Nguid,
    Outlet,
    ServerPort,
    Size,
    Text,
    User,
    Wwn,
    matching,
    one_of,
    whole,
)

_PORT = "(?:6553[0-5]|655[0-2][0-9]|65[0-4][0-9]{2}|6[0-4][0-9]{3}|[1-5][0-9]{4}|[1-9][0-9]{0,3})"
_IPV6 = "(?=.*::|(?:[^:]*:){7})[0-9A-Fa-f:.]+(?:%[A-Za-z0-9._-]+)?"
_NAME = r"(?!-)(?:[A-Za-z0-9_-]{1,63}\.){0,126}[A-Za-z0-9_-]{1,63}\.?"
_HOST_OR_PORT = rf"{_IPV6}|(?:{_NAME}|\[{_IPV6}\])(?::{_PORT})?"
_SshEndpoint = Annotated[str, matching(_HOST_OR_PORT, "a host such as srv1.lab.example or 'host:22'")]
# Written with its folder it is the same name.
_ByPath = Annotated[Text, AfterValidator(lambda name: name.removeprefix("/dev/disk/by-path/"))]


class Stack(StrEnum):
    """The time a server's HBA, kernel and driver take for a new drive: 200, 90, 10 and 1 ms until it is online."""

    VANILLA = "vanilla"
    NO_TIMEOUTS = "no_timeouts"
    WARM_PORT = "warm_port"
    COMRESET = "comreset"


class Fabric(Driven):
    """The equipment that joins server ports to drives: a circuit switch, or fixed cabling."""

    kind: ClassVar[str] = "fabric"
    is_fixed: ClassVar[bool] = False
    """True where nothing in it can be switched, as with cables."""

    ports: Annotated[int, whole(2, 4096)] = 0
    """The number of the switch's ports, which are numbered from 1."""
    outlet: Outlet | None = None
    """The PDU outlet that feeds the switch, such as pdu1/8."""


class Phy(Driven):
    """The equipment that takes the signal from ports."""

    kind: ClassVar[str] = "phy"


class _ShortForm(Driven):
    """A box that may be described by the name of its driver alone."""

    @classmethod
    def chosen(cls, written: object) -> type[Description]:
        """The model of the driver that ``written`` names, alone or in a mapping."""
        return super().chosen({"driver": written} if isinstance(written, str) else written)

    @model_validator(mode="before")
    @classmethod
    def _from_driver_alone(cls, data: Any) -> Any:
        return {"driver": data} if isinstance(data, str) else data


class Bmc(_ShortForm):
    """A server's baseboard management controller."""

    kind: ClassVar[str] = "bmc"


class SerialConsole(_ShortForm):
    """A server's serial console."""

    kind: ClassVar[str] = "console"
    by_bmc: ClassVar[frozenset[str]] = frozenset()
    """The drivers of bmc: one of which it is reached with, if it is the controller's."""


def _or_driver_alone(kind: str) -> Callable[[dict[str, Any]], None]:
    return lambda schema: schema["anyOf"].append({"enum": [*registered_drivers().get(kind, ())]})


class Place(Description):
    """The place of a box."""

    room: Text | None = None
    """The room or hall."""
    rack: Text | None = None
    """The rack, as people call it."""
    unit: Annotated[int, whole(1, 100)] | None = None
    """The lowest rack unit that it takes, counted from the floor."""

    def __str__(self) -> str:
        named = (self.room, self.rack, None if self.unit is None else f"U{self.unit}")
        return " ".join(name for name in named if name is not None)


class Server(Description):
    """A server and its HBA ports."""

    place: Place | None = None
    """Its place, such as {room: lab 2, rack: R7, unit: 12}."""
    asset: Text | None = None
    """Its asset tag, as on the label."""
    tags: tuple[Name, ...] = ()
    """Words of your own to choose it by, such as [nvme8]: --servers tag:nvme8 takes a server that has it."""

    stack: Annotated[Stack, one_of(Stack, Stack)] = Stack.VANILLA
    """Hot-plug attach behaviour: vanilla, no_timeouts, warm_port or comreset."""
    ports: Annotated[Mapping[Name, Annotated[int, whole(1, 4096)] | None], Field(min_length=1)]
    """The HBA ports, each with the switch port it is wired to, such as {p0: 1, p1: 2}; {p0, p1} without a switch."""
    paths: Mapping[Name, _ByPath] = {}
    """For each HBA port the beginning of the /dev/disk/by-path names of what is there, as in {p0: pci-0000:10:00.0}."""
    bmc: Annotated[Bmc | None, Field(json_schema_extra=_or_driver_alone("bmc"))] = None
    """The baseboard management controller: a driver's name, or a mapping with its address and account."""
    outlet: Outlet | None = None
    """The PDU outlet that feeds the server, such as pdu1/1."""
    console: Annotated[SerialConsole | None, Field(json_schema_extra=_or_driver_alone("console"))] = None
    """The serial console: a driver's name, such as ipmi, or a mapping with where it is."""
    ssh: _SshEndpoint | None = None
    """The address of the server's SSH, 'host' or 'host:port'; a simulated lab makes its own."""
    known_hosts: File | None = None
    """The known_hosts file with the server's SSH key, relative to this file."""
    user: User = "root"
    """The account to log in to; one other than root must be allowed `sudo -n`, by which its commands run as root."""
    password: SecretReference | None = None
    """The place of the account's password, if it has one."""
    key_file: File | None = None
    """The private SSH key to log in with, relative to this file; by default the agent's keys."""
    jump: Name | None = None
    """The jump host that the server is reached from, if it is not reached directly."""
    clock: _SshEndpoint | None = None
    """The address of the server's TCP port 6170, where its clock is read in less time than by SSH."""


class JumpHost(Description):
    """A machine that servers are reached from by SSH."""

    ssh: _SshEndpoint
    """The address of the jump host's SSH, 'host' or 'host:port'."""
    known_hosts: File
    """The known_hosts file with the jump host's SSH key, relative to this file."""
    user: User = "root"
    """The account to log in to on the jump host."""
    password: SecretReference | None = None
    """The place of the password of the account on the jump host, if it has one."""
    key_file: File | None = None
    """The private SSH key to log in to the jump host with, relative to this file; by default the agent's keys."""


class Drive(Description):
    """A drive: what it is, who it is, and where it is plugged in."""

    profile: ProfileName
    """The kind of drive: a profile by name, such as sata-ssd, or a profile file of your own."""
    model: Text = Field(default_factory=lambda data: load_profile(data["profile"]).model)
    """The model as the drive reports it; the profile's in a simulated lab."""
    asset: Text | None = None
    """Its asset tag, as on the label or its carrier."""
    firmware: Text = Field(default_factory=lambda data: load_profile(data["profile"]).firmware)
    """The firmware revision as the drive reports it; the profile's in a simulated lab."""
    serial: Text
    """The serial number as the drive reports it."""
    wwn: Wwn | None = None
    """The World Wide Name: 16 hexadecimal digits, 32 for NAA 6."""
    eui64: Eui64 | None = None
    """The EUI-64 of an NVMe namespace: 16 hexadecimal digits."""
    nguid: Nguid | None = None
    """The NGUID of an NVMe namespace: 32 hexadecimal digits."""
    by_path: _ByPath | None = None
    """The name under /dev/disk/by-path."""
    slot: Text | None = None
    """The slot it sits in: a number in its expander, else the enclosure's or PCIe slot's name."""
    size: Size
    """The size, such as 8 GiB or 1.92 TB."""
    timing: Timing = "model"
    """The timing of a simulated drive: the profile's model, ideal (no time), or {rpm: 5400} and the like."""
    port: Annotated[int, whole(1, 4096)] | None = None
    """The switch port it is wired to."""
    expander: Name | None = None
    """The SAS expander it sits in; needs slot."""
    attached: ServerPort | None = None
    """The server port it is attached to in a rack without a switch, such as srv1/p0."""
    scratch: Flag
    """True if no byte on it is worth keeping, so that tests may erase it; false and it is never written."""

    @property
    def traits(self) -> Profile:
        """The traits of all drives of its profile."""
        return load_profile(self.profile)

    @property
    def simulated_timing(self) -> Mapping[str, Any]:
        """The timing model of a simulated drive, as rackd takes it.

        Raises BadInput for parameters that its profile does not have.
        """
        if self.timing == "ideal":
            return {"kind": "ideal"}
        return self.traits.with_parameters({} if isinstance(self.timing, str) else self.timing).timing

    @property
    def identifiers(self) -> dict[str, str]:
        """The identifiers given besides the serial, with the keys of ``abilities.DriveIdentity.identifiers``."""
        return {name: value for name in IDENTIFIERS if (value := getattr(self, name)) is not None}

    @property
    def expander_slot(self) -> int | None:
        """The number of its slot in its expander, None where it is not in one."""
        return int(self.slot) if self.expander is not None and self.slot is not None else None


class Expander(Description):
    """A SAS expander with drives in its slots."""

    port: Annotated[int, whole(1, 4096)] | None = None
    """The switch port its uplink is wired to."""
    attached: ServerPort | None = None
    """The server port its uplink is attached to in a rack without a switch, such as srv1/p0."""
    slots: Annotated[int, whole(1, 256)]
    """The number of its slots, which are numbered from 0."""


class Pdu(Driven):
    """A power distribution unit."""

    kind: ClassVar[str] = "pdu"

    outlets: Annotated[int, whole(1, 256)]
    """The number of its outlets, which are numbered from 1."""
    place: Place | None = None
    """Its place, such as {rack: R7, unit: 42}."""
    asset: Text | None = None
    """Its asset tag, as on the label."""
