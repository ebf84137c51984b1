"""The oracle over plain blocks: nothing is said of a right system, and every defect is."""

from __future__ import annotations

import errno
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rackloop.abilities.blocks import IoFailed
from rackloop.errors import BadInput, DeadlineExceeded
from rackloop.seed import Stream, stream
from rackloop_oracles.recovery import BlocksMissing, BlockSystem, Outcome, RecoveryOracle, Stripe
from tests.memory_blocks import MemoryBlocks
from tests.unit.oracles.recovery_doubles import (
    Defective,
    Hanging,
    Swallowing,
    VolatileBlocks,
    oracle_of,
    sectors_of,
    whole_block,
)

BLOCK = 4096
BLOCKS = 10
Change = Callable[[int, bytes], bytes]


def plain(block_bytes: int = BLOCK, atomic_bytes: int = 512) -> BlockSystem:
    return BlockSystem(MemoryBlocks(BLOCKS * block_bytes), "plain", block_bytes=block_bytes, atomic_bytes=atomic_bytes)


def wrongs(oracle: RecoveryOracle, where: str = "") -> list[str]:
    return [one.reason for one in oracle.judge(oracle.verify_all(where)) if one.outcome is Outcome.WRONG]


def replaced(at: int, content: bytes) -> Change:
    """An answer with other content where sector ``at`` is."""

    def change(first: int, data: bytes) -> bytes:
        start = at * BLOCK - first * BLOCK
        if not 0 <= start < len(data):
            return data
        return data[:start] + content + data[start + BLOCK :]

    return change


def test_what_was_written_reads_right() -> None:
    with oracle_of(plain()) as oracle:
        assert oracle.write(0, BLOCKS) == BLOCKS
        assert oracle.write(3, 2) == 2
        oracle.flush()
        reading = oracle.verify_all()
        assert (reading.blocks, reading.observations) == (BLOCKS, [])


def test_blocks_that_were_never_written_are_not_looked_at() -> None:
    blocks = MemoryBlocks(BLOCKS * BLOCK)
    blocks.content[:] = b"U" * len(blocks.content)
    with oracle_of(BlockSystem(blocks, "used")) as oracle:
        oracle.write(2, 1)
        reading = oracle.verify_all()
        assert (reading.blocks, reading.observations) == (1, [])


ACCUSED: dict[str, tuple[Callable[[BlockSystem], bytes], str]] = {
    "stale": (lambda s: sectors_of(s, 5, 1), "block 5 (later), sector 0: expected generation 4, found generation 1"),
    "misplaced": (lambda s: sectors_of(s, 6, 5), "found sector 6 of generation 5 (misplaced)"),
    "other run": (lambda s: sectors_of(s, 5, 4, seed=99), "found sector 5 of plain, seed 99, generation 4 (other run)"),
    "torn": (lambda s: sectors_of(s, 5, 4)[:2048] + sectors_of(s, 5, 1)[2048:], "parts of generations 1, 4 (torn)"),
    "torn with another block": (
        lambda s: sectors_of(s, 5, 4)[:2048] + sectors_of(s, 6, 4)[2048:],
        "parts of generations 4 (torn, some of another place)",
    ),
    "zeros": (lambda _: bytes(BLOCK), "found zeros (blank)"),
    "corrupt": (lambda s: sectors_of(s, 5, 4)[:-2000] + b"?" + sectors_of(s, 5, 4)[-1999:], "(corrupt)"),
    "foreign": (lambda _: b"U" * BLOCK, "(foreign)"),
    "from the future": (lambda s: sectors_of(s, 5, 9), "found generation 9 (newer)"),
}


@pytest.mark.parametrize("defect", ACCUSED)
def test_wrong_content_is_named(defect: str) -> None:
    make, said = ACCUSED[defect]
    right = plain()
    broken = Defective(right, replaced(5, make(right)))
    with oracle_of(broken) as oracle:
        oracle.write(0, BLOCKS)
        oracle.write(4, 4)
        assert not wrongs(oracle)
        broken.is_on = True
        (reason,) = wrongs(oracle, "later")
        assert said in reason
        assert reason.startswith("block 5 (later)")


def test_a_short_answer_is_wrong() -> None:
    broken = Defective(plain(), lambda _, data: data[:-1])
    broken.is_on = True
    with oracle_of(broken, batch=BLOCKS) as oracle:
        oracle.write(0, BLOCKS)
        assert (
            "40959 bytes where 40960 were asked for"
            in oracle.judge(oracle.verify_all())[0].observation.founds[0][1].error
        )
        assert len(wrongs(oracle)) == BLOCKS


def test_a_swallowed_write_is_found() -> None:
    system = Swallowing(MemoryBlocks(BLOCKS * BLOCK), "swallows")
    with oracle_of(system) as oracle:
        oracle.write(0, BLOCKS)
        system.swallows = True
        oracle.write(7, 1)
        (reason,) = wrongs(oracle)
        assert "block 7" in reason
        assert "(stale)" in reason


@pytest.mark.parametrize("was_flushed", [True, False])
def test_only_a_power_cut_may_lose_what_was_not_flushed(*, was_flushed: bool) -> None:
    blocks = MemoryBlocks(BLOCKS * BLOCK)
    with oracle_of(BlockSystem(blocks, "drive")) as oracle:
        oracle.write(0, BLOCKS)
        oracle.flush()
        before = bytes(blocks.content)
        oracle.write(3, 1)
        if was_flushed:
            oracle.flush()
        blocks.content[:] = before
        assert wrongs(oracle)
        oracle.power_was_cut()
        assert bool(wrongs(oracle)) is was_flushed


def test_what_was_seen_after_a_power_cut_stays() -> None:
    blocks = MemoryBlocks(BLOCKS * BLOCK)
    with oracle_of(BlockSystem(blocks, "drive")) as oracle:
        oracle.write(0, BLOCKS)
        oracle.flush()
        older = bytes(blocks.content)
        oracle.write(3, 1)
        newer = bytes(blocks.content)
        oracle.power_was_cut()
        blocks.content[:] = older
        assert not wrongs(oracle)
        blocks.content[:] = newer
        assert len(wrongs(oracle)) == 1


def test_a_first_write_that_failed_and_was_not_seen_does_not_come_later() -> None:
    class Late(BlockSystem):
        """Refuses writes, and does them when it likes."""

        kept: tuple[int, bytes] | None = None

        def put(self, first: int, data: bytes) -> None:
            self.kept = first, data
            raise IoFailed("write: media error", errno.EIO)

        def do(self) -> None:
            assert self.kept is not None
            super().put(*self.kept)

    for is_seen in (True, False):
        system = Late(MemoryBlocks(BLOCKS * BLOCK), "late")
        with oracle_of(system) as oracle:
            assert oracle.write(3, 1) == 0
            if is_seen:
                assert not wrongs(oracle)
            system.do()
            assert bool(wrongs(oracle)) is is_seen


def test_a_write_that_failed_may_be_seen_or_not_and_torn_only_below_the_atomic_unit() -> None:
    for atomic_bytes, is_wrong in ((512, False), (BLOCK, True)):
        blocks = VolatileBlocks(BLOCKS * BLOCK, stream(3, "drive"))
        system = whole_block(BlockSystem(blocks, "plain"), atomic_bytes)
        with oracle_of(system) as oracle:
            oracle.write(0, BLOCKS)
            blocks.fails_next_write = True
            assert oracle.write(2, 1) == 0
            assert "media error" in oracle.refusals[0].error
            assert bool(wrongs(oracle)) is is_wrong, atomic_bytes


def test_a_block_of_many_sectors_is_of_one_write_where_that_is_promised() -> None:
    for atomic_bytes, is_wrong in ((BLOCK, False), (2 * BLOCK, True)):
        blocks = MemoryBlocks(BLOCKS * 2 * BLOCK)
        with oracle_of(BlockSystem(blocks, "pairs", block_bytes=2 * BLOCK, atomic_bytes=atomic_bytes)) as oracle:
            oracle.write(0, BLOCKS)
            oracle.flush()
            older = bytes(blocks.content)
            oracle.write(4, 1)
            oracle.power_was_cut()
            blocks.content[9 * BLOCK : 10 * BLOCK] = older[9 * BLOCK : 10 * BLOCK]
            assert bool(wrongs(oracle)) is is_wrong, atomic_bytes


def test_blocks_that_cannot_be_read_are_found_one_by_one_and_are_loud() -> None:
    class Unreadable(BlockSystem):
        bad = frozenset({1, 6})

        def get(self, first: int, count: int) -> bytes:
            if self.bad & set(range(first, first + count)):
                raise IoFailed("read: media error", errno.EIO)
            return super().get(first, count)

    with oracle_of(Unreadable(MemoryBlocks(BLOCKS * BLOCK), "bad"), batch=8) as oracle:
        oracle.write(0, BLOCKS)
        found = oracle.judge(oracle.verify_all())
        assert [(one.observation.block, one.outcome) for one in found] == [(1, Outcome.LOUD), (6, Outcome.LOUD)]
        assert "media error" in found[0].reason


class OneAtATime(BlockSystem):
    """Gives no blocks together."""

    def get(self, first: int, count: int) -> bytes:
        if count > 1:
            raise BlocksMissing(f"not all of {count} objects are there")
        return super().get(first, count)


def test_blocks_that_are_not_given_together_are_loud_though_each_of_them_is_given() -> None:
    with oracle_of(OneAtATime(MemoryBlocks(BLOCKS * BLOCK), "plain")) as oracle:
        oracle.write(0, BLOCKS)
        reading = oracle.verify(2, 2)
        (judged,) = oracle.judge(reading)
        assert (reading.blocks, judged.outcome) == (2, Outcome.LOUD)
        assert "block 2, sector 0" in judged.reason
        assert "blocks 2 to 3 together: not all of 2 objects are there" in judged.reason


def test_blocks_that_are_not_given_together_with_one_that_was_never_written_are_right() -> None:
    with oracle_of(OneAtATime(MemoryBlocks(BLOCKS * BLOCK), "plain")) as oracle:
        oracle.write(2, 1)
        oracle.write(5, 1)
        reading = oracle.verify_all()
        assert (reading.blocks, oracle.judge(reading)) == (2, [])


def test_a_block_that_is_missing_is_right_before_its_first_write_stays() -> None:
    class Objects(BlockSystem):
        def get(self, first: int, count: int) -> bytes:
            raise BlocksMissing(f"no object {first}")

    with oracle_of(Objects(MemoryBlocks(BLOCKS * BLOCK), "objects")) as oracle:
        oracle.write(0, 1)
        assert oracle.judge(oracle.verify_all())[0].outcome is Outcome.LOUD
        oracle.power_was_cut()
        assert not oracle.judge(oracle.verify_all())


def test_an_error_that_is_not_about_data_is_the_labs() -> None:
    class Unplugged(BlockSystem):
        def get(self, first: int, count: int) -> bytes:
            raise IoFailed("read: no such device", errno.ENODEV)

    with oracle_of(Unplugged(MemoryBlocks(BLOCKS * BLOCK), "gone")) as oracle:
        oracle.write(0, 1)
        with pytest.raises(IoFailed, match="no such device"):
            oracle.verify_all()


def test_a_call_that_hangs_is_given_up_and_nothing_more_is_asked() -> None:
    system = Hanging(MemoryBlocks(BLOCKS * BLOCK), "hangs")
    try:
        with oracle_of(system, limit_s=0.05) as oracle:
            oracle.write(0, 1)
            with pytest.raises(DeadlineExceeded, match=r"get of blocks 0 to 3 did not return in 0\.05 s"):
                oracle.verify_all()
            with pytest.raises(DeadlineExceeded, match="still not answered get of blocks 0 to 3"):
                oracle.flush()
    finally:
        system.let_go.set()


def test_a_system_without_blocks_and_blocks_that_are_not_there_are_refused() -> None:
    with pytest.raises(BadInput, match="multiple of 4096"):
        oracle_of(BlockSystem(MemoryBlocks(BLOCK), "half", block_bytes=2048))
    with pytest.raises(BadInput, match="8192 bytes are to be used, of 4096"):
        BlockSystem(MemoryBlocks(BLOCK), "small", size_bytes=2 * BLOCK)
    with oracle_of(plain()) as oracle, pytest.raises(BadInput, match="plain has 10 blocks"):
        oracle.write(9, 2)


SPANS = st.integers(0, BLOCKS - 1).flatmap(lambda first: st.tuples(st.just(first), st.integers(1, BLOCKS - first)))
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), SPANS),
        st.tuples(st.just("fail"), SPANS),
        st.tuples(st.sampled_from(["flush", "cut", "read"]), st.just((0, BLOCKS))),
    ),
    max_size=20,
)


def play(oracle: RecoveryOracle, blocks: VolatileBlocks, steps: list[tuple[str, tuple[int, int]]]) -> list[str]:
    """Carry out the steps; what was found wrong on the way."""
    found: list[str] = []
    for step, (first, count) in steps:
        match step:
            case "write":
                oracle.write(first, count)
            case "fail":
                blocks.fails_next_write = True
                oracle.write(first, count)
            case "flush":
                oracle.flush()
            case "cut":
                blocks.cut_power()
                oracle.power_was_cut()
            case "read":
                found += wrongs(oracle)
    return found + wrongs(oracle)


@settings(max_examples=60, deadline=None)
@given(STEPS, st.randoms(use_true_random=False))
def test_no_history_of_a_right_drive_raises_an_alarm(steps: list[tuple[str, tuple[int, int]]], chance: Stream) -> None:
    blocks = VolatileBlocks(BLOCKS * BLOCK, chance)
    with oracle_of(BlockSystem(blocks, "drive")) as oracle:
        assert play(oracle, blocks, steps) == []


@settings(max_examples=60, deadline=None)
@given(STEPS, st.randoms(use_true_random=False), st.sampled_from(["flip", "swap", "zero", "old"]), st.integers(0, 9))
def test_damage_after_any_history_is_found(
    steps: list[tuple[str, tuple[int, int]]], chance: Stream, damage: str, block: int
) -> None:
    blocks = VolatileBlocks(BLOCKS * BLOCK, chance)
    with oracle_of(BlockSystem(blocks, "drive")) as oracle:
        oracle.write(0, BLOCKS)
        oracle.flush()
        older = bytes(blocks.content)
        assert play(oracle, blocks, steps) == []
        oracle.write(0, BLOCKS)
        here, there = block * BLOCK, (block + 1) % BLOCKS * BLOCK
        match damage:
            case "flip":
                blocks.content[here + chance.randrange(BLOCK)] ^= 1 << chance.randrange(8)
            case "swap":
                blocks.content[here : here + BLOCK] = blocks.content[there : there + BLOCK]
            case "zero":
                blocks.content[here : here + BLOCK] = bytes(BLOCK)
            case "old":
                blocks.content[here : here + BLOCK] = older[here : here + BLOCK]
        (reason,) = wrongs(oracle)
        assert f"block {block}," in reason


def test_units_of_a_stripe_hold_its_blocks_evenly() -> None:
    def units(blocks: int, data_units: int) -> list[tuple[int, ...]]:
        stripe = Stripe("s", range(100, 100 + blocks), (), data_units)
        return [tuple(stripe.units_of(address)) for address in stripe.addresses]

    assert units(4, 4) == [(0,), (1,), (2,), (3,)]
    assert units(4, 2) == [(0,), (0,), (1,), (1,)]
    assert units(1, 3) == [(0, 1, 2)]
    assert units(2, 3) == [(0, 1), (1, 2)]
