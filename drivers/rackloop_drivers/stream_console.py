"""Consoles over a stream of bytes: stamps, deadlines and loss, whatever carries the stream."""

from __future__ import annotations

import contextlib
import os
import select
import socket
from collections.abc import Callable
from threading import Lock
from typing import Protocol

from rackloop.abilities import Heard
from rackloop.clock import Clock, Deadline
from rackloop.errors import DeadlineExceeded, LabError, NotConnected

__all__ = ["MOST_BYTES", "DescriptorStream", "Stream", "StreamConsole"]

MOST_BYTES = 16_384
"""The most that one read takes; where it does, there may be more that has come already."""

# What has come cannot be older than the last look, so this is how well its moment is known.
_LOOK_S = 0.05


class Stream(Protocol):
    """Bytes both ways. What is lost raises NotConnected."""

    def read(self, timeout_s: float) -> bytes:
        """Take at most ``MOST_BYTES`` that have come, waiting ``timeout_s`` for the first; empty for none."""
        ...

    def write(self, data: bytes, deadline: Deadline) -> None:
        """Send all of ``data``."""
        ...

    def wake(self) -> None:
        """Have a read that waits on another thread end at once, with what came or NotConnected: it is closed next."""
        ...

    def close(self) -> None:
        """Let go of it; closing twice is no error."""
        ...


class _HeldStream:
    """A stream that its last user closes: once it is closed its descriptors may be those of something else."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self._lock = Lock()
        self._users = 0
        self._is_over = False

    def begin(self) -> bool:
        """Use it, until :meth:`leave`; False where it is over."""
        with self._lock:
            self._users += not self._is_over
            return not self._is_over

    def leave(self) -> None:
        """Use it no more."""
        with self._lock:
            self._users -= 1
            is_last = self._is_over and not self._users
        if is_last:
            self.stream.close()

    def end(self) -> None:
        """Have it closed, at once or by its last user."""
        with self._lock:
            is_free = not (self._users or self._is_over)
            self._is_over = True
        if is_free:
            self.stream.close()


class StreamConsole:
    """The common part of every :class:`~rackloop.abilities.Console`: ``connect`` makes its stream.

    What is read was sent within ``delay_s`` before it came: as long as the wire and the boxes on it hold bytes back
    while nothing is wrong with them.
    """

    def __init__(self, where: str, clock: Clock, delay_s: float, connect: Callable[[Deadline], Stream]) -> None:
        self._where = where
        self._clock = clock
        self._delay_ns = round(delay_s * 1e9)
        self._connect = connect
        self._held: _HeldStream | None = None
        self._looked_ns = 0
        self._is_wanted = False
        self._reading, self._sending = Lock(), Lock()

    @property
    def where(self) -> str:
        """The kind of console, and its address."""
        return self._where

    def open(self, deadline: Deadline) -> None:
        """Connect; nothing where it is open. What the server said before is not heard."""
        if self._is_wanted:
            return
        if deadline.is_over():
            raise DeadlineExceeded(f"{self._where} was not opened: the deadline is over; allow more time")
        self._held = _HeldStream(self._connect(deadline))
        self._looked_ns = self._clock.now_ns()
        self._is_wanted = True

    def read(self, deadline: Deadline) -> Heard | None:
        """Take the bytes that come, as soon as any do; None where none have come by the deadline."""
        while True:
            with self._reading:
                data = self._guarded(lambda stream: stream.read(min(_LOOK_S, deadline.remaining_s())))
            since_ns, now_ns = self._looked_ns, self._clock.now_ns()
            if len(data) < MOST_BYTES:
                self._looked_ns = now_ns
            if data:
                return Heard(data, since_ns - self._delay_ns, now_ns)
            if deadline.is_over():
                return None

    def send(self, data: bytes, deadline: Deadline) -> None:
        """Type ``data``, as it is."""
        with self._sending:
            if deadline.is_over():
                raise DeadlineExceeded(f"{self._where}: nothing was sent: the deadline is over; allow more time")
            self._guarded(lambda stream: stream.write(data, deadline))

    def close(self) -> None:
        """Let go of it; a read that waits ends."""
        self._is_wanted = False
        if (waited_for := self._held) is not None:
            waited_for.stream.wake()
        with self._reading, self._sending:
            held, self._held = self._held, None
        if held is not None:
            held.end()

    def _guarded(self, act: Callable[[Stream], bytes | None]) -> bytes:
        held = self._held
        if not self._is_wanted or held is None or not held.begin():
            raise LabError(f"{self._where} is not open; open it first")
        try:
            return act(held.stream) or b""
        except NotConnected as error:
            # It may have been opened anew while another thread still sent.
            if held is self._held:
                self._is_wanted = False
            held.end()
            if self._where in str(error):
                raise
            raise NotConnected(f"{self._where}: {error}") from error
        finally:
            held.leave()


class DescriptorStream:
    """File descriptors, read and written without blocking; ``close`` lets go of them, once."""

    def __init__(
        self, where: str, descriptor: int, close: Callable[[], None], *, writes_to: int | None = None, why: str = ""
    ) -> None:
        self._where = where
        self._in = descriptor
        self._out = descriptor if writes_to is None else writes_to
        self._close: Callable[[], None] | None = close
        self._advice = why
        self._readable, self._writable = select.poll(), select.poll()
        for number, poll, event in (
            (self._in, self._readable, select.POLLIN),
            (self._out, self._writable, select.POLLOUT),
        ):
            os.set_blocking(number, False)
            poll.register(number, event)
        self._waking, self._woken = socket.socketpair()
        self._readable.register(self._woken, select.POLLIN)

    def read(self, timeout_s: float) -> bytes:
        """Take the bytes that have come."""
        ready = dict(self._readable.poll(timeout_s * 1000))
        if self._woken.fileno() in ready:
            self._woken.recv(1)
        if self._in not in ready:
            return b""
        try:
            data = os.read(self._in, MOST_BYTES)
        except BlockingIOError:
            return b""
        except OSError as error:
            raise self.lost(error.strerror) from None
        if not data:
            raise self.lost("it was closed at the other end")
        return data

    def write(self, data: bytes, deadline: Deadline) -> None:
        """Send all of ``data``."""
        while data:
            try:
                data = data[os.write(self._out, data) :]
            except BlockingIOError:
                if not self._writable.poll(deadline.remaining_s() * 1000):
                    raise DeadlineExceeded(f"{self._where} takes no more bytes; is the line held up?") from None
            except OSError as error:
                raise self.lost(error.strerror) from None

    def lost(self, reason: object) -> NotConnected:
        """The error for a connection that ended."""
        return NotConnected(f"{self._where}: the connection was lost: {reason}{self._advice}")

    def wake(self) -> None:
        """Have a read that waits end."""
        # It may be closed meanwhile.
        with contextlib.suppress(OSError):
            self._waking.send(b"\0")

    def close(self) -> None:
        """Let go of them."""
        close, self._close = self._close, None
        if close is not None:
            with contextlib.suppress(OSError):
                close()
            self._waking.close()
            self._woken.close()
