"""The control socket of rackd, the simulated rack: transport shared by the drivers that speak to it.

JSON lines over a Unix socket (``docs/reference/rackd.md``), with every error of the socket in Rackloop's tree.
"""

from __future__ import annotations

import json
import socket
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import Future, InvalidStateError
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from threading import Lock, Thread
from types import TracebackType
from typing import Any, NamedTuple, Self

from rackloop.clock import Clock, Deadline
from rackloop.errors import DeadlineExceeded, LabError, NotConnected, ProtocolError

_CONNECT_S = 2.0
_SUBSCRIBE_S = 2.0
_RETRY_S = 0.01

Answer = dict[str, Any]


class RackdRefused(LabError):
    """rackd refused a request. ``code`` is its error code, such as ``stale_generation`` or ``unknown_port``."""

    def __init__(self, message: str, code: str) -> None:
        self.code = code
        super().__init__(message)


class RecordedRequest(NamedTuple):
    """A request that a drive answered, failed ones included. Both stamps are CLOCK_MONOTONIC.

    ``kind`` is ``read``, ``write``, ``flush``, ``trim`` or ``write_zeroes``; a flush has offset and length 0.
    """

    arrived_ns: int
    kind: str
    offset: int
    length: int
    answered_ns: int


@dataclass(frozen=True)
class RecordedIo:
    """A drive's answers while it was recorded, in their order.

    ``lost`` counts the requests that came when rackd had no room for records any more.
    """

    requests: list[RecordedRequest]
    lost: int


class RackdControl:
    """A connection to rackd's control socket. Safe to use from several threads at once.

    Raises NotConnected where nothing answers at ``path`` within two seconds.
    """

    def __init__(self, path: Path, clock: Clock) -> None:
        self.path = path
        self._clock = clock
        self._lines = _LineSocket(path, clock)
        self._numbers = count(1)
        self._lock = Lock()
        self._waiting: dict[int, Future[Answer]] = {}
        self._ended: LabError | None = None
        self._reader = Thread(target=self._read, name=f"rackd {path.name}", daemon=True)
        self._reader.start()

    def request(self, op: str, deadline: Deadline, **fields: Any) -> Answer:
        """Ask rackd for ``op`` and return its answer, ``t_ns`` (CLOCK_MONOTONIC) and the fields of the operation.

        Raises RackdRefused, DeadlineExceeded, NotConnected or ProtocolError. Where the deadline was over already
        nothing was sent; else a request without an answer may still be carried out.
        """
        if deadline.is_over():
            raise DeadlineExceeded(
                f"rackd at {self.path} was not asked for {op}: the deadline is over; allow more time"
            )
        number = next(self._numbers)
        answer: Future[Answer] = Future()
        with self._lock:
            if self._ended is not None:
                raise NotConnected(f"no longer connected: {self._ended}")
            self._waiting[number] = answer
            try:
                self._lines.send({"id": number, "op": op, **fields})
            except LabError:
                del self._waiting[number]
                raise
        try:
            return accepted(op, answer.result(timeout=deadline.remaining_s()))
        except TimeoutError as error:
            raise DeadlineExceeded(f"rackd at {self.path} did not answer {op} in time; is it stopped?") from error
        finally:
            self._waiting.pop(number, None)

    def record_io(self, drive: str, deadline: Deadline, *, on: bool = True) -> None:
        """Begin to record the requests that ``drive`` answers, forgetting what was recorded before; or end it.

        rackd keeps up to two million. Raises as :meth:`request` does.
        """
        self.request("record_io", deadline, drive=drive, on=on)

    def recorded_io(self, drive: str, deadline: Deadline) -> RecordedIo:
        """The record of ``drive`` since :meth:`record_io` began. Raises as :meth:`request` does."""
        requests: list[RecordedRequest] = []
        while True:
            page = self.request("recorded_io", deadline, drive=drive, **{"from": len(requests)})
            requests += (RecordedRequest(*row) for row in page["requests"])
            if len(requests) >= page["recorded"]:
                return RecordedIo(requests, page["lost"])

    def add_fault(self, drive: str, fault: Mapping[str, Any], deadline: Deadline, *, key: str | None = None) -> int:
        """Put ``fault`` on ``drive``, and return its identity. A ``key`` that stands there already changes nothing.

        With a key it is safe to ask again after a lost answer. Raises as :meth:`request` does.
        """
        named = {} if key is None else {"key": key}
        return int(self.request("fault", deadline, drive=drive, fault=dict(fault), **named)["fault_id"])

    def clear_fault(self, key: str, deadline: Deadline, *, drive: str | None = None) -> list[int]:
        """Take away the faults under ``key``, on every drive or on one; the identities of those that were there.

        Raises as :meth:`request` does.
        """
        where = {} if drive is None else {"drive": drive}
        return list(self.request("clear_fault", deadline, key=key, **where)["cleared"])

    def faults(self, deadline: Deadline) -> list[dict[str, Any]]:
        """The faults that stand, of all drives: ``drive``, ``fault_id``, ``key``, ``fault`` and ``crashed`` of each.

        Those that used themselves up are not there. Raises as :meth:`request` does.
        """
        return list(self.request("faults", deadline)["faults"])

    def slow_training(self, ports: Collection[int], factor: float, deadline: Deadline) -> None:
        """Have links of these switch ports train and come online ``factor`` times slower from now on; 1 ends it.

        Raises as :meth:`request` does.
        """
        self.request("training", deadline, ports=list(ports), factor=factor)

    def disturbances(self, deadline: Deadline) -> Answer:
        """The disturbances in the fabric now: ``stuck``, ``miswired``, ``training`` and ``dropped`` ports.

        Raises as :meth:`request` does.
        """
        return self.request("disturbances", deadline)

    def subscribe(self, events: Collection[str] | None = None) -> TruthStream:
        """The truth records from now on, over a connection of their own, so that a slow reader delays no request.

        Where ``events`` names some, those of these events alone. Raises ProtocolError for an event that rackd has not.
        """
        return TruthStream(self.path, self._clock, events)

    def close(self) -> None:
        """End the connection; requests in flight raise NotConnected."""
        self._lines.shut()
        self._reader.join()
        self._lines.close()

    def _read(self) -> None:
        try:
            while True:
                self._deliver(self._lines.receive())
        except LabError as error:
            ended = error
        with self._lock:
            self._ended = ended
            waiting = list(self._waiting.values())
        for answer in waiting:
            _settle(answer, NotConnected(f"lost the connection: {ended}"))

    def _deliver(self, message: Answer) -> None:
        number = message.get("id")
        if number is None:
            raise ProtocolError(f"rackd at {self.path} could not read a request: {message.get('error')}")
        # An answer nobody waits for came after its caller's deadline.
        answer = self._waiting.get(number)
        if answer is not None:
            _settle(answer, message)


class TruthStream(Iterator[dict[str, Any]]):
    """The truth records of a rackd since this was made, oldest first; iteration ends when either side closes.

    Each record has ``event``, ``t_ns`` (CLOCK_MONOTONIC) and the fields of its event. A context manager.
    """

    def __init__(self, path: Path, clock: Clock, events: Collection[str] | None = None) -> None:
        self._lines = _LineSocket(path, clock)
        self._early: list[dict[str, Any]] = []
        deadline = Deadline.after(clock, _SUBSCRIBE_S)
        self._lines.send({"id": 0, "op": "subscribe"} | ({} if events is None else {"events": sorted(events)}))
        answer = self._lines.receive(deadline)
        while "event" in answer:
            self._early.append(answer)
            answer = self._lines.receive(deadline)
        if answer.get("ok") is not True:
            self._lines.close()
            raise ProtocolError(f"rackd at {path} refused a subscription: {answer.get('error')}")

    def __next__(self) -> dict[str, Any]:
        try:
            return self.next_before(None)
        except NotConnected as error:
            raise StopIteration from error

    def next_before(self, deadline: Deadline | None) -> dict[str, Any]:
        """The next record. Raises DeadlineExceeded where none comes in time, NotConnected where rackd ended."""
        return self._early.pop(0) if self._early else self._lines.receive(deadline)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the subscription."""
        self._lines.shut()
        self._lines.close()


class _LineSocket:
    """A connection to the control socket at ``path``. One thread may read while others write in turn."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self.path = path
        self._whole: deque[bytes] = deque()
        self._partial = b""
        self._socket = _connect(path, Deadline.after(clock, _CONNECT_S))

    def send(self, message: Mapping[str, Any]) -> None:
        """Write one line."""
        with self._explained():
            self._socket.sendall(json.dumps(message, separators=(",", ":")).encode() + b"\n")

    def receive(self, deadline: Deadline | None = None) -> dict[str, Any]:
        """The next line. Raises NotConnected at the end of the stream, DeadlineExceeded past ``deadline``."""
        while not self._whole:
            with self._explained():
                self._socket.settimeout(None if deadline is None else max(deadline.remaining_s(), 1e-6))
                chunk = self._socket.recv(1 << 16)
            if not chunk:
                raise NotConnected(f"rackd closed its control socket {self.path}; did it end? start the lab again")
            *lines, self._partial = (self._partial + chunk).split(b"\n")
            self._whole.extend(lines)
        line = self._whole.popleft()
        try:
            message = json.loads(line.decode())
        except ValueError as error:
            raise ProtocolError(f"rackd at {self.path} sent a line that is not JSON: {line[:80]!r}") from error
        if not isinstance(message, dict):
            raise ProtocolError(f"rackd at {self.path} sent a line that is not an object: {line[:80]!r}")
        return message

    def shut(self) -> None:
        """End the connection; a thread that reads gets NotConnected."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            return  # the other side was faster

    def close(self) -> None:
        """Give the descriptor back."""
        self._socket.close()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except TimeoutError as error:
            raise DeadlineExceeded(f"rackd at {self.path} sent nothing before the deadline") from error
        except OSError as error:
            raise NotConnected(f"control socket {self.path}: {error.strerror or error}; is the lab up?") from error


def _connect(path: Path, deadline: Deadline) -> socket.socket:
    """Connect, giving a rackd that is just being started a moment."""

    def attempt() -> socket.socket:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(str(path))
        except OSError:
            connection.close()
            raise
        return connection

    try:
        return deadline.retry(attempt, FileNotFoundError, ConnectionRefusedError, BlockingIOError, every_s=_RETRY_S)
    except OSError as error:
        reason = error.strerror or str(error)
        raise NotConnected(f"no rackd answers at {path}: {reason}; bring the lab up") from error


def _settle(answer: Future[Answer], outcome: Answer | LabError) -> None:
    try:
        if isinstance(outcome, LabError):
            answer.set_exception(outcome)
        else:
            answer.set_result(outcome)
    except InvalidStateError:
        return  # answered just before the connection ended


def accepted(op: str, message: Answer) -> Answer:
    """The fields of rackd's answer to ``op``. Raises RackdRefused where it refused, ProtocolError for nonsense."""
    if message.get("ok") is True:
        return {key: value for key, value in message.items() if key not in {"id", "ok"}}
    match message:
        case {"error": {"code": str(code), "message": str(text)}}:
            raise RackdRefused(f"rackd refused {op}: {text} ({code})", code)
    raise ProtocolError(f"rackd answered {op} with neither a result nor an error: {message}")
