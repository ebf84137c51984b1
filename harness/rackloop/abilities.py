"""Abilities: what may be asked of equipment, without saying whose equipment it is.

Every call that touches the wire takes a :class:`~rackloop.clock.Deadline` and raises a
:class:`~rackloop.errors.LabError` when the box fails, :class:`~rackloop.errors.NotSupported` when it cannot do it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from types import TracebackType
from typing import Any, NoReturn, Protocol, Self, final, runtime_checkable

from rackloop.clock import Deadline
from rackloop.errors import BadInput, LabError, NotSupported, StaleGeneration
from rackloop.portmap import MapChange, PortMap

_MINT = object()


class PortState(StrEnum):
    """What the switch sees on a port."""

    UP = "UP"
    DOWN = "DOWN"
    TRAIN = "TRAIN"


@dataclass(frozen=True)
class BoxIdentity:
    """Who a piece of equipment says it is (``*IDN?`` and its like)."""

    vendor: str
    model: str
    serial: str
    firmware: str


@dataclass(frozen=True)
class LiveMap:
    """The map a switch carries now and the generation that names it; every change adds one."""

    generation: int
    pairs: PortMap

    def require(self, generation: int | None) -> None:
        """Raise StaleGeneration, as a switch does, where a change was made for another ``generation`` than this."""
        if generation not in {None, self.generation}:
            raise StaleGeneration(
                f"the change was made for generation {generation}, the switch is at {self.generation}; "
                "read the live map again",
                code=-221,
            )


@dataclass(frozen=True)
class Applied:
    """A map change that was executed: the new generation, and the harness's stamps around the trigger.

    ``commanded_ns`` was taken just before the trigger was written, ``acknowledged_ns`` just after its
    acknowledgement was read, both on the driver's clock: the switch acted between the two. ``written_ns`` is when the
    whole trigger had been handed to the wire; None where the driver cannot say.
    """

    generation: int
    commanded_ns: int
    acknowledged_ns: int
    written_ns: int | None = None


@dataclass(frozen=True, eq=False)
class Staged:
    """A map change that waits in the switch for its trigger: good for one execution, at ``generation`` only."""

    change: MapChange
    generation: int


@runtime_checkable
class Fabric(Protocol):
    """Says which port is joined to which. One controller at a time, by fencing token."""

    def identify(self, deadline: Deadline) -> BoxIdentity: ...
    def port_count(self, deadline: Deadline) -> int: ...
    def live_map(self, deadline: Deadline) -> LiveMap: ...
    def apply(self, change: MapChange, deadline: Deadline, *, if_generation: int | None = None) -> Applied: ...
    def port_states(self, ports: Collection[int], deadline: Deadline) -> dict[int, PortState]: ...
    def take_lock(self, token: int, deadline: Deadline) -> None: ...
    def release_lock(self, token: int, deadline: Deadline) -> None: ...
    def save_boot_map(self, deadline: Deadline) -> None: ...
    def boot_map(self, deadline: Deadline) -> PortMap: ...
    def close(self) -> None: ...


@runtime_checkable
class MapStager(Protocol):
    """A Fabric that takes the next change ahead, so that its execution costs one short command.

    ``stage`` has the switch load and check a change, and changes nothing of the live map. There is room for one: what
    is staged or applied later takes its place. ``trigger`` executes it, and returns once the switch has acted; a port
    that did not follow may be found by the next change only. Where the generation is another by then it raises
    StaleGeneration, where it is not what the switch has staged FabricError; nothing was done in either case.
    """

    def stage(self, change: MapChange, deadline: Deadline, *, if_generation: int | None = None) -> Staged: ...
    def trigger(self, staged: Staged, deadline: Deadline) -> Applied: ...


def stager(fabric: Fabric) -> MapStager:
    """The same fabric, to stage changes with. Raises NotSupported where it takes none ahead."""
    if not isinstance(fabric, MapStager):
        raise NotSupported("this switch takes no map ahead of its execution")
    return fabric


@runtime_checkable
class PhyControl(Protocol):
    """Takes the signal away from ports for a time. A repeated ``request_id`` does nothing."""

    def drop(self, ports: Collection[int], down_s: float, deadline: Deadline, *, request_id: int) -> None: ...
    def flap(
        self,
        ports: Collection[int],
        down_s: float,
        up_s: float,
        count: int,
        deadline: Deadline,
        *,
        request_id: int,
    ) -> None: ...
    def drop_counts(self, ports: Collection[int], deadline: Deadline) -> dict[int, int]: ...


@runtime_checkable
class SignalRestorer(Protocol):
    """A PhyControl that can end its drops and flaps early: what is left of those of ``ports`` is forgotten."""

    def restore(self, ports: Collection[int], deadline: Deadline) -> None: ...


@runtime_checkable
class LinkReset(Protocol):
    """Has ports train their links anew; ``is_hard`` resets what is at their other ends too (SAS hard reset)."""

    def reset_link(self, ports: Collection[int], deadline: Deadline, *, is_hard: bool = False) -> None: ...


@runtime_checkable
class PowerPort(Protocol):
    """Feeds one server, drive or box."""

    def turn_on(self, deadline: Deadline) -> None: ...
    def turn_off(self, deadline: Deadline) -> None: ...
    def is_on(self, deadline: Deadline) -> bool: ...


@runtime_checkable
class Breakable(Protocol):
    """A part of a rack that can be broken on purpose, in the ways of ``kinds``, and mended.

    A fault is plain JSON: its ``kind`` and that kind's parameters. It stands under a key its maker chose; to break
    under a key that stands already does nothing, nor does to mend one that does not, so both may be repeated.
    ``standing`` is read from the equipment: what is broken now, by key; a fault that ended by itself is not there.
    ``break_as`` raises NotSupported for another kind, BadInput for parameters that make no sense.
    """

    @property
    def kinds(self) -> frozenset[str]: ...
    def break_as(self, key: str, fault: Mapping[str, Any], deadline: Deadline) -> None: ...
    def mend(self, key: str, deadline: Deadline) -> None: ...
    def standing(self, deadline: Deadline) -> dict[str, Mapping[str, Any]]: ...


@runtime_checkable
class FaultRegister(Protocol):
    """Says at once what stands broken of many breakable ``parts``, by their names and keys; the others are well."""

    @property
    def parts(self) -> frozenset[str]: ...
    def standing(self, deadline: Deadline) -> dict[str, dict[str, Mapping[str, Any]]]: ...


@dataclass(frozen=True)
class DriveIdentity:
    """What a drive says it is. Identifiers it does not report are absent from ``identifiers``.

    ``identifiers`` has keys among ``wwn``, ``eui64``, ``nguid``, ``by_path`` and ``slot``.
    """

    model: str
    serial: str
    firmware: str
    protocol: str
    size_bytes: int
    identifiers: Mapping[str, str] = field(default_factory=dict)


@runtime_checkable
class Drive(Protocol):
    """The drive that a server port sees now: identity and health counters by name."""

    def identify(self, deadline: Deadline) -> DriveIdentity: ...
    def health(self, deadline: Deadline) -> dict[str, int]: ...


class SanitizeMethod(StrEnum):
    """How a drive erases itself: every block (SSD), its key (self-encrypting), or every sector by writing (HDD)."""

    BLOCK_ERASE = "block-erase"
    CRYPTO_ERASE = "crypto-erase"
    OVERWRITE = "overwrite"


@runtime_checkable
class Sanitizer(Protocol):
    """Has the drive that a server port sees erase itself whole; flash is as it left the factory afterwards.

    ``methods`` are those the drive offers, the one to prefer first. ``sanitize`` returns when the drive is done.
    """

    def methods(self, deadline: Deadline) -> tuple[SanitizeMethod, ...]: ...
    def sanitize(self, drive: WritableDrive, method: SanitizeMethod, deadline: Deadline) -> None: ...


@dataclass(frozen=True)
class BlockUsage:
    """Who else uses a block device: each entry a sentence part such as ``mounted at /srv``; empty means nobody."""

    claims: tuple[str, ...] = ()
    is_boot_drive: bool = False


@runtime_checkable
class Claim(Protocol):
    """A device that is held for one writer: nobody else can claim it until this is closed.

    ``require`` returns where it is still held and still what was claimed. It raises GuardRefused, which names
    ``drive_id``, where another drive answers by now, or where ``descriptor``, an open one of this machine, is none of
    it; LabError where nobody can tell.
    """

    def require(self, drive_id: str, descriptor: int | None = None) -> None: ...
    def close(self) -> None: ...


@runtime_checkable
class BlockDevice(Protocol):
    """How I/O reaches a drive. ``fio_options`` gives fio's ``uri=`` or ``filename=`` and engine;
    ``probe_target`` what rackprobe opens: a device path or an ``nbd+unix`` / ``nbd`` URI."""  # noqa: D205, D209

    @property
    def size_bytes(self) -> int: ...
    def fio_options(self) -> dict[str, str]: ...
    def probe_target(self) -> str: ...
    def usage(self) -> BlockUsage: ...
    def claim_exclusive(self) -> Claim | None:
        """Claim the device for one writer (O_EXCL), or None where nothing can claim it (NBD).

        Raises LabError when somebody else holds it, or when it is not the drive that it was bound to.
        """
        ...


@final
class WritableDrive:
    """A drive that may be overwritten: only the guard makes one, and it holds the device until it is closed.

    A context manager. Raises BadInput where anything but the guard tries to make or to copy one.
    """

    __slots__ = ("_claim", "_device", "_drive_id", "_is_open", "_serial")

    def __init__(self, token: object, drive_id: str, serial: str, device: BlockDevice, claim: Claim | None) -> None:
        if token is not _MINT:
            _forged()
        self._drive_id = drive_id
        self._serial = serial
        self._device = device
        self._claim = claim
        self._is_open = True

    def __init_subclass__(cls) -> None:
        _forged()

    def __copy__(self) -> NoReturn:
        _forged()

    def __deepcopy__(self, _memo: object) -> NoReturn:
        _forged()

    def __reduce__(self) -> NoReturn:
        _forged()

    @property
    def drive_id(self) -> str:
        """The drive's name in the lab description."""
        return self._drive_id

    @property
    def serial(self) -> str:
        """The serial number it was recognised by."""
        return self._serial

    @property
    def device(self) -> BlockDevice:
        """What to write to; to be asked for each time something begins to write. Raises as :meth:`require` does."""
        self.require()
        return self._device

    def require(self, descriptor: int | None = None) -> None:
        """Return where the drive may be written now, through ``descriptor`` if one is given.

        Raises GuardRefused where another drive is there by now, LabError once closed and where whoever holds the drive
        is gone, BadInput on an object the guard did not make.
        """
        if not getattr(self, "_is_open", None):
            if not hasattr(self, "_is_open"):
                _forged()
            raise LabError(f"the permission to write {self._drive_id} was given back; ask the guard again")
        if self._claim is not None:
            self._claim.require(self._drive_id, descriptor)

    @property
    def is_claimed(self) -> bool:
        """Whether the device is held exclusively where the I/O is, so that whoever writes cannot claim it again."""
        return self._claim is not None

    def close(self) -> None:
        """Give the permission and the device back."""
        self._is_open = False
        if self._claim is not None:
            self._claim.close()
            self._claim = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _forged() -> NoReturn:
    raise BadInput("a WritableDrive is made by Guard.writable() and by nothing else; ask the guard")


@dataclass(frozen=True)
class Completed:
    """A command that ended: its exit status and everything it printed."""

    argv: tuple[str, ...]
    status: int
    stdout: str
    stderr: str


@runtime_checkable
class Process(Protocol):
    """A command that is running: lines come and go until it ends."""

    def write_line(self, line: str) -> None: ...
    def read_line(self, deadline: Deadline) -> str | None: ...
    def wait(self, deadline: Deadline) -> Completed: ...
    def kill(self) -> None: ...


@runtime_checkable
class Executor(Protocol):
    """Where a command runs: on this machine or on a host.

    ``put_text`` makes a file there and returns its path; ``find`` returns a program's path or None.
    """

    def run(self, argv: Sequence[str], deadline: Deadline, *, stdin: str = "") -> Completed: ...
    def start(self, argv: Sequence[str]) -> Process: ...
    def find(self, program: str) -> str | None: ...
    def put_text(self, name: str, text: str) -> str: ...
    def close(self) -> None: ...


@runtime_checkable
class Host(Executor, Protocol):
    """A server as who is logged in on it sees it: an Executor that also carries whole files, by absolute path.

    A connection that is lost fails what runs over it and is made anew by the next call. ``reconnect`` waits until
    the server answers again, as after a reboot or a power cycle.
    """

    @property
    def name(self) -> str: ...
    def read_file(self, path: str, deadline: Deadline) -> bytes: ...
    def write_file(self, path: str, content: bytes, deadline: Deadline, *, mode: int = 0o600) -> None: ...
    def reconnect(self, deadline: Deadline) -> None: ...


@dataclass(frozen=True)
class SystemEvent:
    """An entry of a system event log. ``at`` is None where the controller did not know the time."""

    number: int
    at: datetime | None
    sensor: str
    text: str
    severity: str = ""


@runtime_checkable
class SystemEventLog(Protocol):
    """What a server's management controller noted (SEL), oldest first; ``now`` is the controller's own clock."""

    def events(self, deadline: Deadline) -> list[SystemEvent]: ...
    def now(self, deadline: Deadline) -> datetime: ...
