"""Sectors of a drive that are read before they are asked for, by a thread of their own, in bounded memory."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import Condition

from rackloop_models.erasure import Bytes

# More streams than these share the memory no further: the one that was read from longest ago is given up.
_MOST_STREAMS = 8
# Pieces that follow each other are read as one, up to so many sectors: between two reads the drive has nothing to do,
# and what fails there costs a revolution.
_JOINED_SECTORS = 1024


@dataclass(frozen=True)
class Found:
    """Sectors as the drive gave them; ``bad`` are the rows that it did not, and ``requests`` what it was asked."""

    rows: Bytes
    bad: frozenset[int] = frozenset()
    requests: int = 0

    def part(self, start: int, stop: int) -> Found:
        """The rows ``start`` to ``stop - 1``."""
        return Found(self.rows[start:stop], frozenset(row - start for row in self.bad if start <= row < stop))


@dataclass(eq=False)
class _Piece:
    first: int
    count: int
    future: Future[Found | None] = field(default_factory=Future)


class ReadAhead:
    """Reads that were not asked for yet, of no more than ``most_sectors`` sectors together.

    ``read`` reads sectors, given the first and how many, and is called by one thread, one call after the other, as they
    were wanted; it gives None where they cannot be read as a whole. ``count`` is told of what it gave, by that thread.
    Each stream has an equal share of the memory. All but ``giving_way`` and waiting is for one thread at a time.
    """

    def __init__(
        self, read: Callable[[int, int], Found | None], most_sectors: int, *, count: Callable[[Found], None]
    ) -> None:
        self._read = read
        self._most = most_sectors
        self._count = count
        self._streams: OrderedDict[Hashable, dict[int, _Piece]] = OrderedDict()
        self._executor: ThreadPoolExecutor | None = None
        self._changed = Condition()
        self._waiting: deque[_Piece] = deque()
        self._is_reading = False
        self._asking = 0

    @property
    def is_off(self) -> bool:
        """Whether there is no memory to read ahead to."""
        return self._most == 0

    @property
    def held_sectors(self) -> int:
        """The number of sectors in memory or on their way to it."""
        return sum(piece.count for piece in self._pieces())

    def want(self, stream: Hashable, first: int, count: int) -> bool:
        """Have sectors be read for a stream, where they are not; False where there is no memory for them now."""
        pieces = self._streams.get(stream, {})
        if first in pieces:
            return True
        share = self._most // min(len(self._streams.keys() | {stream}), _MOST_STREAMS)
        if sum(piece.count for piece in pieces.values()) + count > share:
            return False
        self._make_room(count, share)
        piece = self._streams.setdefault(stream, {})[first] = _Piece(first, count)
        with self._changed:
            self._waiting.append(piece)
            if not self._is_reading:
                self._is_reading = True
                self._executor = self._executor or ThreadPoolExecutor(1, "read ahead")
                self._executor.submit(self._read_waiting)
        return True

    def use(self, stream: Hashable) -> None:
        """A stream is read from: others are given up before it."""
        if stream in self._streams:
            self._streams.move_to_end(stream)

    def under_way(self, first: int, count: int) -> Future[Found | None] | None:
        """A future to wait for before sectors that are being read ahead are there."""
        piece = self._covering(first, count)
        return piece.future if piece is not None and not piece.future.done() else None

    def take(self, first: int, count: int) -> Found | None:
        """Sectors that were read ahead, once they are there; None where they were not, or could not be."""
        piece = self._covering(first, count)
        if piece is None:
            return None
        found = piece.future.result()
        if found is None:
            self.forget(piece.first, piece.count)
            return None
        return found.part(first - piece.first, first - piece.first + count)

    def forget(self, first: int, count: int) -> None:
        """Drop what was read of these sectors, or is being read: it is not what they hold any more."""
        for pieces in self._streams.values():
            for piece in list(pieces.values()):
                if piece.first < first + count and first < piece.first + piece.count:
                    self._drop(pieces, piece)

    def give_up(self, stream: Hashable, *, below: Callable[[int], bool] = lambda _first: True) -> None:
        """A stream does not go on, or is past the pieces whose first sector is ``below``."""
        pieces = self._streams.get(stream, {})
        for piece in list(pieces.values()):
            if below(piece.first):
                self._drop(pieces, piece)
        if not pieces:
            self._streams.pop(stream, None)

    def firsts(self, stream: Hashable) -> list[int]:
        """The first sectors of what is held for a stream."""
        return list(self._streams.get(stream, {}))

    def clear(self) -> None:
        """Give everything up; nothing is being read ahead any more on return."""
        for stream in list(self._streams):
            self.give_up(stream)
        with self._changed:
            self._changed.wait_for(lambda: not self._is_reading)

    def end(self) -> None:
        """Give everything up for good."""
        self._most = 0
        self.clear()
        if self._executor is not None:
            self._executor.shutdown(wait=True)

    @contextmanager
    def giving_way(self) -> Iterator[None]:
        """While a caller waits for the drive: nothing more is read ahead meanwhile than what is under way."""
        with self._changed:
            self._asking += 1
        try:
            yield
        finally:
            with self._changed:
                self._asking -= 1
                self._changed.notify_all()

    def _read_waiting(self) -> None:
        while pieces := self._next():
            first, count = pieces[0].first, sum(piece.count for piece in pieces)
            found = None
            # Whatever goes wrong, who reads the sectors themselves will hear of it.
            with suppress(Exception):
                found = self._read(first, count)
            if found is not None:
                self._count(found)
            for piece in pieces:
                start = piece.first - first
                piece.future.set_result(found and found.part(start, start + piece.count))

    def _next(self) -> list[_Piece]:
        """Pieces to read now, as one; none where nothing waits, and the thread is done."""
        with self._changed:
            self._changed.wait_for(lambda: self._asking == 0 or not self._waiting)
            pieces: list[_Piece] = []
            sectors = 0
            while self._waiting:
                piece = self._waiting[0]
                is_next = not pieces or pieces[-1].first + pieces[-1].count == piece.first
                if not is_next or (pieces and sectors + piece.count > _JOINED_SECTORS):
                    break
                piece.future.set_running_or_notify_cancel()
                pieces.append(self._waiting.popleft())
                sectors += piece.count
            if not pieces:
                self._is_reading = False
                self._changed.notify_all()
            return pieces

    def _make_room(self, count: int, share: int) -> None:
        """Have others keep to their shares, the newest of theirs going first; and the least used have none."""
        while len(self._streams) >= _MOST_STREAMS:
            self.give_up(next(iter(self._streams)))
        for pieces in list(self._streams.values()):
            while pieces and self.held_sectors + count > self._most:
                if sum(piece.count for piece in pieces.values()) <= share:
                    break
                self._drop(pieces, pieces[next(reversed(pieces))])

    def _drop(self, pieces: dict[int, _Piece], piece: _Piece) -> None:
        del pieces[piece.first]
        with self._changed:
            if piece in self._waiting:
                self._waiting.remove(piece)
                piece.future.cancel()
                piece.future.set_running_or_notify_cancel()
                self._changed.notify_all()

    def _covering(self, first: int, count: int) -> _Piece | None:
        return next(
            (piece for piece in self._pieces() if piece.first <= first and first + count <= piece.first + piece.count),
            None,
        )

    def _pieces(self) -> Iterator[_Piece]:
        for pieces in list(self._streams.values()):
            yield from list(pieces.values())
