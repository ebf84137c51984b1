"""Writes that were not acknowledged, and what they may leave: whole pieces, as large as the system promises."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rackloop_oracles.recovery import BlocksMissing, BlockSystem, Outcome, RecoveryOracle
from tests.memory_blocks import MemoryBlocks
from tests.unit.oracles.recovery_doubles import oracle_of, sectors_of

BLOCK = 4096


def plain(blocks: MemoryBlocks, atomic_bytes: int = 512, sectors: int = 1) -> BlockSystem:
    return BlockSystem(blocks, "plain", block_bytes=sectors * BLOCK, atomic_bytes=atomic_bytes)


def wrongs(oracle: RecoveryOracle) -> list[str]:
    return [one.reason for one in oracle.judge(oracle.verify_all()) if one.outcome is Outcome.WRONG]


def interrupted(before: bytes, atomic_bytes: int, left: Callable[[BlockSystem, int], bytes]) -> list[str]:
    """What is wrong when a first write of block 3 is cut off over ``before``, and leaves something."""
    blocks = MemoryBlocks(8 * BLOCK)
    system = plain(blocks, atomic_bytes)
    with oracle_of(system) as oracle:
        oracle.write(0, 8)
        generation = oracle.history.writes[0].generation
        oracle.power_was_cut()
        blocks.content[3 * BLOCK : 4 * BLOCK] = before
        content = left(system, generation)
        blocks.content[3 * BLOCK : 3 * BLOCK + len(content)] = content
        return wrongs(oracle)


def half_done(block: int, old: slice, atomic_bytes: int, *, blocks: int = 4, sectors: int = 1) -> list[str]:
    """What is wrong when a second write of ``block`` is cut off and leaves what was in the bytes ``old`` of all."""
    memory = MemoryBlocks(blocks * sectors * BLOCK)
    with oracle_of(plain(memory, atomic_bytes, sectors)) as oracle:
        oracle.write(0, blocks)
        oracle.flush()
        before = bytes(memory.content)
        oracle.write(block, 1)
        oracle.power_was_cut()
        memory.content[old] = before[old]
        return wrongs(oracle)


def other_run(lba: int) -> bytes:
    return sectors_of(plain(MemoryBlocks(8 * BLOCK)), lba, 4, seed=77)


@pytest.mark.parametrize("kind", ["zeros", "foreign", "another run", "another place of another run"])
@pytest.mark.parametrize("pieces", range(1, 8))
def test_a_first_write_may_leave_pieces_of_itself_over_whatever_was_there(kind: str, pieces: int) -> None:
    before = {"zeros": bytes(BLOCK), "foreign": b"U" * BLOCK, "another run": other_run(3)}.get(kind, other_run(5))
    assert interrupted(before, 512, lambda system, number: sectors_of(system, 3, number)[: pieces * 512]) == []


def test_pieces_are_no_smaller_than_is_promised() -> None:
    def left(system: BlockSystem, generation: int) -> bytes:
        return sectors_of(system, 3, generation)[:1536]

    assert interrupted(b"U" * BLOCK, 512, left) == []
    assert interrupted(b"U" * BLOCK, 1024, left)
    assert interrupted(b"U" * BLOCK, BLOCK, left)


@pytest.mark.parametrize("at", [100, 600, 2000, 3700, 4085])
def test_a_piece_with_other_bytes_is_wrong_though_the_write_was_cut_off(at: int) -> None:
    """It has the stamp of a write that may be there, and is not what was written."""

    def left(system: BlockSystem, generation: int) -> bytes:
        content = bytearray(sectors_of(system, 3, generation))
        content[at] ^= 1
        return bytes(content)

    assert interrupted(bytes(BLOCK), 512, left)


def test_a_torn_sector_with_a_damaged_piece_is_wrong() -> None:
    blocks = MemoryBlocks(8 * BLOCK)
    system = plain(blocks)
    with oracle_of(system) as oracle:
        oracle.write(0, 8)
        oracle.flush()
        before = bytes(blocks.content)
        oracle.write(3, 1)
        oracle.power_was_cut()
        blocks.content[3 * BLOCK + 2048 : 4 * BLOCK] = before[3 * BLOCK + 2048 : 4 * BLOCK]
        assert wrongs(oracle) == []
        blocks.content[3 * BLOCK + 1000] ^= 1
        (reason,) = wrongs(oracle)
        assert "(torn, some damaged)" in reason


@pytest.mark.parametrize(("atomic_bytes", "is_wrong"), [(512, False), (1024, True), (2048, True), (BLOCK, True)])
def test_a_piece_that_is_written_as_a_whole_is_of_one_write(atomic_bytes: int, *, is_wrong: bool) -> None:
    old = slice(3 * BLOCK + 512, 4 * BLOCK)
    assert bool(half_done(3, old, atomic_bytes, blocks=8)) is is_wrong


def test_a_block_may_be_mixed_of_runs_of_sectors_that_are_written_as_a_whole() -> None:
    for mixed, is_wrong in (((2, 4), False), ((2, 3), True), ((0, 2), False), ((3, 4), True), ((4, 6), False)):
        old = slice((6 + mixed[0]) * BLOCK, (6 + mixed[1]) * BLOCK)
        assert bool(half_done(1, old, 2 * BLOCK, sectors=6)) is is_wrong, mixed


def test_the_last_run_of_a_block_may_be_shorter() -> None:
    assert half_done(1, slice(5 * BLOCK, 6 * BLOCK), 2 * BLOCK, sectors=3) == []


def test_a_block_of_many_sectors_whose_first_write_was_lost_may_be_missing() -> None:
    class Objects(BlockSystem):
        def get(self, first: int, count: int) -> bytes:
            raise BlocksMissing(f"no object {first}")

    objects = Objects(MemoryBlocks(8 * BLOCK), "objects", block_bytes=2 * BLOCK, atomic_bytes=2 * BLOCK)
    with oracle_of(objects) as oracle:
        assert oracle.write(0, 2) == 2
        oracle.power_was_cut()
        assert oracle.judge(oracle.verify_all()) == []


@pytest.mark.parametrize(("kept", "is_wrong"), [(2, False), (1, True)])
def test_generations_of_another_run_are_none_of_this_one(kept: int, *, is_wrong: bool) -> None:
    """The sectors before have the generations 1 and 2 of another run, and the write of this one is its first."""
    memory = MemoryBlocks(2 * BLOCK)
    system = plain(memory, 2 * BLOCK, sectors=2)
    before = b"".join(sectors_of(system, lba, lba + 1, seed=5) for lba in range(2))
    with oracle_of(system) as oracle:
        oracle.write(0, 1)
        oracle.power_was_cut()
        memory.content[: kept * BLOCK] = before[: kept * BLOCK]
        assert bool(wrongs(oracle)) is is_wrong
