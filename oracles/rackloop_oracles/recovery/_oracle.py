"""The oracle: identified blocks written to a system under test, read back and judged by the history."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import numpy as np

from rackloop.abilities.blocks import IoFailed
from rackloop.clock import Deadline
from rackloop.errors import BadInput
from rackloop_oracles.recovery._bounded_calls import BoundedCalls, Pending
from rackloop_oracles.recovery._content import Content, Found, as_sectors, found_in
from rackloop_oracles.recovery._history import History, Write
from rackloop_oracles.recovery._sectors import SECTOR_BYTES, U64, Identity
from rackloop_oracles.recovery._system import (
    BlocksMissing,
    BlocksUnreadable,
    DropsCaches,
    Placed,
    RecoveryState,
    Repairs,
    SelfDescription,
    Stripe,
    SystemUnderTest,
)
from rackloop_oracles.recovery._verdicts import LOUD, Judged, Observation, Outcome, judged

BATCH_BYTES = 4 << 20


@dataclass(frozen=True)
class Refusal:
    """A write, a flush or a repair that the system did not do, and what it said."""

    what: str
    error: str

    def __str__(self) -> str:
        return f"{self.what} was refused: {self.error}"


@dataclass(frozen=True)
class _Withheld:
    """The words for blocks that were not given together, each of which was given when it was asked for alone."""

    said: str


_Answer = bytes | Exception | _Withheld


@dataclass
class Reading:
    """The result of a verification: the number of written blocks, and those that were not as last acknowledged."""

    blocks: int = 0
    observations: list[Observation] = field(default_factory=list)

    def add(self, other: Reading) -> None:
        """Take in what another one saw."""
        self.blocks += other.blocks
        self.observations += other.observations


class RecoveryOracle:
    """One system, one run: writes blocks that say who they are, keeps the history, and reads back. A context manager.

    ``seed`` and the system's name are in every block, so a block of another run is known as such. No call of the
    system lasts longer than ``call_limit_s``, and none begins after ``deadline``: DeadlineExceeded. Requests have up
    to ``batch_bytes``. Raises BadInput where the system's description makes no sense. For one thread.
    """

    def __init__(
        self,
        system: SystemUnderTest,
        deadline: Deadline,
        *,
        seed: int,
        call_limit_s: float = 60.0,
        batch_bytes: int = BATCH_BYTES,
    ) -> None:
        self._calls = BoundedCalls(call_limit_s, deadline)
        self.system = system
        self.deadline = deadline
        try:
            self.description = self._calls.run("describe", system.describe)
            _require_blocks(self.description)
            self._identity = Identity(self.description.name, seed)
        except BaseException:
            self._calls.close()
            raise
        block_bytes = self.description.block_bytes
        self.history = History(self.description.blocks)
        self.refusals: list[Refusal] = []
        self._sectors = block_bytes // SECTOR_BYTES
        self._batch = max(1, batch_bytes // block_bytes)

    @property
    def has_ended(self) -> bool:
        """Whether the system is asked nothing more: time is over, or a call of it hangs."""
        return self._calls.have_ended

    @property
    def atomic_bytes(self) -> int:
        """The unit that an unacknowledged write leaves old or new as a whole."""
        return self.description.atomic_bytes or self.description.block_bytes

    def write(self, first: int, count: int) -> int:
        """Write the next generation of these blocks; returns how many were acknowledged.

        What the system refuses is in ``refusals``. While one batch is written, the next is made.
        """
        self._require_inside(first, count)
        acknowledged = 0
        pending: tuple[Write, Pending[None]] | None = None
        for start, length in self._batches(first, count):
            write = self.history.begin_write(start, length)
            generations = np.full(length * self._sectors, write.generation, np.uint64)
            data = self._identity.content(self._lbas(start, length), generations)
            if pending:
                acknowledged += self._end(*pending)
            pending = write, self._calls.start(f"put of {_span(start, length)}", _putting(self.system, start, data))
        return acknowledged + (self._end(*pending) if pending else 0)

    def flush(self) -> bool:
        """Have the system flush; returns whether it acknowledged."""
        began = self.history.moment()
        try:
            self._calls.run("flush", self.system.flush)
        except (BlocksUnreadable, IoFailed) as error:
            require_loud(error)
            self.refusals.append(Refusal("flush", str(error)))
            return False
        self.history.note_flush(began)
        return True

    def cut_power(self, cut: Callable[[], None]) -> None:
        """Have ``cut`` take the system's power and bring it back, until the deadline, and note it."""
        self._calls.run("power cut", cut, is_long=True)
        self.power_was_cut()

    def power_was_cut(self) -> None:
        """Note that the system lost power and is back: what was not flushed may be lost."""
        self.history.note_power_cut()

    def recovery_state(self) -> RecoveryState:
        """The system's own account of its recovery."""
        return self._calls.run("recovery state", self.system.recovery_state)

    def forget(self) -> None:
        """Have the system drop what it holds in memory, where it can."""
        if isinstance(self.system, DropsCaches):
            self._calls.run("forget", self.system.forget)

    def repair(self, pause: Callable[[], None]) -> bool:
        """Have the system bring back what was lost, until the deadline; False where it has nothing to do so.

        ``pause`` is called in between; it may write and verify. A repair that the system refuses is in ``refusals``.
        """
        if not isinstance(self.system, Repairs):
            return False
        system = self.system
        try:
            self._calls.run("repair", lambda: system.repair(pause), is_long=True)
        except (BlocksUnreadable, IoFailed) as error:
            require_loud(error)
            self.refusals.append(Refusal("repair", str(error)))
        return True

    def places(self, address: int) -> Stripe | None:
        """The place of a block's stripe now; None where the system does not say."""
        if not isinstance(self.system, Placed):
            return None
        system = self.system
        return self._calls.run(f"places of block {address}", lambda: system.places(address))

    def verify(self, first: int, count: int, where: str = "") -> Reading:
        """Read these blocks and see which are not as last acknowledged. Blocks never written are not looked at.

        While one batch is looked at, the next is read. Raises what the system does, but for errors that say that
        blocks cannot be read: which ones is found out, and observed. Where each of them is given then, it is the first.
        """
        self._require_inside(first, count)
        reading = Reading()
        for start, length, began, answer in self._answers(first, count):
            self._look(reading, start, length, began, answer, where)
        return reading

    def verify_all(self, where: str = "") -> Reading:
        """Verify every block that was ever written."""
        return self.verify(0, self.description.blocks, where)

    def judge(self, reading: Reading) -> list[Judged]:
        """The observations of a reading held against the rules: those that are not right."""
        found = (judged(observation, self.atomic_bytes) for observation in reading.observations)
        return [one for one in found if one.outcome is not Outcome.RIGHT]

    def close(self) -> None:
        """Let go of the system. A call that hangs is left to itself."""
        self._calls.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _end(self, write: Write, pending: Pending[None]) -> int:
        try:
            pending.answer()
        except (BlocksUnreadable, IoFailed) as error:
            self.history.end_write(write, is_acknowledged=False)
            require_loud(error)
            self.refusals.append(Refusal(f"put of {_span(write.first, write.count)}", str(error)))
            return 0
        self.history.end_write(write, is_acknowledged=True)
        return write.count

    def _answers(self, first: int, count: int) -> Iterator[tuple[int, int, int, _Answer]]:
        """Ranges of blocks that hold written ones, when they were asked for, and what came: bytes or a loud error."""
        pending: tuple[int, int, int, Pending[bytes]] | None = None
        for start, length in self._batches(first, count):
            if not self.history.is_written[start : start + length].any():
                continue
            started = (start, length, self.history.moment(), self._start_get(start, length))
            if pending:
                yield from self._pieces(*pending)
            pending = started
        if pending:
            yield from self._pieces(*pending)

    def _pieces(
        self, start: int, length: int, began: int, pending: Pending[bytes]
    ) -> Iterator[tuple[int, int, int, _Answer]]:
        """The range as a whole where it could be read, else halved until each part could, or is one block.

        Where all parts could, though together they could not, what was said of them follows.
        """
        try:
            yield start, length, began, pending.answer()
        except (BlocksUnreadable, IoFailed) as error:
            require_loud(error)
            if length == 1:
                yield start, 1, began, error
                return
            is_withheld = bool(self.history.is_written[start : start + length].all())
            for part in (range(start, start + length // 2), range(start + length // 2, start + length)):
                if self.history.is_written[part.start : part.stop].any():
                    asked = self.history.moment()
                    for piece in self._pieces(part.start, len(part), asked, self._start_get(part.start, len(part))):
                        is_withheld &= not isinstance(piece[-1], Exception | _Withheld)
                        yield piece
            if is_withheld:
                yield start, 1, began, _Withheld(f"{_span(start, length)} together: {error}")

    def _start_get(self, start: int, length: int) -> Pending[bytes]:
        return self._calls.start(f"get of {_span(start, length)}", lambda: self.system.get(start, length))

    def _look(self, reading: Reading, start: int, length: int, began: int, answer: _Answer, where: str) -> None:
        ended = self.history.moment()
        written = self.history.is_written[start : start + length]
        newest = self.history.newest[start : start + length].copy()
        if not isinstance(answer, _Withheld):
            reading.blocks += int(written.sum())
        founds: dict[int, list[tuple[int, Found]]] = {}
        if isinstance(answer, bytearray | memoryview):
            # What an adapter was given by others, and passed on.
            answer = bytes(answer)
        if isinstance(answer, bytes) and len(answer) == length * self.description.block_bytes:
            lbas, generations = self._lbas(start, length), np.repeat(newest, self._sectors)
            for index, found in found_in(self._identity, as_sectors(answer), lbas, generations):
                founds.setdefault(index // self._sectors, []).append((index % self._sectors, found))
        else:
            found = _not_given(answer, length * self.description.block_bytes)
            founds = {block: [(0, found)] for block in range(length)}
        seen = written.copy()
        for block, what in founds.items():
            seen[block] = False
            if written[block]:
                reading.observations.append(
                    self._observed(start + block, what, int(newest[block]), began, ended, where)
                )
        blocks = np.flatnonzero(seen)
        self.history.note_seen(blocks + start, newest[blocks], began)

    def _observed(
        self, block: int, founds: list[tuple[int, Found]], newest: int, began: int, ended: int, where: str
    ) -> Observation:
        candidates = self.history.candidates(block, began, ended)
        has_newest = len(founds) < self._sectors and founds[0][1].content not in LOUD
        observation = Observation(block, tuple(founds), has_newest, newest, candidates, where, self._sectors)
        # A block that is whole and of one write, or of zeros, has shown which of the candidates it is.
        shown = {_shown(found) for _, found in founds}
        generation = next(iter(shown))
        if len(founds) == self._sectors and len(shown) == 1 and generation in candidates:
            self.history.note_seen(np.array([block]), np.array([generation], np.uint64), began)
        return observation

    def _batches(self, first: int, count: int) -> Iterator[tuple[int, int]]:
        for start in range(first, first + count, self._batch):
            yield start, min(self._batch, first + count - start)

    def _lbas(self, start: int, length: int) -> U64:
        return np.arange(start * self._sectors, (start + length) * self._sectors, dtype=np.uint64)

    def _require_inside(self, first: int, count: int) -> None:
        if first < 0 or count < 0 or first + count > self.description.blocks:
            raise BadInput(
                f"{_span(first, count)} are asked for, and {self.description.name} has {self.description.blocks} blocks"
            )


def _require_blocks(description: SelfDescription) -> None:
    size = description.block_bytes
    if size <= 0 or size % SECTOR_BYTES or description.blocks <= 0:
        raise BadInput(
            f"{description.name} has {description.blocks} blocks of {size} bytes: identified blocks need at least one, "
            f"of a multiple of {SECTOR_BYTES} bytes"
        )


def require_loud(error: BlocksUnreadable | IoFailed) -> None:
    """Raise ``error`` on where it does not say that data cannot be read: it is the lab's then."""
    if isinstance(error, IoFailed) and not error.is_unreadable:
        raise error


def _shown(found: Found) -> int | None:
    """The generation of a whole sector, 0 of zeros."""
    match found.content:
        case Content.STALE | Content.NEWER:
            return found.generation
        case Content.BLANK:
            return 0
        case _:
            return None


def _not_given(answer: _Answer, expected_bytes: int) -> Found:
    match answer:
        case BlocksMissing():
            return Found(Content.MISSING, error=str(answer))
        case Exception():
            return Found(Content.UNREADABLE, error=str(answer))
        case _Withheld():
            return Found(Content.UNREADABLE, error=answer.said)
        case _:
            return Found(Content.CORRUPT, error=f"{len(answer)} bytes where {expected_bytes} were asked for")


def _putting(system: SystemUnderTest, start: int, data: bytes) -> Callable[[], None]:
    return lambda: system.put(start, data)


def _span(first: int, count: int) -> str:
    return f"block {first}" if count == 1 else f"blocks {first} to {first + count - 1}"
