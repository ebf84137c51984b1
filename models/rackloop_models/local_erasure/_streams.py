"""Files that are read from one end to the other: what is asked of one, and the groups to be read before they are."""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future
from typing import Any

from rackloop_models.local_erasure._file import File, Group
from rackloop_models.local_erasure._layout import SECTOR_BYTES
from rackloop_models.local_erasure._volume import Volume

# A kernel that reads ahead has several requests under way, which come in any order.
_REMEMBERED = 4
# So many requests that follow each other are no accident.
_IN_SEQUENCE = 3
# How far to read ahead at first, and at most where there is memory for it.
_FIRST_BYTES = 2 << 20
_MOST_BYTES = 64 << 20


class Stream:
    """The reads of one holder of a file, and whether they go through it in sequence.

    They begin to be a stream with three that follow each other, whatever their order, and are one for as long as each
    lies in what was read or read ahead lately: between ``tail`` and ``front``. ``window_bytes`` is how far to read
    ahead: further each time.
    """

    def __init__(self) -> None:
        self.tail = self.front = 0
        self.window_bytes = 0
        self._recent: deque[tuple[int, int]] = deque(maxlen=_REMEMBERED)

    def goes_on(self, start: int, stop: int) -> bool:
        """Whether a read of these bytes is one of a stream."""
        self._recent.append((start, stop))
        is_on = bool(self.window_bytes) and self.tail <= start <= self.front
        chain = self._chain()
        if not is_on and len(chain) < _IN_SEQUENCE:
            self.window_bytes = 0
            return False
        self.window_bytes = min(2 * self.window_bytes, _MOST_BYTES) if is_on else _FIRST_BYTES
        begun = [start for start, _ in self._recent if start >= self.tail] if is_on else []
        self.tail = min(begun + [start for start, _ in chain])
        self.front = max(self.front if is_on else 0, stop)
        return True

    def _chain(self) -> list[tuple[int, int]]:
        """Those of the reads of late that follow each other without a gap, with the last of them among them."""
        last = self._recent[-1]
        chain = [last]
        ordered = sorted(set(self._recent))
        at = ordered.index(last)
        for before in reversed(ordered[:at]):
            if before[1] != chain[0][0]:
                break
            chain.insert(0, before)
        for behind in ordered[at + 1 :]:
            if chain[-1][1] != behind[0]:
                break
            chain.append(behind)
        return chain


class Streams:
    """Has groups be read ahead of the streams of a volume, for one thread at a time."""

    def __init__(self, volume: Volume) -> None:
        self._volume = volume
        self._group_bytes = volume.layout.k * SECTOR_BYTES

    def follow(self, stream: Stream, file: File, offset: int, length: int) -> list[Future[Any]]:
        """Look at a read before it is done: what it waits for is to be waited for where others are not held up."""
        ahead = self._volume.drive.ahead
        stop = min(offset + length, file.size_bytes)
        if ahead.is_off or stop <= offset or offset < 0:
            return []
        if not stream.goes_on(offset, stop):
            ahead.give_up(stream)
            return []
        ahead.use(stream)
        first, last = offset // self._group_bytes, (stop - 1) // self._group_bytes
        self._leave(stream, file)
        for index in range(first, -(-min(stop + stream.window_bytes, file.size_bytes) // self._group_bytes)):
            group = file.groups.get(index)
            if group is None or not self._is_to_read(group):
                continue
            if not ahead.want(stream, group.start, group.stored + self._volume.layout.m):
                break
            stream.front = max(stream.front, (index + 1) * self._group_bytes)
        awaited = (file.groups.get(index) for index in range(first, last + 1))
        futures = (ahead.under_way(group.start, 1) for group in awaited if group is not None)
        return [future for future in futures if future is not None]

    def give_up(self, stream: Stream) -> None:
        """End the stream: nothing more is read."""
        self._volume.drive.ahead.give_up(stream)

    def _is_to_read(self, group: Group) -> bool:
        """Whether a group is on the drive as a whole, and not in memory."""
        cached = group.cached
        if group.stale or not group.stored:
            return False
        return cached is None or not (cached.dirty.any() or cached.present[: group.stored].all())

    def _leave(self, stream: Stream, file: File) -> None:
        """Let go of the groups that a stream is past."""
        passed = stream.tail // self._group_bytes
        ahead = self._volume.drive.ahead
        held = set(ahead.firsts(stream))
        kept = {
            group.start for index in range(passed, self._last(stream)) if (group := file.groups.get(index)) is not None
        }
        ahead.give_up(stream, below=lambda start: start in held - kept)

    def _last(self, stream: Stream) -> int:
        return -(-stream.front // self._group_bytes) + 1
