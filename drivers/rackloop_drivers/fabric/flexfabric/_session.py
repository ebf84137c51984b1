"""One controller's conversation with a switch: tagged lines, their answers, and the way back when one is lost."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import RLock
from typing import Any, NamedTuple

from rackloop.abilities import BoxIdentity
from rackloop.clock import Clock, Deadline
from rackloop.errors import (
    DeadlineExceeded,
    FabricError,
    LabError,
    LockedOut,
    NotConnected,
    ProtocolError,
    StaleGeneration,
)
from rackloop_drivers.fabric.flexfabric import _codec as codec
from rackloop_drivers.fabric.flexfabric import _messages as m
from rackloop_drivers.fabric.flexfabric import _refusals as refusals
from rackloop_drivers.fabric.flexfabric._answers import split_fields
from rackloop_drivers.fabric.flexfabric._refusals import QueuedError
from rackloop_drivers.fabric.flexfabric._transport import Transport, is_serial, open_transport

BAUD = 115200
ANSWER_WITHIN_S = 0.5
HISTORY_LENGTH = 256
ATTEMPTS = 4
_RECONNECT_EVERY_NS = 20_000_000
_LONGEST_ANSWER = 1 << 20
_TAGS = 255
_TAG_PREFIX = tuple(f"*ESE {tag};*ESE?;".encode("ascii") for tag in range(_TAGS + 1))

#: The answer did not come, or came unreadable: whether the switch acted is not known.
ANSWER_LOST = (DeadlineExceeded, NotConnected, ProtocolError)

_WHAT_TO_DO = {
    refusals.COMMAND_PROTECTED: (LockedOut, "another controller has the switch; lease the rack again"),
    refusals.SETTINGS_CONFLICT: (StaleGeneration, "the live map has changed; read it and decide anew"),
    refusals.HARDWARE_ERROR: (FabricError, "the switch cannot reach its matrix; check the rack behind it"),
}


class Exchange(NamedTuple):
    """One line sent and all that was read until its answer was complete; ``t_ns`` is when it was sent."""

    t_ns: int
    sent: str
    received: str


class FlexFabricSession:
    """The wire to one switch, shared by every ability of it; safe to use from several threads.

    Each line carries a tag that the switch echoes (through ``*ESE``, which nothing else here uses), so an answer
    that is late, doubled or left over is never taken for another's. After a lost answer the session finds its
    place again before it sends anything else: it reconnects where it must, presents its token again, and
    drains the wire up to the answer that carries the tag. ``history`` holds the last 256 exchanges.
    """

    def __init__(
        self,
        url: str,
        clock: Clock,
        *,
        token: int | None = None,
        answer_within_s: float = ANSWER_WITHIN_S,
        baud: int = BAUD,
        on_exchange: Callable[[Exchange], None] | None = None,
    ) -> None:
        self.url = url
        self.clock = clock
        self.token = token
        self.on_exchange = on_exchange
        self.history: deque[Exchange] = deque(maxlen=HISTORY_LENGTH)
        self._answer_within_s = answer_within_s
        self._baud = baud
        self._seconds_per_byte = 10 / baud if is_serial(url) else 0.0
        self._transport: Transport | None = None
        self._is_closed = False
        self._is_in_step = False
        self._buffer = b""
        self._tag = 0
        self._lock = RLock()

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Keep other threads off the wire: what is staged belongs to the connection."""
        with self._lock:
            yield

    def connect(self, deadline: Deadline) -> None:
        """Connect, check that a FlexFabric answers, and take the control lock where the session has a token."""
        with self._lock:
            try:
                self._transport = open_transport(self.url, deadline, self._baud)
                self._get_in_step(deadline, may_reconnect=False)
            except LabError:
                self.close()
                raise

    def close(self) -> None:
        """Let go of the wire. The control lock stays with the token."""
        with self._lock:
            self._is_closed = True
            self._drop()

    def ask(self, queries: Sequence[m.Request], deadline: Deadline) -> list[Any]:
        """Send requests that are safe to repeat and return the answers to the queries among them.

        A lost answer is followed by up to three more attempts.
        """
        with self._lock:
            attempt = 1
            while True:
                try:
                    return self.ask_once(queries, deadline)
                except ANSWER_LOST:
                    if attempt == ATTEMPTS or deadline.is_over() or self._is_closed:
                        raise
                attempt += 1

    def act(self, command: m.Request, deadline: Deadline, *then: m.Query[Any]) -> list[Any]:
        """Send a command that is safe to repeat; returns the answers to the queries that follow it.

        Raises :class:`~rackloop.errors.FabricError`, or the kind of it that fits, where the switch refuses it.
        """
        error, *answers = self.ask((m.ClearStatus(), command, m.NextError(), *then), deadline)
        self._check(command, error)
        return answers

    def act_once(self, command: m.Request, deadline: Deadline) -> None:
        """Send a command once; a lost answer raises one of :data:`ANSWER_LOST`."""
        (error,) = self.ask_once((m.ClearStatus(), command, m.NextError()), deadline)
        self._check(command, error)

    def ask_once(self, requests: Sequence[m.Request], deadline: Deadline) -> list[Any]:
        """Send requests on one line, once, and return the answers to the queries among them."""
        with self._lock:
            if not self._is_in_step:
                self._get_in_step(deadline, may_reconnect=True)
            try:
                fields = self._exchange(codec.format_line(requests), deadline)
                queries = [request for request in requests if isinstance(request, m.Query)]
                if len(fields) == len(queries):
                    return [codec.parse_answer(query, text) for query, text in zip(queries, fields, strict=True)]
            except ANSWER_LOST:
                self._is_in_step = False
                raise
            except ValueError as error:
                self._is_in_step = False
                raise ProtocolError(f"{self._asked(requests)} was answered with {error}; check the line") from None
            self._explain_missing(requests, len(fields), deadline)
            raise AssertionError

    def _explain_missing(self, requests: Sequence[m.Request], answered: int, deadline: Deadline) -> None:
        """A query the switch refuses is not answered; its reason waits in the error queue."""
        last = requests[-1]
        if answered == 0 and last == m.NextError():
            self._is_in_step = False
            raise ProtocolError(f"{self._asked(requests)} was not answered; check that the switch's firmware is whole")
        (error,) = self.ask((m.NextError(),), deadline)
        self._check(last, error)
        self._is_in_step = False
        raise ProtocolError(f"{self._asked(requests)}: {answered} answers came, which is too few; check the line")

    def _check(self, command: m.Request, error: QueuedError) -> None:
        if error.number == 0:
            return
        kind, advice = _WHAT_TO_DO.get(error.number, (FabricError, "correct the request"))
        raise kind(f'{self._asked([command])} was refused with {error.number},"{error.text}": {advice}', error.number)

    def _asked(self, requests: Sequence[m.Request]) -> str:
        return f"{self.url}: {codec.format_line(requests).decode('ascii').strip()}"

    def _exchange(self, line: bytes, deadline: Deadline, *, is_draining: bool = False) -> list[str]:
        """Send a tagged line and read until the answer that carries the tag; returns its fields without the tag.

        What carries another tag belongs to the past and is skipped. While draining, noise is skipped too.
        """
        if self._transport is None or self._is_closed:
            raise NotConnected(f"{self.url}: this session is closed; open another")
        if deadline.is_over():
            raise DeadlineExceeded(f"{self.url}: no time is left to send {line.decode('ascii').strip()}; allow more")
        self._tag = self._tag % _TAGS + 1
        mark = str(self._tag)
        tagged = _TAG_PREFIX[self._tag] + line if not is_draining else b"\n" + _TAG_PREFIX[self._tag] + line
        sent_ns = self.clock.now_ns()
        received = self._buffer
        try:
            self._transport.write(tagged, deadline)
            patience_s = self._answer_within_s + len(tagged) * self._seconds_per_byte
            while True:
                chunk = self._transport.read(min(patience_s, deadline.remaining_s()))
                if not chunk:
                    raise self._unanswered(line, self._buffer or (received if is_draining else b""))
                received += chunk
                patience_s = self._answer_within_s
                *lines, self._buffer = (self._buffer + chunk).split(b"\n")
                for answer in lines:
                    head, *fields = self._fields(answer, is_draining=is_draining)
                    if head == mark:
                        return fields
                if len(self._buffer) > _LONGEST_ANSWER:
                    self._buffer = b""
                    raise ProtocolError(f"{self.url}: over {_LONGEST_ANSWER} bytes came without a line end")
        except NotConnected:
            self._drop()
            raise
        finally:
            self._note(Exchange(sent_ns, tagged.decode("ascii"), received.decode("latin-1")))

    def _fields(self, answer: bytes, *, is_draining: bool) -> list[str]:
        try:
            return split_fields(answer.removesuffix(b"\r").decode("ascii"))
        except UnicodeDecodeError:
            if is_draining:
                return [""]
            raise ProtocolError(
                f"{self.url}: expected an answer, found noise {answer[:40]!r}; check the line"
            ) from None

    def _unanswered(self, line: bytes, heard: bytes) -> LabError:
        asked = f"{self.url}: {line.decode('ascii').strip()}"
        rate = f" and that the line runs at {self._baud} baud, 8N1, at both ends" if self._seconds_per_byte else ""
        if heard:
            return ProtocolError(
                f"{asked}: expected an answer, found {heard[:40]!r}; check that this is a FlexFabric switch{rate}"
            )
        return DeadlineExceeded(f"{asked}: the switch did not answer in time; check that it has power{rate}")

    def _note(self, exchange: Exchange) -> None:
        self.history.append(exchange)
        if self.on_exchange is not None:
            self.on_exchange(exchange)

    def _get_in_step(self, deadline: Deadline, *, may_reconnect: bool) -> None:
        attempt = 1
        gone: NotConnected | None = None
        while True:
            if gone is not None and deadline.is_over():
                raise gone
            if self._transport is None and may_reconnect and not self._is_closed:
                self._reconnect(deadline)
            try:
                self._introduce(deadline)
            except NotConnected as error:
                if not may_reconnect or self._is_closed:
                    raise
                gone = error
                self.clock.sleep_until_ns(min(deadline.at_ns, self.clock.now_ns() + _RECONNECT_EVERY_NS))
            except (DeadlineExceeded, ProtocolError):
                if attempt == ATTEMPTS or deadline.is_over():
                    raise
                attempt += 1
            else:
                self._is_in_step = True
                return

    def _introduce(self, deadline: Deadline) -> None:
        requests: list[m.Request] = [m.ClearStatus(), m.Identify()]
        if self.token is not None:
            requests += [m.RequestLock(self.token), m.NextError()]
        answers = self._exchange(codec.format_line(requests), deadline, is_draining=True)
        try:
            identity: BoxIdentity = codec.parse_answer(m.Identify(), answers[0])
            error = codec.parse_answer(m.NextError(), answers[1]) if self.token is not None else QueuedError(0, "")
        except (ValueError, IndexError):
            raise ProtocolError(
                f"{self._asked(requests)}: expected an identification, found {answers!r}; "
                "check that this is a FlexFabric switch"
            ) from None
        if not identity.model.startswith("FlexFabric"):
            raise ProtocolError(
                f"{self.url}: expected a FlexFabric switch, found {identity.vendor} {identity.model}; check the address"
            )
        if self.token is not None:
            self._check(m.RequestLock(self.token), error)

    def _reconnect(self, deadline: Deadline) -> None:
        while True:
            try:
                self._transport = open_transport(self.url, deadline, self._baud)
            except NotConnected:
                if deadline.is_over():
                    raise
                self.clock.sleep_until_ns(min(deadline.at_ns, self.clock.now_ns() + _RECONNECT_EVERY_NS))
            else:
                return

    def _drop(self) -> None:
        self._is_in_step = False
        self._buffer = b""
        if self._transport is not None:
            self._transport.close()
            self._transport = None
