"""The messages to the switch: one frozen dataclass for each command and query of its protocol."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from rackloop.abilities import BoxIdentity, PortState
from rackloop.portmap import PortMap
from rackloop_drivers.fabric.flexfabric.dialect.scpi_errors import QueuedError

T = TypeVar("T")


@dataclass(frozen=True)
class Request:
    """Anything a controller may send; its fields are the parameters, in order."""


@dataclass(frozen=True)
class Query(Request, Generic[T]):
    """A request that is answered with a ``T``."""


@dataclass(frozen=True)
class Acting(Request):
    """A command that changes the switch: refused while another controller holds the control lock."""


class Identify(Query[BoxIdentity]):
    """``*IDN?``: vendor, model, serial number, firmware."""


class Reset(Acting):
    """``*RST``: unmap everything at once."""


class ClearStatus(Request):
    """``*CLS``: empty the error queue and the event status register."""


class EventStatus(Query[int]):
    """``*ESR?``: the event status register, cleared by reading."""


@dataclass(frozen=True)
class SetEventEnable(Request):
    """``*ESE``: which events set the summary bit in the status byte."""

    mask: int


class EventEnable(Query[int]):
    """``*ESE?``."""


@dataclass(frozen=True)
class SetServiceEnable(Request):
    """``*SRE``: which status bits request service."""

    mask: int


class ServiceEnable(Query[int]):
    """``*SRE?``."""


class StatusByte(Query[int]):
    """``*STB?``: the status byte with the master summary in bit 6."""


class NoteCompletion(Request):
    """``*OPC``: set the operation-complete event once everything before it is done."""


class AwaitCompletion(Query[int]):
    """``*OPC?``: answers 1 once everything before it is done."""


class Wait(Request):
    """``*WAI``: go on once everything before it is done."""


class SelfTest(Query[int]):
    """``*TST?``: 0 when the switch finds nothing wrong with itself."""


class NextError(Query[QueuedError]):
    """``SYSTem:ERRor?``: take the oldest error out of the queue."""


class ErrorCount(Query[int]):
    """``SYSTem:ERRor:COUNt?``."""


class Version(Query[str]):
    """``SYSTem:VERSion?``: the SCPI version the switch follows."""


class PortCount(Query[int]):
    """``SYSTem:PORTs?``."""


@dataclass(frozen=True)
class RequestLock(Request):
    """``SYSTem:LOCK:REQuest``: take, or present again, the control lock."""

    token: int


@dataclass(frozen=True)
class ReleaseLock(Request):
    """``SYSTem:LOCK:RELease``."""

    token: int


class LockHolder(Query[int]):
    """``SYSTem:LOCK?``: the token that holds the lock, 0 when it is free."""


class HighestToken(Query[int]):
    """``SYSTem:LOCK:HIGHest?``: the highest token ever granted, 0 before the first; a lower one is refused."""


@dataclass(frozen=True)
class LoadPartial(Request):
    """``ROUTe:LOAD``: stage pairs to be joined, everything else left alone."""

    pairs: PortMap


@dataclass(frozen=True)
class LoadFull(Request):
    """``ROUTe:LOAD:FULL``: stage a whole map."""

    pairs: PortMap


class StagedMap(Query[PortMap]):
    """``ROUTe:LOAD?``: what is staged on this connection; empty when nothing is."""


class StagedCrc(Query[int]):
    """``ROUTe:LOAD:CRC?``: CRC-32 of the staged map's canonical pair list."""


class ClearStaged(Request):
    """``ROUTe:LOAD:CLEar``."""


@dataclass(frozen=True)
class Trigger(Acting):
    """``TRIGger``: execute what is staged; with a generation, only while it is the current one."""

    generation: int | None = None


class Generation(Query[int]):
    """``ROUTe:GENeration?``: how often the live map has changed."""


@dataclass(frozen=True)
class LivePairs(Query[PortMap]):
    """``ROUTe:MAP?``: the live map, or what of it touches these ports."""

    ports: tuple[int, ...] | None = None


@dataclass(frozen=True)
class States(Query[tuple[PortState, ...]]):
    """``ROUTe:STATe?``: one state for each port asked for, in that order."""

    ports: tuple[int, ...]


@dataclass(frozen=True)
class OpenPorts(Acting):
    """``ROUTe:OPEN``: unmap these ports at once."""

    ports: tuple[int, ...]
    generation: int | None = None


@dataclass(frozen=True)
class OpenAll(Acting):
    """``ROUTe:OPEN:ALL``: unmap every port at once."""

    generation: int | None = None


@dataclass(frozen=True)
class DropPhy(Acting):
    """``PHY:DROP``: take the signal away from these ports for a time."""

    ports: tuple[int, ...]
    down_ms: float
    request_id: int | None = None


@dataclass(frozen=True)
class FlapPhy(Acting):
    """``PHY:FLAP``: take the signal away again and again."""

    ports: tuple[int, ...]
    down_ms: float
    up_ms: float
    count: int
    request_id: int | None = None


@dataclass(frozen=True)
class DropCounts(Query[tuple[int, ...]]):
    """``PHY:COUNt?``: drops seen on each port asked for, in that order."""

    ports: tuple[int, ...]


class SaveMap(Acting):
    """``CONFiguration:SAVE``: keep the live map as the power-on map."""


class BootMap(Query[PortMap]):
    """``CONFiguration:BOOT?``: the power-on map."""
