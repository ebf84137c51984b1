"""The event stream: one append-only file of JSON lines that is the record of a run.

Every report is a view of it. One process writes it; an event that announces an act is on disk before the act.
Stamps are nanoseconds on the run's clock (CLOCK_MONOTONIC); ``run.started`` ties that clock to the time of day.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from rackloop.clock import Clock
from rackloop.errors import BadInput, LabError

if TYPE_CHECKING:
    from pydantic import TypeAdapter

SCHEMA = 1


@dataclass(frozen=True)
class RunStarted:
    """A run began. ``duts`` are the drives under test as ``summary.json`` lists them."""

    kind: ClassVar[str] = "run.started"
    plan: str
    purpose: str
    lab: str
    lab_kind: str
    seed: int
    wall: str
    versions: Mapping[str, str]
    environment: Mapping[str, str]
    duts: Sequence[Mapping[str, Any]]
    schema: int = SCHEMA


@dataclass(frozen=True)
class TestStarted:
    """A test began. ``labels`` carry epic, feature, story and the plan's parameters as text."""

    kind: ClassVar[str] = "test.started"
    __test__: ClassVar[bool] = False
    test: str
    purpose: str
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ActAnnounced:
    """Something is about to be done to the rack; written durably before it is. ``act`` numbers it within the run."""

    kind: ClassVar[str] = "act.announced"
    act: int
    test: str | None
    ability: str
    what: Mapping[str, Any]


@dataclass(frozen=True)
class ActDone:
    """An announced act ended; ``error`` is None when it was carried out."""

    kind: ClassVar[str] = "act.done"
    act: int
    test: str | None
    error: str | None = None
    result: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Exchange:
    """One command and its answer on the wire of a switch."""

    kind: ClassVar[str] = "switch.exchange"
    test: str | None
    endpoint: str
    sent: str
    received: str
    started_ns: int
    ended_ns: int


@dataclass(frozen=True)
class Stage:
    """One moment of a remap: when, on whose clock, and by how much the stamp may be off (ns)."""

    name: str
    at_ns: int
    clock: str
    error_ns: int


@dataclass(frozen=True)
class RemapSeen:
    """The timeline of one drive coming to one server port.

    Stages in order: ``commanded``, ``executed``, ``phy_up``, ``online``, ``verified``; one that nobody saw is absent.
    """

    kind: ClassVar[str] = "remap.seen"
    test: str
    stack: str
    server: str
    port: str
    drive: str
    generation: int
    stages: Sequence[Stage]


@dataclass(frozen=True)
class IoSeries:
    """A time series of one I/O job, for the timeline: points of (t_ns, value)."""

    kind: ClassVar[str] = "io.series"
    test: str
    job: str
    quantity: str
    unit: str
    points: Sequence[tuple[int, float]]


@dataclass(frozen=True)
class Measured:
    """A measurement was taken and judged; ``values`` and ``counts`` are its distribution.

    ``statistic`` is ``p99``-like for quantiles, else ``max``, ``min`` or ``mean``; ``limits`` is None where the plan
    has none, else ``{"text", "min", "max"}``.
    """

    kind: ClassVar[str] = "measured"
    test: str
    name: str
    labels: Mapping[str, str]
    unit: str
    n: int
    quantile: str
    value: float
    ci95: tuple[float | None, float | None]
    p50: float | None
    p99: float | None
    limits: Mapping[str, Any] | None
    verdict: str | None
    reason: str | None
    values: Sequence[float]
    counts: Sequence[int]


@dataclass(frozen=True)
class RoundsMeasured:
    """One quantity of one workload, round after round: ``values`` are in the order they were measured.

    ``round_s`` is how long each was measured. ``criteria`` (``rounds``, ``excursion``, ``slope``) are those that steady
    state was judged by (:class:`rackloop.steady_state.Criteria`), None where this quantity did not decide it.
    """

    kind: ClassVar[str] = "rounds.measured"
    test: str
    name: str
    labels: Mapping[str, str]
    unit: str
    values: Sequence[float]
    round_s: float
    criteria: Mapping[str, float] | None


@dataclass(frozen=True)
class DriveSeen:
    """What a drive said it is when a test began; ``differs`` are sentences on what the lab description says else."""

    kind: ClassVar[str] = "drive.seen"
    test: str
    drive: str
    server: str
    port: str
    model: str
    serial: str
    firmware: str
    protocol: str
    size_bytes: int
    identifiers: Mapping[str, str]
    differs: Sequence[str]


@dataclass(frozen=True)
class Attached:
    """A file that belongs to a test was written below the run's output directory."""

    kind: ClassVar[str] = "attached"
    test: str
    name: str
    path: str
    media_type: str


@dataclass(frozen=True)
class TestFinished:
    """A test ended with a verdict and, unless it passed, a cause and a reason."""

    kind: ClassVar[str] = "test.finished"
    __test__: ClassVar[bool] = False
    test: str
    verdict: str
    cause: str | None
    reason: str | None
    duration_s: float


@dataclass(frozen=True)
class RunFinished:
    """The run ended; a stream without this event is that of a run that was killed."""

    kind: ClassVar[str] = "run.finished"
    verdict: str
    exit_code: int
    wall_s: float
    interrupted: bool = False


Event = (
    RunStarted
    | TestStarted
    | ActAnnounced
    | ActDone
    | Exchange
    | RemapSeen
    | IoSeries
    | Measured
    | RoundsMeasured
    | DriveSeen
    | Attached
    | TestFinished
    | RunFinished
)
_KINDS: dict[str, type[Event]] = {
    cls.kind: cls
    for cls in (
        RunStarted,
        TestStarted,
        ActAnnounced,
        ActDone,
        Exchange,
        RemapSeen,
        IoSeries,
        Measured,
        RoundsMeasured,
        DriveSeen,
        Attached,
        TestFinished,
        RunFinished,
    )
}


@dataclass(frozen=True)
class Stamped:
    """An event as it stands in the file: its number, its moment, and itself."""

    seq: int
    t_ns: int
    event: Event


class EventSink(Protocol):
    """What takes events: the log itself, or a connection to the process that writes it."""

    def write(self, event: Event, *, durable: bool = False) -> object:
        """Append ``event``; with ``durable`` it is on disk when this returns."""
        ...

    def close(self) -> None:
        """Take no more events."""
        ...


class EventLog:
    """Writes events to ``path``, numbered and stamped. Safe to call from several threads of one process.

    Raises LabError when the disk refuses, or the log is closed: an act that could not be announced must not happen.
    """

    def __init__(self, path: Path, clock: Clock) -> None:
        self.path = path
        self._clock = clock
        self._seq = 0
        self._lock = Lock()
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
        """Append ``event``; with ``durable`` it is on disk when this returns."""
        with self._lock:
            if self._is_closed:
                raise LabError(f"the event stream {self.path} has ended: nothing may be done any more")
            self._seq += 1
            stamped = Stamped(self._seq, self._clock.now_ns(), event)
            record = {"seq": stamped.seq, "t_ns": stamped.t_ns, "kind": event.kind, **asdict(event)}
            line = json.dumps(record, separators=(",", ":")).encode() + b"\n"
            try:
                _write_all(self._fd, line)
                if durable:
                    os.fdatasync(self._fd)
            except OSError as error:
                raise LabError(
                    f"cannot write the event stream {self.path}: {error.strerror}; free some space"
                ) from error
        for listener in self._listeners:
            listener(stamped)
        return stamped

    def close(self) -> None:
        """Flush to disk and close; the log takes no more events. Closing twice does no harm."""
        with self._lock:
            if not self._is_closed:
                self._is_closed = True
                os.fsync(self._fd)
                os.close(self._fd)


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
            yield _stamped(json.loads(line))
        except (ValueError, KeyError, TypeError) as error:
            if number == len(lines):
                return
            what = " ".join(str(error).split())
            raise BadInput(
                f"{path}:{number}: not an event of schema {SCHEMA} ({what}); was the file edited?"
            ) from error


def _stamped(record: dict[str, Any]) -> Stamped:
    from pydantic import ValidationError

    try:
        event: Event = _validators()[record["kind"]].validate_python(record)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        field_name = ".".join(str(part) for part in first["loc"])
        raise ValueError(f"{record['kind']}, {field_name}: {first['msg']}") from error
    return Stamped(int(record["seq"]), int(record["t_ns"]), event)


@cache
def _validators() -> dict[str, TypeAdapter[Any]]:
    """What checks the type of every field, so that readers may rely on them; a later version's fields are ignored."""
    from pydantic import TypeAdapter

    return {kind: TypeAdapter(cls) for kind, cls in _KINDS.items()}
