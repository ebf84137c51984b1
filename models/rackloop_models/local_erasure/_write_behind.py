"""Writes that the caller need not wait for: a thread of their own carries them out, in order, from bounded memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Condition


class WriteBehind:
    """Writes to a drive as ``write`` does them, given an offset and a buffer; up to ``most_bytes`` of them wait.

    To those who come after a power cut they are no other than writes that the drive has in a cache of its own: nothing
    of them is sure before ``drain`` has returned and the drive was flushed. One that fails is kept, and everything
    behind it; it is tried again by the next call, and raises there when it fails again: none is lost as long as
    there is anybody to write it. Any thread may call.
    """

    def __init__(self, write: Callable[[int, memoryview], None], most_bytes: int) -> None:
        self._write = write
        self._most = most_bytes
        self._waiting: deque[tuple[int, memoryview]] = deque()
        self._bytes = 0
        self._failed: BaseException | None = None
        self._is_writing = False
        self._changed = Condition()
        self._executor: ThreadPoolExecutor | None = None

    def write(self, offset: int, content: memoryview) -> None:
        """Have bytes be written; the buffer belongs to the caller again.

        Raises what an earlier write raised that still cannot be carried out, with nothing taken on.
        """
        kept = memoryview(bytes(content))
        with self._changed:
            self._try_again()
            self._wait_for(lambda: not self._waiting or self._bytes + len(kept) <= self._most)
            self._waiting.append((offset, kept))
            self._bytes += len(kept)
            self._begin()

    def settle(self, offset: int, length: int) -> None:
        """Return when no write to these bytes waits. Raises as ``write``."""
        with self._changed:
            if self._touches(offset, length):
                self._try_again()
                self._wait_for(lambda: not self._touches(offset, length))

    def drain(self) -> None:
        """Return when every write was carried out. Raises as ``write``."""
        with self._changed:
            self._try_again()
            self._wait_for(lambda: not self._waiting)

    def discard(self) -> None:
        """Carry out nothing more but what is under way."""
        with self._changed:
            while self._waiting and (len(self._waiting) > 1 or not self._is_writing):
                self._bytes -= len(self._waiting.pop()[1])
            self._failed = None
            self._changed.notify_all()

    def end(self) -> None:
        """Have no thread any more. What waits, does so for ever."""
        if self._executor is not None:
            self._executor.shutdown(wait=True)

    def _touches(self, offset: int, length: int) -> bool:
        return any(at < offset + length and offset < at + len(content) for at, content in self._waiting)

    def _try_again(self) -> None:
        if self._failed is not None:
            self._failed = None
            first = self._waiting[0]
            self._begin()
            self._wait_for(lambda: not self._waiting or self._waiting[0] is not first)

    def _wait_for(self, is_done: Callable[[], bool]) -> None:
        self._changed.wait_for(lambda: self._failed is not None or is_done())
        if not is_done() and self._failed is not None:
            raise self._failed

    def _begin(self) -> None:
        if not self._is_writing and self._failed is None:
            self._executor = self._executor or ThreadPoolExecutor(1, "write behind")
            self._is_writing = True
            self._executor.submit(self._carry_out)

    def _carry_out(self) -> None:
        while True:
            with self._changed:
                if not self._waiting:
                    self._is_writing = False
                    return
                offset, content = self._waiting[0]
            try:
                self._write(offset, content)
            except BaseException as error:  # noqa: BLE001 - whoever calls next is told
                with self._changed:
                    self._failed = error
                    self._is_writing = False
                    self._changed.notify_all()
                return
            with self._changed:
                self._waiting.popleft()
                self._bytes -= len(content)
                self._changed.notify_all()
