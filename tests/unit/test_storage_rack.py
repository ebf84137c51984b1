"""The storage servers of a rack, as far as they need none: what its metadata service gives out."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from rackloop.abilities.blocks import BLOCK_BYTES, MemoryBlocks
from rackloop.clock import Deadline, VirtualClock
from rackloop.measurement import Verdict
from rackloop_fixtures import StorageClient, StorageRack
from rackloop_models.disaggregation import Io, Mapped, Unmapped, judged
from rackloop_models.disaggregation._rules_common import answers_only_while_mapped


def rack(seed: int = 7) -> Any:
    clock = VirtualClock()
    return SimpleNamespace(clock=clock, seed=seed, deadline=lambda seconds: Deadline.after(clock, seconds))


def key_block(storage: StorageRack) -> bytes:
    blocks = MemoryBlocks(8 * BLOCK_BYTES)
    storage.metadata.format_drive("rack", "d1", blocks)
    return blocks.read(0, BLOCK_BYTES)


def test_no_store_of_a_run_has_a_key_that_another_had_though_the_seed_is_the_same() -> None:
    labels: Any = None
    first, second = StorageRack(rack(), labels, ["s1"]), StorageRack(rack(), labels, ["s1"])
    assert len({key_block(first), key_block(second), key_block(first), key_block(second)}) == 4


def test_an_io_that_waited_for_its_drive_is_noted_with_the_moment_in_which_it_was_answered() -> None:
    labels: Any = None
    storage = StorageRack(rack(), labels, ["s1", "s2"])
    blocks = MemoryBlocks(8192 * BLOCK_BYTES)
    storage.metadata.format_drive("rack", "d1", blocks)

    def come(server: str) -> None:
        storage.servers[server].attach("d1", blocks)
        storage.history.note(Mapped(storage.now_s(), "d1", server, "p0"))
        storage.mapping.settle("d1", server)

    def wait(_seconds: float) -> None:
        storage.rack.clock.sleep_until_ns(storage.rack.clock.now_ns() + 1_000_000_000)
        if storage.now_s() == 3:
            come("s2")

    vars(storage)["sleep"] = wait
    come("s1")
    client = StorageClient.on(storage, "d1", "file")
    client.append()
    storage.servers["s1"].detach("d1")
    storage.mapping.lift("d1")
    storage.history.note(Unmapped(storage.now_s(), "d1", "s1"))
    client.append()
    waited = storage.history.of(Io)[1]
    assert (waited.began_s, waited.asked_s, waited.server, waited.ok) == (0, 3, "s2", True)
    (judgement,) = judged([("answers", answers_only_while_mapped)], storage.history)
    assert judgement.verdict is Verdict.PASS
