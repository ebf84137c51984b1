"""A drive of a server, served to this machine: rackprobe's NBD over a stream to it, led to a socket pair."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING

from rackloop.clock import Clock, Deadline
from rackloop.errors import DeadlineExceeded, LabError, NotConnected, NotSupported, RackloopError, ToolError
from rackloop_drivers.block.host_path._identity_options import identity_options
from rackloop_drivers.block.host_path._streaming_host import StreamingHost
from rackloop_drivers.host_tools import deliver_program, name_of

if TYPE_CHECKING:
    from rackloop.abilities import DriveIdentity, Executor

# rackprobe is brought to the server where it is not there yet, however soon its tools answer.
_LEAST_S = 30.0
_END_S = 3.0
# How long a thread waits for bytes before it waits again: there is nothing else for it to do.
_SPELL_S = 3600.0
_CHUNK_BYTES = 256 << 10


class Serving:
    """A ``rackprobe serve`` of the drive ``identity`` at ``node``, where ``executor`` runs commands.

    With ``writes`` the drive may be written; the caller holds it meanwhile. ``take_socket`` gives what an NBD client
    speaks through; ``export`` is the name to ask for, the drive's serial. It begins within ``within_s``, the time of
    the server's tools, or 30 s where that is less. It ends when it is closed, when the client hangs up, and with the
    connection; then ``loss`` says why. Raises NotSupported where the executor has no streams,
    LabError with every reason where another drive is at ``node`` or it must not be written, ToolError where rackprobe
    cannot run there, and NotConnected and DeadlineExceeded as the executor does.
    """

    def __init__(
        self,
        executor: Executor,
        clock: Clock,
        where: str,
        node: str,
        identity: DriveIdentity,
        *,
        writes: bool,
        within_s: float,
    ) -> None:
        if not isinstance(executor, StreamingHost):
            raise NotSupported(f"{where}: {name_of(executor)} gives no stream of bytes, by which alone I/O reaches it")
        deadline = Deadline.after(clock, max(within_s, _LEAST_S))
        self.where = where
        self.export = identity.serial
        self.size_bytes = identity.size_bytes
        self._clock = clock
        self._lock = Lock()
        self._loss: RackloopError | None = None
        self._is_over = Event()
        program = deliver_program(executor, "rackprobe", deadline)
        permission = (f"--allow-write={identity.serial}", "--claimed") if writes else ()
        self._stream = executor.open_stream([program, "serve", *identity_options(identity), *permission, "--", node])
        try:
            greeting = self._greeting(deadline)
        except BaseException:
            self._stream.kill()
            raise
        self._ours, self._theirs = socket.socketpair()
        self._threads = [
            Thread(target=self._led, args=(lead,), name=f"{name} of {where}", daemon=True)
            for name, lead in (("answers", lambda: self._bring(greeting)), ("requests", self._send))
        ]
        for thread in self._threads:
            thread.start()

    def take_socket(self) -> int:
        """The descriptor of a client's end, which belongs to the caller from now on. To be taken once."""
        return self._theirs.detach()

    def loss(self, said: str) -> RackloopError:
        """The error of a session whose client was told ``said``: why nothing is answered any more."""
        # What ended the one thread is known a moment before the other.
        self._is_over.wait(_END_S)
        with self._lock:
            return self._loss or NotConnected(f"{self.where}: {said}")

    def close(self) -> None:
        """Have the server give the drive up; closing twice does nothing.

        The server's program ends with its input. What does not end in time is killed, and where the server does not
        answer, it is left to its watchdog.
        """
        self._note(NotConnected(f"{self.where}: the session is closed; open another"))
        self._hang_up()
        # A client never took it where connecting failed.
        self._theirs.close()
        with contextlib.suppress(RackloopError):
            self._stream.wait(Deadline.after(self._clock, _END_S))
        with contextlib.suppress(RackloopError):
            self._stream.kill()
        for thread in self._threads:
            thread.join(_END_S)
        self._ours.close()

    def _greeting(self, deadline: Deadline) -> bytes:
        """The first words of rackprobe, which it says once it has looked at the drive."""
        if greeting := self._stream.read_bytes(deadline):
            return greeting
        raise LabError(self._last_words())

    def _led(self, lead: Callable[[], None]) -> None:
        """Lead bytes one way until they end, and then nothing any more."""
        try:
            lead()
        except RackloopError as error:
            self._note(error)
        except OSError:
            self._note(NotConnected(f"{self.where}: the session is closed; open another"))
        finally:
            self._hang_up()

    def _bring(self, data: bytes) -> None:
        while data:
            self._ours.sendall(data)
            data = self._next()
        raise NotConnected(self._last_words())

    def _next(self) -> bytes:
        while True:
            with contextlib.suppress(DeadlineExceeded):
                return self._stream.read_bytes(Deadline.after(self._clock, _SPELL_S))

    def _send(self) -> None:
        while data := self._ours.recv(_CHUNK_BYTES):
            try:
                self._stream.write_bytes(data)
            except ToolError:
                # Why it reads no more is for who waits for its answers to find out.
                self._is_over.wait(_END_S)
                raise
        raise BrokenPipeError

    def _last_words(self) -> str:
        """The words of a rackprobe that has ended."""
        ended = self._stream.wait(Deadline.after(self._clock, _END_S))
        said = ended.stderr.strip().removeprefix("rackprobe: ") or f"rackprobe ended with status {ended.status}"
        return f"{self.where} is not served: {said}"

    def _note(self, loss: RackloopError) -> None:
        with self._lock:
            self._loss = self._loss or loss
        self._is_over.set()

    def _hang_up(self) -> None:
        with contextlib.suppress(OSError):
            self._ours.shutdown(socket.SHUT_RDWR)
