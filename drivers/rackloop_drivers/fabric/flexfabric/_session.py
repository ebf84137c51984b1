"""A controller's session with the switch: tagged lines, their answers, and reconnection."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from threading import RLock
from typing import Any, NamedTuple

from rackloop.abilities import BoxIdentity
from rackloop.clock import Clock, Deadline
from rackloop.errors import (
    DeadlineExceeded,
    FabricError,
    HigherToken,
    LabError,
    LockedOut,
    NotConnected,
    ProtocolError,
    StaleGeneration,
)
from rackloop_drivers.fabric.flexfabric._transport import Transport, is_connected, is_serial, open_transport
from rackloop_drivers.fabric.flexfabric.dialect import codec
from rackloop_drivers.fabric.flexfabric.dialect import messages as m
from rackloop_drivers.fabric.flexfabric.dialect import scpi_errors as refusals
from rackloop_drivers.fabric.flexfabric.dialect.answers import split_fields
from rackloop_drivers.fabric.flexfabric.dialect.scpi_errors import QueuedError

BAUD = 115200
ANSWER_WITHIN_S = 0.5
HISTORY_LENGTH = 256
ATTEMPTS = 4
_RECONNECT_EVERY_NS = 20_000_000
_SILENT_ATTEMPTS = 2
_LONGEST_ANSWER = 1 << 16
_TAGS = 32
_TAGGED = tuple((f"*ESE {tag};*ESE?;".encode("ascii"), f"{tag};".encode("ascii")) for tag in range(_TAGS))

# Ends the line that another controller, or the loss of a wire, may have left half said: what it ends with is no command
# then. Ended by a line feed alone it would be one, cut short: of another time, or without the generation it is for.
_SPOILED = b"?\n"

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


class Sent(NamedTuple):
    """The times when the first of a line was written, and when the last of it was handed to the wire."""

    begun_ns: int
    written_ns: int


def in_doubt(refusal: FabricError) -> FabricError:
    """The refusal of a command whose answer was lost before: without a code, which would say that nothing was done."""
    return FabricError(
        f"{refusal}; the answer to an earlier attempt was lost, so it may have been carried out: heal the rack"
    )


class FlexFabricSession:
    """The wire to one switch, shared by every ability of it; safe to use from several threads.

    Each line carries a tag that the switch echoes (through ``*ESE``, which nothing else here uses), so an answer
    that is late, doubled or left over is never taken for another's. After a lost answer the session finds its
    place again before it sends anything else: it reconnects where it must, presents its token again, and
    drains the wire up to the answer that carries the tag.
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
        self._log: deque[tuple[int, bytes, bytes]] = deque(maxlen=HISTORY_LENGTH)
        # The time for an answer at a first attempt, and at the one under way.
        self._first_answer_within_s = self._answer_within_s = answer_within_s
        self._baud = baud
        # Also of a socket, behind which a terminal server may have a serial line.
        self._seconds_per_byte = 10 / baud
        self._transport: Transport | None = None
        # The switch that answered last, and whether none has yet by the connection there is.
        self._identity: BoxIdentity | None = None
        self._is_new_wire = True
        self._is_closed = False
        self._is_in_step = False
        # Why the request under way has lost its connection, until there is another.
        self._gone: NotConnected | None = None
        self._buffer = b""
        self._tag = 0
        self._sent = Sent(0, 0)
        self._lock = RLock()

    @property
    def history(self) -> list[Exchange]:
        """The last exchanges, oldest first."""
        return [_exchange(*entry) for entry in tuple(self._log)]

    def exclusive(self) -> AbstractContextManager[object]:
        """A block that keeps other threads off the wire: what is staged belongs to the connection."""
        return self._lock

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

    def ask(self, requests: tuple[m.Request, ...], deadline: Deadline) -> list[Any]:
        """Send requests that are safe to repeat and change nothing; the answers to the queries among them.

        A lost answer is followed by up to three more attempts, with twice the time for an answer each.
        """
        return self._until_answered(lambda: self._ask_once(requests, deadline), deadline)

    def act(self, command: m.Request, deadline: Deadline, *then: m.Query[Any]) -> list[Any]:
        """Send a command that is safe to repeat; returns the answers to the queries that follow it.

        Raises :class:`~rackloop.errors.FabricError`, or the kind of it that fits, where the switch refuses it; one
        without a code where it refuses to repeat an acting command whose answer was lost.
        """
        requests = (*self._fenced(command), m.NextError(), *then)

        def once() -> list[Any]:
            error, *answers = self._ask_once(requests, deadline)
            self._check(command, error)
            return answers

        return self._until_answered(once, deadline, is_acting=isinstance(command, m.Acting))

    def _until_answered(
        self, once: Callable[[], list[Any]], deadline: Deadline, *, is_acting: bool = False
    ) -> list[Any]:
        with self._lock, self._growing_patience():
            attempt = 1
            self._gone = None
            while True:
                try:
                    return once()
                except ANSWER_LOST:
                    if attempt == ATTEMPTS or deadline.is_over() or self._is_closed:
                        raise
                except FabricError as refusal:
                    if is_acting and attempt > 1:
                        raise in_doubt(refusal) from refusal
                    raise
                attempt += 1
                self._answer_within_s *= 2

    @contextmanager
    def _growing_patience(self) -> Iterator[None]:
        """Begin with the time for an answer at a first attempt; each further one in the block has twice as long.

        The switch may be about to answer: one that writes to its memory takes its time each time.
        """
        before_s, self._answer_within_s = self._answer_within_s, self._first_answer_within_s
        try:
            yield
        finally:
            self._answer_within_s = before_s

    def act_once(self, command: m.Request, deadline: Deadline, *then: m.Query[Any]) -> tuple[Sent, list[Any]]:
        """Send a command once; when it was sent, and the answers to the queries that follow it.

        A lost answer raises one of :data:`ANSWER_LOST`.
        """
        with self._lock:
            self._gone = None
            error, *answers = self._ask_once((*self._fenced(command), m.NextError(), *then), deadline)
            sent = self._sent
        self._check(command, error)
        return sent, answers

    def present(self, token: int, deadline: Deadline) -> None:
        """Take the control lock. Raises HigherToken, or LockedOut where the switch does not say why it refuses."""
        try:
            self.act(m.RequestLock(token), deadline)
        except LockedOut as refusal:
            with self._lock:
                raise self._outbid(token, refusal, deadline) from None
        self.token = token

    def _outbid(self, token: int, refusal: LockedOut, deadline: Deadline) -> LockedOut:
        """The refusal of a token, with the number that it has to exceed."""
        asked = codec.format_line((m.HighestToken(), m.LockHolder()))
        try:
            highest, holder = (int(field) for field in self._exchange(asked.text, deadline))
        except (LabError, ValueError):
            return refusal
        has = "and which has its lock" if holder else "though its lock is free"
        return HigherToken(
            f"{self.url}: token {token} was refused: it is lower than {highest}, which the switch has granted, {has}",
            "; another controller has the switch; lease the rack again",
            refusal.code,
            highest=highest,
            holder=holder,
        )

    def _fenced(self, command: m.Request) -> tuple[m.Request, ...]:
        """The command behind the session's token: the switch leaves out what follows one that is too low.

        Otherwise a stale controller would be let in once another had taken the lock and released it.
        """
        if self.token is None or not isinstance(command, m.Acting):
            return m.ClearStatus(), command
        return m.ClearStatus(), m.RequestLock(self.token), command

    def _ask_once(self, requests: tuple[m.Request, ...], deadline: Deadline) -> list[Any]:
        if not self._is_in_step:
            self._get_in_step(deadline, may_reconnect=True)
        line = codec.format_line(requests)
        try:
            fields = self._exchange(line.text, deadline)
            if len(fields) == len(line.readers):
                return [read(text) for read, text in zip(line.readers, fields, strict=True)]
        except ANSWER_LOST:
            self._is_in_step = False
            raise
        except ValueError as error:
            self._is_in_step = False
            raise ProtocolError(f"{self._asked(requests)} was answered with {error}; check the line") from None
        raise self._missing(requests, fields, deadline)

    def _missing(self, requests: tuple[m.Request, ...], fields: list[str], deadline: Deadline) -> LabError:
        """The reason why a query was not answered: what refused it waits in the error queue.

        Behind a command that changes the switch that says nothing of the command, which may have been carried out: only
        the answer to the question right behind it does.
        """
        acting = next((request for request in requests if isinstance(request, m.Acting)), None)
        if acting is not None:
            with suppress(ValueError, IndexError):
                self._check(acting, codec.parse_answer(m.NextError(), fields[0]))
        elif requests != (m.NextError(),):
            (error,) = self._ask_once((m.NextError(),), deadline)
            self._check(requests[-1], error)
        self._is_in_step = False
        return ProtocolError(f"{self._asked(requests)}: only {len(fields)} answers came; check the line")

    def _check(self, command: m.Request, error: QueuedError) -> None:
        if error.number == 0:
            return
        kind, advice = _WHAT_TO_DO.get(error.number, (FabricError, "correct the request"))
        raise kind(f'{self._asked((command,))} was refused with {error.number},"{error.text}": {advice}', error.number)

    def _asked(self, requests: tuple[m.Request, ...]) -> str:
        return f"{self.url}: {_shown(codec.format_line(requests).text)}"

    def _exchange(self, line: bytes, deadline: Deadline, *, is_draining: bool = False) -> list[str]:
        """Send a tagged line and read until the answer that carries the tag; returns its fields without the tag.

        What carries another tag belongs to the past and is skipped. While draining, noise is skipped too, and a half
        line that was said before is not carried out.
        """
        transport = self._transport
        if transport is None or self._is_closed:
            raise NotConnected(f"{self.url}: this session is closed; open another")
        left_s = deadline.remaining_s()
        if not left_s:
            raise self._gone or DeadlineExceeded(f"{self.url}: no time is left to send {_shown(line)}; allow more")
        self._tag = (self._tag + 1) % _TAGS
        prefix, mark = _TAGGED[self._tag]
        sent = prefix + line if not is_draining else _SPOILED + prefix + line
        received = self._buffer
        sent_ns = self.clock.now_ns()
        try:
            transport.write(sent, deadline)
            self._sent = Sent(sent_ns, self.clock.now_ns())
            chunk = transport.read(min(self._answer_within_s + len(sent) * self._seconds_per_byte, left_s))
            while chunk:
                if not received and chunk.startswith(mark) and chunk.find(b"\n") == len(chunk) - 1:
                    received = chunk
                    return split_fields(self._text(chunk[len(mark) : -1]))
                received = (received + chunk)[-_LONGEST_ANSWER:]
                *lines, self._buffer = (self._buffer + chunk).split(b"\n")
                for answer in lines:
                    tag, separator, rest = answer.partition(b";")
                    if tag.removesuffix(b"\r") + b";" == mark:
                        return split_fields(self._text(rest)) if separator else []
                    if not is_draining and not answer.isascii():
                        raise ProtocolError(self._noise(answer))
                self._buffer = self._buffer[-_LONGEST_ANSWER:]
                left_s = deadline.remaining_s()
                chunk = transport.read(min(self._answer_within_s, left_s)) if left_s else b""
            raise self._unanswered(line, self._buffer or (received if is_draining else b""))
        except NotConnected as error:
            self._gone = error
            self._drop()
            raise
        finally:
            self._log.append((sent_ns, sent, received))
            if self.on_exchange is not None:
                self.on_exchange(_exchange(sent_ns, sent, received))

    def _text(self, answer: bytes) -> str:
        try:
            return answer.decode("ascii").removesuffix("\r")
        except UnicodeDecodeError:
            raise ProtocolError(self._noise(answer)) from None

    def _noise(self, heard: bytes) -> str:
        return f"{self.url}: expected an answer, found noise {heard[:40]!r}; check the line"

    def _unanswered(self, line: bytes, heard: bytes) -> LabError:
        asked = f"{self.url}: {_shown(line)}"
        rate = f" and that the line runs at {self._baud} baud, 8N1, at both ends" if is_serial(self.url) else ""
        if heard:
            return ProtocolError(
                f"{asked}: expected an answer, found {heard[:40]!r}; check that this is a FlexFabric switch{rate}"
            )
        return DeadlineExceeded(f"{asked}: the switch did not answer in time; check that it has power{rate}")

    def _get_in_step(self, deadline: Deadline, *, may_reconnect: bool) -> None:
        with self._growing_patience():
            self._introduce_at_last(deadline, may_reconnect=may_reconnect)

    def _introduce_at_last(self, deadline: Deadline, *, may_reconnect: bool) -> None:
        attempt = 1
        while True:
            if self._gone is not None and deadline.is_over():
                raise self._gone
            if self._transport is None and may_reconnect and not self._is_closed:
                self._reconnect(deadline)
            try:
                self._introduce(deadline)
            except NotConnected:
                if not may_reconnect or self._is_closed:
                    raise
                self.clock.sleep_until_ns(min(deadline.at_ns, self.clock.now_ns() + _RECONNECT_EVERY_NS))
            except (DeadlineExceeded, ProtocolError) as error:
                if attempt == ATTEMPTS or deadline.is_over():
                    raise
                attempt += 1
                self._answer_within_s *= 2
                if may_reconnect and attempt > _SILENT_ATTEMPTS and isinstance(error, DeadlineExceeded):
                    self._leave_silence()
            else:
                self._is_in_step, self._gone = True, None
                return

    def _introduce(self, deadline: Deadline) -> None:
        if self._is_new_wire and self._identity is not None:
            # The lock of another switch is another's.
            self._identified((m.ClearStatus(), m.Identify()), deadline)
        requests: tuple[m.Request, ...] = (m.ClearStatus(), m.Identify())
        if self.token is not None:
            requests += (m.RequestLock(self.token), m.NextError())
        error = self._identified(requests, deadline)
        if self.token is not None:
            try:
                self._check(m.RequestLock(self.token), error)
            except LockedOut as refusal:
                raise self._outbid(self.token, refusal, deadline) from None

    def _identified(self, requests: tuple[m.Request, ...], deadline: Deadline) -> QueuedError:
        """Ask who answers; the error of the lock, if that is asked for behind it.

        Raises ProtocolError where that is no switch, or where a new wire leads to another one than the wire before it.
        """
        answers = self._exchange(codec.format_line(requests).text, deadline, is_draining=True)
        try:
            identity: BoxIdentity = codec.parse_answer(m.Identify(), answers[0])
            error = codec.parse_answer(m.NextError(), answers[1]) if len(requests) > 2 else QueuedError(0, "")
        except (ValueError, IndexError):
            raise ProtocolError(
                f"{self._asked(requests)}: expected an identification, found {answers!r}; "
                "check that this is a FlexFabric switch"
            ) from None
        if not identity.model.startswith("FlexFabric"):
            raise ProtocolError(
                f"{self.url}: expected a FlexFabric switch, found {identity.vendor} {identity.model}; check the address"
            )
        if self._is_new_wire and self._identity is not None and identity.serial != self._identity.serial:
            raise ProtocolError(
                f"{self.url}: expected the switch with the serial {self._identity.serial}, as before it was lost, "
                f"found that with {identity.serial}; check where the address, or the serial adapter, leads now"
            )
        self._identity, self._is_new_wire = identity, False
        return error

    def _reconnect(self, deadline: Deadline) -> None:
        self._transport = deadline.retry(
            lambda: open_transport(self.url, deadline, self._baud), NotConnected, every_s=_RECONNECT_EVERY_NS / 1e9
        )
        self._is_new_wire = True

    def _leave_silence(self) -> None:
        """Have a connection that says nothing be made anew: of one whose switch lost power nothing tells its end."""
        if self._transport is not None and is_connected(self.url):
            self._transport.abandon()
            self._drop()

    def _drop(self) -> None:
        self._is_in_step = False
        self._buffer = b""
        if self._transport is not None:
            self._transport.close()
            self._transport = None


def _exchange(t_ns: int, sent: bytes, received: bytes) -> Exchange:
    return Exchange(t_ns, sent.decode("ascii"), received.decode("latin-1"))


def _shown(line: bytes) -> str:
    return line.decode("ascii").strip()
