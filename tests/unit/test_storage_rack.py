"""The storage servers of a rack, as far as they need none: what its metadata service gives out."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from rackloop.clock import VirtualClock
from rackloop_fixtures import StorageRack
from rackloop_models.lwfs import BLOCK_BYTES, MemoryBlocks


def rack(seed: int = 7) -> Any:
    return SimpleNamespace(clock=VirtualClock(), seed=seed)


def key_block(storage: StorageRack) -> bytes:
    blocks = MemoryBlocks(8 * BLOCK_BYTES)
    storage.metadata.format_drive("rack", "d1", blocks)
    return blocks.read(0, BLOCK_BYTES)


def test_no_store_of_a_run_has_a_key_that_another_had_though_the_seed_is_the_same() -> None:
    labels: Any = None
    first, second = StorageRack(rack(), labels, ["s1"]), StorageRack(rack(), labels, ["s1"])
    assert len({key_block(first), key_block(second), key_block(first), key_block(second)}) == 4
