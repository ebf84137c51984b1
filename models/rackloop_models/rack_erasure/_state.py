"""The state of a striped store: its health and its counters."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, fields
from enum import StrEnum
from threading import Lock


class Health(StrEnum):
    """The worst that is true of a store."""

    HEALTHY = "healthy"
    DEGRADED = "degraded"
    REBUILDING = "rebuilding"
    LOST = "lost"


@dataclass(frozen=True)
class DriveState:
    """A drive of a store. ``units_missing`` are those it should have, and does not or not as they are now.

    ``is_out`` is a drive without which something was written; it is in again when it has everything.
    """

    name: str
    server: str
    is_up: bool
    is_out: bool
    units_missing: int
    why: str = ""


@dataclass(frozen=True)
class RecoveryState:
    """The state of a store. ``degraded`` objects can be read and lack units; ``lost`` ones cannot be read now.

    ``by_survivors`` says how many of the objects that lack units have so many left.
    """

    health: Health
    objects: int
    degraded: int
    lost: tuple[int, ...]
    units_missing: int
    by_survivors: dict[int, int]
    drives: tuple[DriveState, ...]

    @property
    def missing(self) -> tuple[str, ...]:
        """The drives that cannot be reached."""
        return tuple(drive.name for drive in self.drives if not drive.is_up)

    @property
    def stale(self) -> tuple[str, ...]:
        """The drives that can be reached and do not have all of their units as they are now."""
        return tuple(drive.name for drive in self.drives if drive.is_up and (drive.units_missing or drive.is_out))


@dataclass(frozen=True)
class Statistics:
    """The counters of a store since it was opened.

    Of units that were read: ``unreadable`` ones the drive gave up, ``damaged`` ones have another checksum, ``stale``
    ones are of another write of the object, ``misplaced`` ones say that they belong elsewhere. ``rebuilt_*`` are what
    rebuilds and scrubs did.
    """

    reads: int = 0
    degraded_reads: int = 0
    writes: int = 0
    degraded_writes: int = 0
    decodes: int = 0
    unreadable: int = 0
    damaged: int = 0
    stale: int = 0
    misplaced: int = 0
    finished_writes: int = 0
    undone_writes: int = 0
    rebuilt_units: int = 0
    rebuilt_read_bytes: int = 0
    rebuilt_written_bytes: int = 0


class Counts:
    """Counts that threads add to."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._counted: Counter[str] = Counter()

    def add(self, **counts: int) -> None:
        """Add to these counts."""
        with self._lock:
            self._counted.update(counts)

    def statistics(self) -> Statistics:
        """The counts now."""
        with self._lock:
            return Statistics(**{field.name: self._counted[field.name] for field in fields(Statistics)})
