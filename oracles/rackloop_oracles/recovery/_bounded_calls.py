"""Calls of the system under test with a time limit, made on a thread of their own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Generic, TypeVar

from rackloop.clock import Deadline
from rackloop.errors import DeadlineExceeded

T = TypeVar("T")


class BoundedCalls:
    """One thread that makes the calls of one system, one after the other.

    A call that does not return within ``limit_s``, or by ``deadline``, raises DeadlineExceeded; the system is then
    asked nothing more: what it is still doing is unknown. A call made from within a call is part of that one.
    """

    def __init__(self, limit_s: float, deadline: Deadline) -> None:
        self._limit_s = limit_s
        self._deadline = deadline
        self._hangs_in = ""
        self._queue: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="system under test", daemon=True)
        self._thread.start()

    @property
    def have_ended(self) -> bool:
        """Whether no more calls are made: time is over, or one hangs."""
        return bool(self._hangs_in) or self._deadline.is_over()

    def start(self, what: str, call: Callable[[], T]) -> Pending[T]:
        """Have the call made. Raises DeadlineExceeded where time is over or an earlier call hangs."""
        if self._hangs_in:
            raise DeadlineExceeded(f"{what}: the system has still not answered {self._hangs_in}")
        if self._deadline.is_over():
            raise DeadlineExceeded(f"{what}: the time given is over")
        future: Future[T] = Future()

        def make() -> None:
            try:
                answer = call()
            except BaseException as error:  # noqa: BLE001 - it is raised where the answer is waited for
                future.set_exception(error)
            else:
                future.set_result(answer)

        if threading.current_thread() is self._thread:
            make()
        else:
            self._queue.put(make)
        return Pending(self, what, future)

    def run(self, what: str, call: Callable[[], T], *, is_long: bool = False) -> T:
        """Have the call made, and return or raise what it does. A long one may last until the deadline."""
        return self.start(what, call).answer(is_long=is_long)

    def wait(self, what: str, future: Future[T], *, is_long: bool) -> T:
        """The answer of a call that was started."""
        left_s = self._deadline.remaining_s()
        if not is_long:
            left_s = min(self._limit_s, left_s)
        try:
            return future.result(timeout=left_s)
        except TimeoutError:
            if future.done():
                raise
            self._hangs_in = what
            raise DeadlineExceeded(f"{what} did not return in {left_s:g} s; the system is asked no more") from None

    def close(self) -> None:
        """End the thread, once the call it is in returns."""
        self._queue.put(None)

    def _work(self) -> None:
        while (make := self._queue.get()) is not None:
            make()


class Pending(Generic[T]):
    """A call that was started."""

    def __init__(self, calls: BoundedCalls, what: str, future: Future[T]) -> None:
        self._calls = calls
        self._what = what
        self._future = future

    def answer(self, *, is_long: bool = False) -> T:
        """The value it returned. Raises what it raised, and DeadlineExceeded where it does not return in time."""
        return self._calls.wait(self._what, self._future, is_long=is_long)
