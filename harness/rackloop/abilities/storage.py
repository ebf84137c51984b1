"""Drives, the block devices that reach them, and the permission to overwrite one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import TracebackType
from typing import NoReturn, Protocol, Self, final, runtime_checkable

from rackloop.clock import Deadline
from rackloop.errors import BadInput, LabError

_MINT = object()


@dataclass(frozen=True)
class DriveIdentity:
    """The identity that a drive reports. Identifiers it does not report are absent from ``identifiers``.

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
    """A method of self-erasure: every block (SSD), the key (self-encrypting), or every sector by writing (HDD)."""

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
    """The other users of a block device: each entry a sentence part such as ``mounted at /srv``; empty means none."""

    claims: tuple[str, ...] = ()
    is_boot_drive: bool = False


@runtime_checkable
class Claim(Protocol):
    """A device that is held for one writer: no other can claim it until this is closed.

    ``require`` returns where it is still held and still what was claimed. It raises GuardRefused, which names
    ``drive_id``, where another drive answers by now, or where ``descriptor``, an open one of this machine, is none of
    it; LabError where that cannot be told.
    """

    def require(self, drive_id: str, descriptor: int | None = None) -> None: ...
    def close(self) -> None: ...


@runtime_checkable
class BlockDevice(Protocol):
    """The way of I/O to a drive. ``fio_options`` gives fio's ``uri=`` or ``filename=`` and engine;
    ``probe_target`` what rackprobe opens: a device path or an ``nbd+unix`` / ``nbd`` URI."""  # noqa: D205, D209

    @property
    def size_bytes(self) -> int: ...
    def fio_options(self) -> dict[str, str]: ...
    def probe_target(self) -> str: ...
    def usage(self) -> BlockUsage: ...
    def claim_exclusive(self) -> Claim | None:
        """Claim the device for one writer (O_EXCL), or None where nothing can claim it (NBD).

        Raises LabError when another writer holds it, or when it is not the drive that it was bound to.
        """
        ...


@final
class WritableDrive:
    """A drive that may be overwritten: only the guard makes one, and it holds the device until it is closed.

    A context manager. Raises BadInput where anything but the guard tries to make or to copy one. One that is derived
    others (``rackloop.safety.tenant_exports``, ``array_export``) permits a part of that drive, or an array of all of
    them, through a device of its own.
    """

    __slots__ = ("_claim", "_device", "_drive_id", "_is_open", "_parents", "_serial", "_size_bytes", "_tenants")

    def __init__(
        self,
        token: object,
        drive_id: str,
        serial: str,
        size_bytes: int,
        device: BlockDevice,
        claim: Claim | None,
        *,
        parents: tuple[WritableDrive, ...] = (),
    ) -> None:
        if token is not _MINT:
            _forged()
        self._drive_id = drive_id
        self._serial = serial
        self._size_bytes = size_bytes
        self._device = device
        self._claim = claim
        self._parents = parents
        self._tenants = 0
        self._is_open = True
        for parent in parents:
            parent._tenants += 1  # noqa: SLF001 - one of this class

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
    def size_bytes(self) -> int:
        """The size of the whole drive, as it reported it and as it is described."""
        return self._size_bytes

    @property
    def is_derived(self) -> bool:
        """Whether it permits a tenant's part of a drive, or an array, and ends once a drive's own is closed."""
        return bool(self._parents)

    @property
    def has_tenants(self) -> bool:
        """Whether permits derived from this one are open."""
        return self._tenants > 0

    @property
    def device(self) -> BlockDevice:
        """The device to write to; ask for it whenever something begins to write. Raises as :meth:`require` does."""
        self.require()
        return self._device

    def require(self, descriptor: int | None = None) -> None:
        """Return where the drive may be written now, through ``descriptor`` if one is given.

        Raises GuardRefused where another drive is there by now, LabError once closed and where the process that holds
        the drive is gone, BadInput on an object the guard did not make.
        """
        if not getattr(self, "_is_open", None):
            if not hasattr(self, "_is_open"):
                _forged()
            raise LabError(f"the permission to write {self._drive_id} was given back; ask the guard again")
        for parent in self._parents:
            parent.require()
        if self._claim is not None:
            self._claim.require(self._drive_id, descriptor)

    @property
    def is_claimed(self) -> bool:
        """Whether the device is held exclusively where the I/O is, so that the writer cannot claim it again."""
        return self._claim is not None

    def close(self) -> None:
        """Give the permission and the device back."""
        for parent in self._parents if self._is_open else ():
            parent._tenants -= 1  # noqa: SLF001 - one of this class
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
