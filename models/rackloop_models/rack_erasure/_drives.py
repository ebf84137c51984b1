"""The drives of a store as it reaches them now: requests to several at once, and which of them are gone."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from rackloop.abilities.blocks import BLOCK_BYTES, UNREADABLE_ERRNOS, Blocks, IoFailed
from rackloop.errors import LabError
from rackloop_models.rack_erasure._label import label_offsets

T = TypeVar("T")

_MOST_THREADS = 64


class Unreadable(Exception):
    """Some sector of a range cannot be read, though its drive answers."""


class DriveUnavailable(Exception):
    """A drive does not answer, or not to writes."""


@dataclass
class _Reached:
    blocks: Blocks | None
    why: str


class Drives:
    """Drives by number. Threads may share them; ``workers`` requests are under way at once, one makes them take turns.

    A drive that fails a write, or whose path fails, is gone from then on, until it is given anew. ``changes`` grows
    whenever one comes or goes.
    """

    def __init__(self, blocks: Sequence[Blocks | None], workers: int | None) -> None:
        self._reached = [_Reached(one, "" if one is not None else "was not there at the start") for one in blocks]
        self.changes = 0
        count = min(len(blocks), _MOST_THREADS) if workers is None else workers
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="stripe") if count > 1 else None

    def __len__(self) -> int:
        return len(self._reached)

    def is_up(self, number: int) -> bool:
        """Whether a drive can be reached, as far as is known."""
        return self._reached[number].blocks is not None

    def why_gone(self, number: int) -> str:
        """The reason why a drive is gone, "" for one that is not."""
        return self._reached[number].why

    def explain(self, number: int, why: str) -> None:
        """Say why a drive that is gone is."""
        if not self.is_up(number):
            self._reached[number].why = why

    def up(self) -> list[int]:
        """The drives that can be reached."""
        return [number for number in range(len(self._reached)) if self.is_up(number)]

    def come(self, number: int, blocks: Blocks) -> None:
        """A drive can be reached through these blocks."""
        self._reached[number] = _Reached(blocks, "")
        self.changes += 1

    def leave(self, number: int, why: str, blocks: Blocks | None = None) -> None:
        """A drive cannot be reached any more; through ``blocks``, where they are given: it may have others by now."""
        reached = self._reached[number]
        if reached.blocks is not None and (blocks is None or reached.blocks is blocks):
            self._reached[number] = _Reached(None, why)
            self.changes += 1

    def read(self, number: int, offset: int, length: int) -> bytes:
        """The bytes there. Raises Unreadable, DriveUnavailable."""
        blocks = self._blocks(number)
        try:
            return blocks.read(offset, length)
        except (LabError, OSError) as error:
            is_unreadable = isinstance(error, IoFailed | OSError) and error.errno in UNREADABLE_ERRNOS
            if is_unreadable and self._answers(blocks):
                raise Unreadable(str(error)) from error
            # Anything else is the path to the drive, or all of it.
            raise self._lost(number, blocks, error) from error

    def write(self, number: int, pieces: Iterable[tuple[int, bytes]]) -> None:
        """Put bytes at these offsets, and return when they stay. Raises DriveUnavailable."""
        blocks = self._blocks(number)
        try:
            for offset, data in pieces:
                blocks.write(offset, data)
            blocks.flush()
        except (LabError, OSError) as error:
            raise self._lost(number, blocks, error) from error

    def do(self, number: int, act: Callable[[Blocks], T]) -> T:
        """Do something with the blocks of a drive. Raises DriveUnavailable."""
        blocks = self._blocks(number)
        try:
            return act(blocks)
        except (LabError, OSError) as error:
            raise self._lost(number, blocks, error) from error

    def at_once(self, jobs: Sequence[Callable[[], T]]) -> list[T]:
        """Do these jobs at the same time; what they return, in order. None of them may call this again."""
        if self._pool is None or len(jobs) < 2:
            return [job() for job in jobs]
        running = [self._pool.submit(job) for job in jobs[1:]]
        # This thread takes one of them itself.
        first = jobs[0]()
        return [first, *(one.result() for one in running)]

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()

    @staticmethod
    def _answers(blocks: Blocks) -> bool:
        """Whether any of the places can be read that a drive has a label at: one that stopped fails everywhere."""
        for offset in label_offsets(blocks):
            try:
                blocks.read(offset, BLOCK_BYTES)
            except (LabError, OSError):
                continue
            return True
        return False

    def _blocks(self, number: int) -> Blocks:
        blocks = self._reached[number].blocks
        if blocks is None:
            raise DriveUnavailable(self._reached[number].why)
        return blocks

    def _lost(self, number: int, blocks: Blocks, error: Exception) -> DriveUnavailable:
        told = str(error) or (os.strerror(error.errno) if isinstance(error, OSError) and error.errno else repr(error))
        self.leave(number, told, blocks)
        return DriveUnavailable(told)
