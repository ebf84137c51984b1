"""A file of the local store, as a system under test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from rackloop_models.erasure import UnrecoverableError
from rackloop_models.local_erasure import (
    SECTOR_BYTES,
    LocalStore,
    ReplicasDisagree,
    ScrubReport,
    StoredFile,
)
from rackloop_oracles.recovery import (
    BlocksUnreadable,
    Health,
    Place,
    RecoveryState,
    SelfDescription,
    SilentCorruption,
    Stripe,
)


class LocalStoreUnderTest:
    """The sectors of one file of a local store, which ``open_store`` opens again and again. A context manager.

    ``blocks`` is the size of the file in sectors; it is made where there is none. A repair is a scrub. The store is
    healthy where no group of the file is unprotected and the last scrub left nothing damaged: it does not look at
    sectors that are not read, and so reports no damage by itself. It says that it covers no silent corruption.
    """

    def __init__(
        self,
        open_store: Callable[[], LocalStore],
        *,
        blocks: int,
        name: str = "local store",
        file: str = "oracle",
        drive: str = "drive",
    ) -> None:
        self._open_store = open_store
        self._blocks = blocks
        self._name = name
        self._file_name = file
        self._drive = drive
        self._scrubbed: ScrubReport | None = None
        self._open()

    def describe(self) -> SelfDescription:
        """The store by its layout. A sector is written whole or not at all."""
        layout = self._store.layout
        covers = SilentCorruption.DETECTED if self._store.covers_silent_corruption else SilentCorruption.NOT_COVERED
        return SelfDescription(
            self._name, SECTOR_BYTES, self._blocks, layout.k, layout.m, SECTOR_BYTES, silent_corruption=covers
        )

    def put(self, first: int, data: bytes) -> None:
        """Write to the file."""
        with _loud():
            self._file.write(first * SECTOR_BYTES, data)

    def get(self, first: int, count: int) -> bytes:
        """Read from the file; what is behind its end is zeros."""
        with _loud():
            return self._file.read(first * SECTOR_BYTES, count * SECTOR_BYTES).ljust(count * SECTOR_BYTES, b"\0")

    def flush(self) -> None:
        """Data, metadata and redundancy are on the drive."""
        with _loud():
            self._store.flush()

    def recovery_state(self) -> RecoveryState:
        """From the file's unprotected groups and the last scrub."""
        unprotected = self._store.stat(self._file_name).unprotected_groups
        found = self._scrubbed
        if found is not None and (found.unrecoverable or found.metadata_lost):
            return RecoveryState(Health.LOST, f"a scrub left {len(found.unrecoverable)} groups unrecoverable")
        if unprotected or (found is not None and not found.is_clean):
            mismatches = len(found.mismatches) if found is not None else 0
            return RecoveryState(Health.DEGRADED, f"{unprotected} groups unprotected, {mismatches} do not match")
        return RecoveryState(Health.HEALTHY)

    def places(self, address: int) -> Stripe:
        """The sectors of a group on the drive."""
        layout = self._store.layout
        group = address // layout.k
        units = tuple(Place(self._drive, offset, SECTOR_BYTES) for offset in self._store.places(self._file_name, group))
        data_units = len(units) - layout.m
        first = group * layout.k
        return Stripe(f"{self._file_name}:{group}", range(first, first + data_units), units, data_units)

    def repair(self, pause: Callable[[], None]) -> None:
        """Scrub, with a pause after each group."""
        with _loud():
            self._scrubbed = self._store.scrub(lambda _done, _all: pause())

    def forget(self) -> None:
        """Close the store and open it again: its cache is empty then."""
        with _loud():
            self._store.close()
        self._open()

    def power_lost(self) -> None:
        """Leave the store as it is and open it again, as after a loss of power; ``open_store`` has to take it over."""
        self._scrubbed = None
        self._open()

    def close(self) -> None:
        """Close the store."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _open(self) -> None:
        self._store: LocalStore = self._open_store()
        names = self._store.names()
        self._file: StoredFile = (self._store.open if self._file_name in names else self._store.create)(self._file_name)


@contextmanager
def _loud() -> Iterator[None]:
    """Say in the oracle's words what the store says of data that it cannot give."""
    try:
        yield
    except (UnrecoverableError, ReplicasDisagree) as error:
        raise BlocksUnreadable(str(error)) from error
