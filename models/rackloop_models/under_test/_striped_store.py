"""A striped store, as a system under test: a block is an object."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from rackloop.abilities.blocks import Blocks
from rackloop.errors import LabError, ProductFailed
from rackloop_models.rack_erasure import NoSuchObject, StripedStore
from rackloop_oracles.recovery import (
    BlocksMissing,
    BlocksUnreadable,
    Health,
    Place,
    RecoveryState,
    SelfDescription,
    SilentCorruption,
    Stripe,
)


class StripedStoreUnderTest:
    """The objects of a striped store, each as large as there may be; ``blocks`` of them, all when nothing is said.

    ``drives`` are the blocks of its drives by name. A repair takes back drives that the store gave up and that answer
    again; puts ``spares`` in the place of those that do not; rebuilds; and scrubs. A drive that was replaced is a
    spare from then on, once it answers.
    """

    def __init__(
        self,
        store: StripedStore,
        drives: Mapping[str, Blocks],
        *,
        blocks: int | None = None,
        spares: Mapping[str, Blocks] | None = None,
        name: str = "striped store",
    ) -> None:
        self._store = store
        self._drives = dict(drives)
        self._spares = dict(spares or {})
        self._blocks = store.objects if blocks is None else blocks
        self._name = name

    def describe(self) -> SelfDescription:
        """The store by its layout. An object is seen whole or not at all, and wrong bytes of a drive count as lost."""
        code = self._store.layout.code
        covers = SilentCorruption.CORRECTED if self._store.covers_silent_corruption else SilentCorruption.NOT_COVERED
        return SelfDescription(
            self._name, code.object_bytes, self._blocks, code.k, code.m, code.object_bytes, silent_corruption=covers
        )

    def put(self, first: int, data: bytes) -> None:
        """Put each object."""
        size = self._store.object_bytes
        for number in range(len(data) // size):
            with _loud():
                self._store.put(first + number, data[number * size : (number + 1) * size])

    def get(self, first: int, count: int) -> bytes:
        """Get each object."""
        with _loud():
            return b"".join(self._store.get(number) for number in range(first, first + count))

    def flush(self) -> None:
        """Have the drives flush."""
        self._store.flush()

    def recovery_state(self) -> RecoveryState:
        """The state by the store, in the oracle's words."""
        state = self._store.recovery_state()
        gone = ", ".join(state.missing) or "none"
        detail = f"{state.degraded} objects degraded, {len(state.lost)} lost, drives gone: {gone}"
        return RecoveryState(Health(state.health.value), detail)

    def places(self, address: int) -> Stripe:
        """The units of an object. Raises BlocksMissing for one that was never put."""
        with _loud():
            units = tuple(Place(*place) for place in self._store.places(address))
        data_units = self._store.layout.code.k
        return Stripe(str(address), range(address, address + 1), units, data_units)

    def repair(self, pause: Callable[[], None]) -> None:
        """Drives back or replaced, then a rebuild and a scrub, with a pause after each unit."""
        for drive in self._store.recovery_state().missing:
            try:
                self._store.drive_back(drive, self._drives[drive])
            except LabError:
                self._replace(drive)
        self._store.rebuild(progress=lambda _done, _all: pause())
        self._store.scrub(lambda _done, _all: pause())

    def _replace(self, drive: str) -> None:
        for spare, blocks in list(self._spares.items()):
            try:
                self._store.replace(drive, spare, blocks)
            except LabError:
                continue
            del self._spares[spare]
            self._drives[spare] = blocks
            self._spares[drive] = self._drives.pop(drive)
            return


@contextmanager
def _loud() -> Iterator[None]:
    """Say in the oracle's words what the store says of objects that it cannot give or take."""
    try:
        yield
    except NoSuchObject as error:
        raise BlocksMissing(str(error)) from error
    except ProductFailed as error:
        raise BlocksUnreadable(str(error)) from error
