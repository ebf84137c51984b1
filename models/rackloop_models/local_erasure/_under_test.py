"""A local erasure-coded store as a system under test."""

from __future__ import annotations

from collections.abc import Callable

from rackloop.recovery import (
    BlocksUnreadable,
    Health,
    Place,
    RecoveryState,
    SelfDescription,
    SilentCorruption,
    Stripe,
)
from rackloop_models.erasure import UnrecoverableError
from rackloop_models.local_erasure._layout import SECTOR_BYTES
from rackloop_models.local_erasure._store import LocalStore


class LocalStoreUnderTest:
    """One file of a store on ``drive``: a block is a sector of it, a stripe one of its groups.

    The file is made, or made anew, with ``blocks`` sectors. The store should have no cache, so that reads come from the
    drive. Threads may share it as they may the store.
    """

    def __init__(self, store: LocalStore, drive: str, blocks: int, file: str = "under test") -> None:
        self._store = store
        self._drive = drive
        self._blocks = blocks
        self._name = file
        if file in store.names():
            store.remove(file)
        self._file = store.create(file)

    def describe(self) -> SelfDescription:
        """What the store is: silent corruption is not covered, as in the paper."""
        layout = self._store.layout
        covered = SilentCorruption.DETECTED if self._store.covers_silent_corruption else SilentCorruption.NOT_COVERED
        return SelfDescription(
            f"local {layout.k}+{layout.m}",
            SECTOR_BYTES,
            self._blocks,
            layout.k,
            layout.m,
            silent_corruption=covered,
        )

    def put(self, first: int, data: bytes) -> None:
        """Write sectors of the file. Raises BlocksUnreadable where that takes others that cannot be had."""
        try:
            self._file.write(first * SECTOR_BYTES, data)
        except UnrecoverableError as error:
            raise BlocksUnreadable(str(error)) from error

    def get(self, first: int, count: int) -> bytes:
        """Read sectors of the file. Raises BlocksUnreadable."""
        try:
            return self._file.read(first * SECTOR_BYTES, count * SECTOR_BYTES)
        except UnrecoverableError as error:
            raise BlocksUnreadable(str(error)) from error

    def flush(self) -> None:
        """Have data, metadata and redundancy be on the drive."""
        self._store.flush()

    def recovery_state(self) -> RecoveryState:
        """Degraded while any group of the file has redundancy that is out of date."""
        unprotected = self._store.stat(self._name).unprotected_groups
        if unprotected:
            return RecoveryState(Health.DEGRADED, f"{unprotected} groups have redundancy that is out of date")
        return RecoveryState(Health.HEALTHY, "all redundancy that is known of is up to date")

    def places(self, address: int) -> Stripe:
        """The group of a sector."""
        k = self._store.layout.k
        group = address // k
        units = tuple(Place(self._drive, at, SECTOR_BYTES) for at in self._store.places(self._name, group))
        addresses = range(group * k, min((group + 1) * k, self._blocks))
        return Stripe(f"group {group}", addresses, units, len(addresses))

    def repair(self, pause: Callable[[], None]) -> None:
        """Scrub: what cannot be read is decoded and written again."""
        self._store.scrub(lambda _done, _total: pause())

    def forget(self) -> None:
        """Have nothing wait to be written: without a cache, the next read is the drive's."""
        self._store.flush()
