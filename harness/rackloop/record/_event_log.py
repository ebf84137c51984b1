"""The event stream: one append-only file of JSON lines that is the record of a run.

Every report is a view of it. One process writes it; an event that announces an act is on disk before the act.
Stamps are nanoseconds on the run's clock (CLOCK_MONOTONIC); ``run.started`` ties that clock to the time of day.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

from rackloop.clock import Clock
from rackloop.errors import BadInput, LabError
from rackloop.record._events import KINDS, SCHEMA, ActAnnounced, ActDone, Event
from rackloop.record.acts import Act, announced_json

if TYPE_CHECKING:
    from pydantic import TypeAdapter

# What an event holds that is an event's part has its fields as attributes; copying them first (asdict) takes four times
# as long, and thousands of events are written while something is measured.
_ENCODER = json.JSONEncoder(separators=(",", ":"), default=vars)


@dataclass(frozen=True)
class Stamped:
    """An event with its number and its moment, as the file has it."""

    seq: int
    t_ns: int
    event: Event


class EventSink(Protocol):
    """A sink of events: the log itself, or a connection to the process that writes it."""

    @property
    def problem(self) -> str | None:
        """The reason that events are missing from the stream, in one sentence; None while none are."""
        ...

    def write(self, event: Event, *, durable: bool = False) -> object:
        """Append ``event``; with ``durable`` it is on disk when this returns.

        Where the disk refuses, ``problem`` says so from then on, and every durable event raises LabError: an act that
        could not be announced must not happen. Other events are lost without an error, so that undoing goes on.
        """
        ...

    def close(self) -> None:
        """Take no more events."""
        ...


class EventLog:
    """Writes events to ``path``, numbered and stamped. Safe to call from several threads of one process.

    Raises LabError when the log is closed. Once the disk has refused an event nothing is appended any more, so that a
    line which was half written stays the last.
    """

    def __init__(self, path: Path, clock: Clock) -> None:
        self.path = path
        self.problem: str | None = None
        self._clock = clock
        self._seq = self._written = self._synced = 0
        self._lock, self._syncing = Lock(), Lock()
        self._is_closed = False
        self._listeners: list[Callable[[Stamped], None]] = []
        try:
            self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_EXCL | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise BadInput(f"cannot start the event stream {path}: {error.strerror}; choose another --out") from error

    def subscribe(self, listener: Callable[[Stamped], None]) -> None:
        """Have ``listener`` called with every event from now on, on the writer's thread, after it was written."""
        self._listeners.append(listener)

    def write(self, event: Event, *, durable: bool = False) -> Stamped:
        """Append ``event`` as :meth:`EventSink.write` does."""
        with self._lock:
            if self._is_closed:
                raise LabError(f"the event stream {self.path} has ended: nothing may be done any more")
            self._seq += 1
            stamped = Stamped(self._seq, self._clock.now_ns(), event)
            if self.problem is None:
                record = {"seq": stamped.seq, "t_ns": stamped.t_ns, "kind": event.kind, **vars(event)}
                try:
                    _write_all(self._fd, _ENCODER.encode(record).encode() + b"\n")
                    self._written = stamped.seq
                except OSError as error:
                    self.problem = unwritable(self.path.parent, error)
        if durable:
            self._sync(stamped.seq)
        for listener in self._listeners:
            listener(stamped)
        return stamped

    def _sync(self, seq: int) -> None:
        """Have the events up to this one on disk, while others may be written."""
        with self._syncing:
            if self.problem is None and self._synced < seq:
                written = self._written
                try:
                    os.fdatasync(self._fd)
                    self._synced = written
                except OSError as error:
                    self.problem = unwritable(self.path.parent, error)
            if self.problem is not None:
                raise LabError(self.problem)

    def close(self) -> None:
        """Flush to disk and close; the log takes no more events. Closing twice does no harm."""
        with self._syncing, self._lock:
            if not self._is_closed:
                self._is_closed = True
                try:
                    os.fsync(self._fd)
                    self._synced = self._written
                except OSError as error:
                    self.problem = self.problem or unwritable(self.path.parent, error)
                finally:
                    os.close(self._fd)


class ActLog:
    """Numbers the acts of one run and writes them to its event stream, where it has one. Safe for several threads.

    ``test`` is the test that acts belong to; the session sets it. ``start`` keeps the numbers of several
    processes of one run apart.
    """

    def __init__(self, events: EventSink | None = None, *, start: int = 0) -> None:
        self.test: str | None = None
        self._events = events
        self._lock = Lock()
        self._last = start

    def announce(self, act: Act, resource: str | None = None) -> int:
        """Write that ``act`` is about to be made on ``resource``, and return its number; it is on disk on return.

        Raises LabError when the disk refuses: the act must not happen.
        """
        with self._lock:
            self._last += 1
            number = self._last
        if self._events is not None:
            announced = ActAnnounced(number, self.test, act.ability, announced_json(act, resource))
            self._events.write(announced, durable=True)
        return number

    def done(self, act: int, *, error: str | None = None, result: Mapping[str, Any] | None = None) -> None:
        """Write how the act ended."""
        if self._events is not None:
            self._events.write(ActDone(act, self.test, error, result or {}))


def unwritable(directory: Path, error: OSError) -> str:
    """Say why the results of a run cannot be written to ``directory``, and what to do."""
    return f"{directory} cannot be written: {error.strerror}; free some space, or choose another --out"


def _write_all(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


def read_events(path: Path) -> Iterator[Stamped]:
    """The events of a stream, oldest first.

    A half-written last line, which a killed run may leave, is passed over. Raises BadInput where the file is
    missing or another line is not an event of this schema, naming the line.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}; give the output directory of a run") from error
    lines = raw.split(b"\n")
    for number, line in enumerate(lines, start=1):
        if not line:
            continue
        try:
            yield _stamped(line)
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            if number == len(lines):
                return
            what = " ".join(str(error).split())
            raise BadInput(
                f"{path}:{number}: not an event of schema {SCHEMA} ({what}); was the file edited?"
            ) from error


def _stamped(line: bytes) -> Stamped:
    from pydantic import ValidationError
    from pydantic_core import from_json

    try:
        record = from_json(line, cache_strings="keys")
    except ValueError:
        record = json.loads(line)  # three times as slow, but it reads half a surrogate pair as well
    try:
        event: Event = _validator(record["kind"]).validate_python(record)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        field_name = ".".join(str(part) for part in first["loc"])
        raise ValueError(f"{record['kind']}, {field_name}: {first['msg']}") from error
    return Stamped(int(record["seq"]), int(record["t_ns"]), event)


@cache
def _validator(kind: str) -> TypeAdapter[Any]:
    """A validator of every field's type of one kind of event; fields of later versions are ignored."""
    from pydantic import TypeAdapter

    return TypeAdapter(KINDS[kind])
