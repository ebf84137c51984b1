"""Storage for the recovery oracle: blocks that lose unflushed data, and systems with one defect."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from rackloop.abilities.blocks import IoFailed
from rackloop.clock import Deadline, RealClock
from rackloop.seed import Stream
from rackloop_oracles.recovery import (
    BlockSystem,
    Identity,
    RecoveryOracle,
    RecoveryState,
    SelfDescription,
    SystemUnderTest,
)
from tests.memory_blocks import MemoryBlocks

SEED = 11


class VolatileBlocks(MemoryBlocks):
    """Blocks with a write cache: a power cut keeps any of what was not flushed, in pieces of 512 bytes or others."""

    def __init__(self, size_bytes: int, chance: Stream, *, piece: int = 512) -> None:
        super().__init__(size_bytes)
        self._piece = piece
        self.durable = bytearray(size_bytes)
        self._chance = chance
        self._pending: list[tuple[int, bytes]] = []
        self.fails_next_write = False

    def write(self, offset: int, data: bytes) -> None:
        if self.fails_next_write:
            self.fails_next_write = False
            for at in range(0, len(data), self._piece):
                if self._chance.random() < 0.5:
                    self._put(offset + at, data[at : at + self._piece])
            raise IoFailed("write: media error", errno.EIO)
        self._put(offset, data)

    def _put(self, offset: int, data: bytes) -> None:
        super().write(offset, data)
        self._pending.append((offset, data))

    def flush(self) -> None:
        self.durable[:] = self.content
        self._pending.clear()

    def cut_power(self) -> None:
        share = self._chance.choice((0.0, 0.3, 0.7, 1.0))
        for offset, data in self._pending:
            for at in range(0, len(data), self._piece):
                if self._chance.random() < share:
                    piece = data[at : at + self._piece]
                    self.durable[offset + at : offset + at + len(piece)] = piece
        self._pending.clear()
        self.content[:] = self.durable


class Defective:
    """A right system, seen through what ``mangle`` makes of each answer: first block, then bytes."""

    def __init__(self, system: SystemUnderTest, mangle: Callable[[int, bytes], bytes]) -> None:
        self._system = system
        self._mangle = mangle
        self.is_on = False

    def describe(self) -> SelfDescription:
        return self._system.describe()

    def put(self, first: int, data: bytes) -> None:
        self._system.put(first, data)

    def get(self, first: int, count: int) -> bytes:
        data = self._system.get(first, count)
        return self._mangle(first, data) if self.is_on else data

    def flush(self) -> None:
        self._system.flush()

    def recovery_state(self) -> RecoveryState:
        return self._system.recovery_state()


class Swallowing(BlockSystem):
    """Acknowledges writes, and from a moment on does not do them."""

    swallows = False

    def put(self, first: int, data: bytes) -> None:
        if not self.swallows:
            super().put(first, data)


class Hanging(BlockSystem):
    """Does not come back from a read until it is let go."""

    def __init__(self, *arguments: object, **described: object) -> None:
        super().__init__(*arguments, **described)  # type: ignore[arg-type]
        self.let_go = threading.Event()

    def get(self, first: int, count: int) -> bytes:
        self.let_go.wait()
        return super().get(first, count)


def whole_block(system: BlockSystem, atomic_bytes: int) -> BlockSystem:
    """The same system, which promises that so many bytes are written as a whole."""
    system._description = replace(system._description, atomic_bytes=atomic_bytes)
    return system


def sectors_of(system: SystemUnderTest, lba: int, generation: int, seed: int = SEED) -> bytes:
    """The sector that a run with this seed writes."""
    numbers = np.array([lba, generation], np.uint64)
    return Identity(system.describe().name, seed).content(numbers[:1], numbers[1:])


def oracle_of(
    system: SystemUnderTest, *, seconds: float = 60.0, limit_s: float = 30.0, batch: int = 4
) -> RecoveryOracle:
    """An oracle with small requests, so that small systems take several."""
    deadline = Deadline.after(RealClock(), seconds)
    batch_bytes = batch * system.describe().block_bytes
    return RecoveryOracle(system, deadline, seed=SEED, call_limit_s=limit_s, batch_bytes=batch_bytes)
