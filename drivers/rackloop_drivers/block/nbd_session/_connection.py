"""One connection to an NBD export, and requests in flight on it."""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from threading import Lock

from rackloop.abilities.blocks import IoFailed
from rackloop.clock import Clock, Deadline
from rackloop.errors import DeadlineExceeded, NotConnected, RackloopError, ToolError
from rackloop_drivers.block.nbd_session._library import Completion, library, reason
from rackloop_drivers.block.nbd_session._way import Way

# How soon a request in flight notices that its connection was given up.
_LOOK_MS = 20
# Enough to keep the other side busy while the next is sent, and little to wait for when one fails.
_IN_FLIGHT = 8
# A greeting is no request: however soon those are to be answered, it has this time.
_GREETS_WITHIN_S = 5.0


@dataclass(frozen=True)
class Request:
    """One request: libnbd's function for it, and its arguments between the handle and the completion."""

    function: str
    arguments: tuple[object, ...] = ()


class NbdConnection:
    """One connection to the export that ``way`` leads to: one call at a time, its requests in flight together.

    Each request is answered within ``within_s`` of the answer before it, the greeting within 5 s at least. The way is
    closed with it. Raises as the way does where it cannot be gone, DeadlineExceeded where nothing answers in time,
    ToolError where libnbd is not installed.
    """

    def __init__(self, way: Way, clock: Clock, within_s: float) -> None:
        self.target = str(way)
        self._way = way
        self._clock = clock
        self._within_s = within_s
        self._lock = Lock()
        self._is_given_up = False
        self._handle: int | None = None
        try:
            self._library = library()
            self._handle = self._library.nbd_create()
            self._connect()
        except BaseException:
            self._end()
            raise

    def carry_out(
        self,
        what: str,
        requests: Iterable[Request],
        *,
        permitted: Collection[int] = frozenset(),
        in_flight: int = _IN_FLIGHT,
    ) -> list[int]:
        """Return when every request was answered. Their buffers are not used any more then, nor after an error.

        Returns the numbers of those that ended with a ``permitted`` errno, in order. Raises IoFailed with the first
        other error, after which no more of them were sent. Raises NotConnected, and DeadlineExceeded, after which the
        connection is closed.
        """
        with self._lock:
            if self._handle is None:
                raise NotConnected(f"{self.target}: the session is closed; open another")
            try:
                return self._carry_out(what, deque(enumerate(requests)), permitted, in_flight)
            except IoFailed:
                raise
            except RackloopError:
                # Buffers must not be written to once they are given up: no handle, no write.
                self._end()
                raise
            except BaseException:
                self._settle()
                raise

    def close(self) -> None:
        """End the connection. A request in flight raises NotConnected, and may or may not have been carried out."""
        self._is_given_up = True
        with self._lock:
            self._end()

    def _connect(self) -> None:
        if self._handle is None:
            raise ToolError(f"libnbd has no room for a connection: {reason()}")
        self._way.connect(self._library, self._handle)
        within_s = max(self._within_s, _GREETS_WITHIN_S)
        deadline = Deadline.after(self._clock, within_s)
        while self._library.nbd_aio_is_connecting(self._handle) > 0:
            self._look("its greeting", deadline, within_s)
        if self._library.nbd_aio_is_ready(self._handle) <= 0:
            raise self._way.lost(reason())

    def _carry_out(
        self, what: str, waiting: deque[tuple[int, Request]], permitted: Collection[int], in_flight: int
    ) -> list[int]:
        flying: dict[int, int] = {}
        ended: list[int] = []
        failed: IoFailed | None = None
        deadline = Deadline.after(self._clock, self._within_s)
        while flying or waiting:
            while waiting and len(flying) < in_flight:
                number, request = waiting.popleft()
                sent = getattr(self._library, request.function)(
                    self._handle, *request.arguments, Completion(), ctypes.c_uint32(0)
                )
                if sent < 0:
                    failed = failed or self._failure(what)
                    waiting.clear()
                else:
                    flying[sent] = number
            was_answered = False
            while (cookie := self._library.nbd_aio_peek_command_completed(self._handle)) > 0:
                is_good = self._library.nbd_aio_command_completed(self._handle, cookie) > 0
                if cookie not in flying:
                    # An interrupt left it, and nobody waits for it.
                    continue
                number = flying.pop(cookie)
                was_answered = True
                if is_good:
                    continue
                failure = self._failure(what)
                if failure.errno in permitted:
                    ended.append(number)
                else:
                    failed = failed or failure
                    waiting.clear()
            if was_answered:
                deadline = Deadline.after(self._clock, self._within_s)
            elif flying:
                self._look(what, deadline)
        if failed is not None:
            raise failed
        return sorted(ended)

    def _settle(self) -> None:
        """Wait for what an interrupt left in flight, so that the connection can be used to tidy up; else end it."""
        deadline = Deadline.after(self._clock, self._within_s)
        try:
            while self._library.nbd_aio_in_flight(self._handle) > 0:
                self._look("what was interrupted", deadline)
        except RackloopError:
            self._end()
        except BaseException:
            self._end()
            raise

    def _look(self, what: str, deadline: Deadline, within_s: float | None = None) -> None:
        """Wait a little for an answer, which is to come ``within_s``."""
        if self._is_given_up:
            raise NotConnected(f"{what} at {self.target}: the session was closed meanwhile")
        if deadline.is_over():
            raise DeadlineExceeded(f"{what} at {self.target} was not answered in {within_s or self._within_s:g} s")
        if self._library.nbd_poll(self._handle, _LOOK_MS) < 0:
            raise self._way.lost(reason())

    def _failure(self, what: str) -> IoFailed:
        """The error of a request that was answered with one. Raises where none is answered any more."""
        said, number = reason(), self._library.nbd_get_errno()
        if self._library.nbd_aio_is_dead(self._handle) > 0 or self._library.nbd_aio_is_closed(self._handle) > 0:
            raise self._way.lost(said)
        return IoFailed(f"{what} at {self.target}: {said}", number)

    def _end(self) -> None:
        handle, self._handle = self._handle, None
        if handle is not None:
            self._library.nbd_close(handle)
        self._way.close()
