"""Requests to rackd: many in flight from many threads over one connection."""

from __future__ import annotations

from concurrent.futures import Future, InvalidStateError
from itertools import count
from pathlib import Path
from threading import Lock, Thread
from typing import Any

from rackloop.clock import Clock, Deadline
from rackloop.errors import DeadlineExceeded, LabError, NotConnected, ProtocolError
from rackloop_drivers.rackd._lines import LineSocket
from rackloop_drivers.rackd._truth import TruthStream

Answer = dict[str, Any]


class RackdRefused(LabError):
    """rackd refused a request. ``code`` is its error code, such as ``stale_generation`` or ``unknown_port``."""

    def __init__(self, message: str, code: str) -> None:
        self.code = code
        super().__init__(message)


class RackdControl:
    """A connection to rackd's control socket. Safe to use from several threads at once.

    Raises NotConnected where nothing answers at ``path`` within two seconds.
    """

    def __init__(self, path: Path, clock: Clock) -> None:
        self.path = path
        self._clock = clock
        self._lines = LineSocket(path, clock)
        self._numbers = count(1)
        self._lock = Lock()
        self._waiting: dict[int, Future[Answer]] = {}
        self._ended: LabError | None = None
        self._reader = Thread(target=self._read, name=f"rackd {path.name}", daemon=True)
        self._reader.start()

    def request(self, op: str, deadline: Deadline, **fields: Any) -> Answer:
        """Ask rackd for ``op`` and return its answer, ``t_ns`` (CLOCK_MONOTONIC) and the fields of the operation.

        Raises RackdRefused, DeadlineExceeded (the request may still be carried out), NotConnected or ProtocolError.
        """
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
            return _accepted(op, answer.result(timeout=deadline.remaining_s()))
        except TimeoutError as error:
            raise DeadlineExceeded(f"rackd at {self.path} did not answer {op} in time; is it stopped?") from error
        finally:
            self._waiting.pop(number, None)

    def subscribe(self) -> TruthStream:
        """The truth records from now on, over a connection of their own, so that a slow reader holds nobody up."""
        return TruthStream(self.path, self._clock)

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


def _settle(answer: Future[Answer], outcome: Answer | LabError) -> None:
    try:
        if isinstance(outcome, LabError):
            answer.set_exception(outcome)
        else:
            answer.set_result(outcome)
    except InvalidStateError:
        return  # answered just before the connection ended


def _accepted(op: str, message: Answer) -> Answer:
    if message.get("ok") is True:
        return {key: value for key, value in message.items() if key not in {"id", "ok"}}
    match message:
        case {"error": {"code": str(code), "message": str(text)}}:
            raise RackdRefused(f"rackd refused {op}: {text} ({code})", code)
    raise ProtocolError(f"rackd answered {op} with neither a result nor an error: {message}")
