"""The interface of a system under test: the calls that an adapter offers, and its self-description.

A system has blocks, numbered from 0 and all of one size, a multiple of 4096 bytes. It may be a file system, an object
store or a block device: its adapter says what a block is. Beyond :class:`SystemUnderTest`, an adapter offers what the
system can do: :class:`Placed`, :class:`Repairs`, :class:`DropsCaches`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, runtime_checkable

from rackloop.errors import ProductFailed


class BlocksUnreadable(ProductFailed):
    """The system said that it cannot give blocks. Loud, and so no wrong answer."""


class BlocksMissing(BlocksUnreadable):
    """The system said that it never had these blocks, or has them no more."""


class SilentCorruption(StrEnum):
    """A system's promise where a drive gives other bytes than were written, and no error."""

    CORRECTED = "corrected"
    DETECTED = "detected"
    NOT_COVERED = "not covered"
    UNKNOWN = "unknown"

    @property
    def is_noticed(self) -> bool:
        """Whether wrong bytes are noticed, by promise, and never given."""
        return self in {SilentCorruption.CORRECTED, SilentCorruption.DETECTED}


class Health(StrEnum):
    """The health that a system reports."""

    HEALTHY = "healthy"
    DEGRADED = "degraded"
    REBUILDING = "rebuilding"
    LOST = "lost"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class RecoveryState:
    """A system's account of its recovery. ``progress`` goes from 0 to 1 where it tells; ``detail`` is in its words."""

    health: Health
    detail: str = ""
    progress: float | None = None


@dataclass(frozen=True)
class SelfDescription:
    """A system's description of itself; what it leaves out is None or unknown, and is not held against it.

    ``blocks`` is the capacity. ``m`` is how many units of a stripe may be lost. ``atomic_bytes`` is what a write
    leaves old or new as a whole when it is not acknowledged; None is a block. ``reports_damage``: once damaged blocks
    were read, ``recovery_state`` is not healthy until they are repaired. ``name`` has 1 to 44 ASCII characters.
    """

    name: str
    block_bytes: int
    blocks: int
    k: int | None = None
    m: int | None = None
    atomic_bytes: int | None = None
    silent_corruption: SilentCorruption = SilentCorruption.UNKNOWN
    reports_damage: bool = False


@runtime_checkable
class SystemUnderTest(Protocol):
    """A storage system, as the oracle needs it. Both calls on blocks take any number that follow each other.

    ``put`` returns when the system acknowledges, ``flush`` when all that was acknowledged stays through a loss of
    power. Blocks that it says it cannot give raise :class:`BlocksUnreadable`, or IoFailed as drives do (EIO,
    EREMOTEIO, ENODATA, EILSEQ); any other error is the lab's or the adapter's, and makes the verdict unknown.
    """

    def describe(self) -> SelfDescription: ...
    def put(self, first: int, data: bytes) -> None: ...
    def get(self, first: int, count: int) -> bytes: ...
    def flush(self) -> None: ...
    def recovery_state(self) -> RecoveryState: ...


@dataclass(frozen=True)
class Place:
    """Bytes of a drive."""

    drive: str
    offset: int
    length: int


@dataclass(frozen=True)
class Stripe:
    """Blocks that are coded together: where each unit lies, in the order of the codeword, data before parity.

    ``addresses`` are its blocks, spread evenly over the first ``data_units`` units in order. A shortened stripe has
    fewer data units than the others.
    """

    name: str
    addresses: range
    units: tuple[Place, ...]
    data_units: int

    @property
    def m(self) -> int:
        """The number of parity units."""
        return len(self.units) - self.data_units

    def units_of(self, address: int) -> range:
        """The positions of the units that hold a block."""
        number, blocks = address - self.addresses.start, len(self.addresses)
        return range(number * self.data_units // blocks, -(-(number + 1) * self.data_units // blocks))


@runtime_checkable
class Placed(Protocol):
    """A system that says where a block's stripe lies now, which it takes to erase it on purpose; None where unknown."""

    def places(self, address: int) -> Stripe | None: ...


@runtime_checkable
class Repairs(Protocol):
    """A system that brings back what was lost, when it is told to or by itself.

    ``repair`` returns when the redundancy is back as far as it can be. It calls ``pause`` now and then, in between,
    with the system ready to be read and written.
    """

    def repair(self, pause: Callable[[], None]) -> None: ...


@runtime_checkable
class DropsCaches(Protocol):
    """A system that can drop what it holds in memory, so that the next read comes from the drives.

    It is not asked for during a repair. What was acknowledged must not be lost by it.
    """

    def forget(self) -> None: ...
