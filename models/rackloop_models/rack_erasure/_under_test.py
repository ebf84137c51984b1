"""A striped store as a system under test."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress

from rackloop.blocks import Blocks
from rackloop.errors import LabError
from rackloop.recovery import (
    BlocksMissing,
    BlocksUnreadable,
    Health,
    Place,
    RecoveryState,
    SelfDescription,
    SilentCorruption,
    Stripe,
)
from rackloop_models.rack_erasure._errors import NoSuchObject, StripeLost, TooFewDrives
from rackloop_models.rack_erasure._store import StripedStore


class StripedStoreUnderTest:
    """The objects of a store: a block is a whole object, and so is a stripe. ``blocks`` takes fewer than there are.

    ``drives`` are those of the store: a repair has the store use those again that it gave up and that answer.
    """

    def __init__(self, store: StripedStore, drives: Mapping[str, Blocks], blocks: int | None = None) -> None:
        self._store = store
        self._drives = drives
        self._blocks = store.objects if blocks is None else min(blocks, store.objects)

    def describe(self) -> SelfDescription:
        """What the store is: units carry checksums, so that wrong bytes are as good as lost ones."""
        code = self._store.layout.code
        return SelfDescription(
            f"rack {code.k}+{code.m}",
            self._store.object_bytes,
            self._blocks,
            code.k,
            code.m,
            silent_corruption=SilentCorruption.CORRECTED,
        )

    def put(self, first: int, data: bytes) -> None:
        """Write objects. Raises BlocksUnreadable where too few drives take them."""
        size = self._store.object_bytes
        try:
            for at in range(0, len(data), size):
                self._store.put(first + at // size, data[at : at + size])
        except (StripeLost, TooFewDrives) as error:
            raise BlocksUnreadable(str(error)) from error

    def get(self, first: int, count: int) -> bytes:
        """Read objects. Raises BlocksUnreadable, BlocksMissing for one that is not there."""
        try:
            return b"".join(self._store.get(number) for number in range(first, first + count))
        except StripeLost as error:
            raise BlocksUnreadable(str(error)) from error
        except NoSuchObject as error:
            raise BlocksMissing(str(error)) from error

    def flush(self) -> None:
        """Have the drives flush."""
        self._store.flush()

    def recovery_state(self) -> RecoveryState:
        """What the store says, in its words."""
        state = self._store.recovery_state()
        detail = f"{state.degraded} objects lack {state.units_missing} units, {len(state.lost)} cannot be read"
        return RecoveryState(Health(state.health.value), detail)

    def places(self, address: int) -> Stripe:
        """The units of an object, each with the block before it that says what it is."""
        units = tuple(Place(*place) for place in self._store.places(address))
        return Stripe(f"object {address}", range(address, address + 1), units, self._store.layout.code.k)

    def repair(self, pause: Callable[[], None]) -> None:
        """Use drives again that are back, find what is wrong and write it again, then what drives lack."""
        for drive in self._store.recovery_state().missing:
            # One that does not answer stays out.
            with suppress(LabError):
                self._store.drive_back(drive, self._drives[drive])
        self._store.scrub(lambda _done, _total: pause())
        self._store.rebuild(progress=lambda _done, _total: pause())

    def forget(self) -> None:
        """Nothing to do: the store keeps no content in memory."""
