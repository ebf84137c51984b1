"""The record of a run, read from its event stream; all reports are made from it."""

from __future__ import annotations

import gc
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from rackloop.errors import BadInput
from rackloop.measurement import Cause, Distribution, Interval, MachineLoad, Verdict, worst
from rackloop.record import (
    ActAnnounced,
    ActDone,
    Attached,
    DriveSeen,
    EnvironmentSeen,
    EvidenceGathered,
    Exchange,
    FaultPhase,
    HealthCompared,
    IoSeries,
    Measured,
    PartOut,
    RackHealed,
    RemapSeen,
    RetestDone,
    RoundsMeasured,
    RunFinished,
    RunStarted,
    Stamped,
    TaskRan,
    TestFinished,
    TestStarted,
    read_events,
)
from rackloop.record.acts import Act as RackAct
from rackloop.record.acts import act_json, announced_act
from rackloop_reports.formatting import KILLED_RUN

EVENTS_FILE = "events.jsonl"
# Clocks count nanoseconds in 64 bits.
_END_NS = 1 << 63
_COMMANDED, _ACKNOWLEDGED, _EFFECT, _HEALED = "commanded", "acknowledged", "effect", "healed"
UNFINISHED = "the test started and never finished: the run was killed"
KILLED = "the run was killed: its event stream ends without run.finished"


@dataclass
class Act:
    """An act on the rack: the times of its announcement and its end (None where none was recorded), and its result."""

    what: RackAct
    resource: str | None
    announced_ns: int
    done_ns: int | None = None
    error: str | None = None
    result: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        what = (self.what.ability, act_json(self.what).get("do"), self.resource)
        return " ".join(str(part) for part in what if part)


@dataclass(frozen=True)
class FaultRecord:
    """One fault of a test with its phases by name; a phase that was not observed is absent."""

    number: int
    phases: dict[str, FaultPhase]

    @property
    def kind(self) -> str:
        """The kind of fault."""
        return self._any.fault_kind

    @property
    def target(self) -> str:
        """The part of the rack that the fault acted on."""
        return self._any.target

    @property
    def parameters(self) -> dict[str, Any]:
        """The fault's parameters."""
        return dict(self._any.parameters)

    @property
    def began_ns(self) -> int:
        """The time of the fault's command."""
        return self._any.at_ns

    @property
    def is_acknowledged(self) -> bool:
        """True where the equipment acknowledged the fault."""
        return _ACKNOWLEDGED in self.phases

    @property
    def effect(self) -> FaultPhase | None:
        """The first observed effect."""
        return self.phases.get(_EFFECT)

    @property
    def healed_ns(self) -> int | None:
        """The time at which the fault was undone; None where that was not observed."""
        healed = self.phases.get(_HEALED)
        return healed.at_ns if healed is not None else None

    @property
    def _any(self) -> FaultPhase:
        return self.phases.get(_COMMANDED) or next(iter(self.phases.values()))


@dataclass
class TestRecord:
    """Everything the stream says about one test. ``verdict`` and what explains it hold from ``test.finished`` on;
    of a test that never finished they are unknown, harness, and a reason that says so."""  # noqa: D205, D209

    __test__ = False
    id: str
    purpose: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    headlines: Sequence[str] = ()
    started_ns: int = 0
    ended_ns: int = 0
    verdict: Verdict = Verdict.UNKNOWN
    cause: Cause | None = Cause.HARNESS
    reason: str | None = UNFINISHED
    measurements: list[Measured] = field(default_factory=list)
    remaps: list[RemapSeen] = field(default_factory=list)
    exchanges: list[Exchange] = field(default_factory=list)
    series: list[IoSeries] = field(default_factory=list)
    acts: list[Act] = field(default_factory=list)
    rounds: list[RoundsMeasured] = field(default_factory=list)
    drives: list[DriveSeen] = field(default_factory=list)
    attachments: list[Attached] = field(default_factory=list)
    tasks: list[TaskRan] = field(default_factory=list)
    faults: list[FaultPhase] = field(default_factory=list)
    health: HealthCompared | None = None
    evidence: EvidenceGathered | None = None
    retests: list[RetestDone] = field(default_factory=list)
    load: MachineLoad | None = None
    is_finished: bool = False

    def measured(self, name: str, labels: Collection[str] = ()) -> Iterator[Measured]:
        """Each measurement called ``name`` with at least these ``labels``, once; the stream has one for each limit."""
        seen = set()
        for measured in self.measurements:
            key = frozenset(measured.labels.items())
            if measured.name == name and measured.labels.keys() >= set(labels) and key not in seen:
                seen.add(key)
                yield measured


@dataclass
class RunRecord:
    """A whole run. Stamps are nanoseconds on the run's clock; :meth:`wall` gives the time of day.

    ``tests`` stand in the order they began. Of a run that was killed between two tests, the last entry is a test
    named ``run``, unknown by the harness, so that no view of the run is green. ``parts_out`` are the parts of the rack
    that were not used, in the order they were taken out; ``healed`` says what was
    undone and restored before the first test; ``environment`` is what the rack was found to run on.
    """

    started: RunStarted
    started_ns: int
    ended_ns: int
    tests: list[TestRecord]
    exchanges: list[Exchange]
    finished: RunFinished | None
    parts_out: list[PartOut] = field(default_factory=list)
    healed: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def is_simulated(self) -> bool:
        """True where the drives, switch and hosts were simulated: every report must say so."""
        return self.started.lab_kind == "mock"

    @property
    def verdict(self) -> Verdict:
        """The worst of what the tests and the run itself concluded."""
        own = [Verdict(self.finished.verdict)] if self.finished else [Verdict.UNKNOWN]
        return worst([*own, *(test.verdict for test in self.tests)])

    @property
    def lab(self) -> str:
        """The lab's name for people, with its kind, and "simulated" where it is."""
        kind = self.started.lab_kind
        name = self.started.lab if self.started.lab == kind else f"{self.started.lab}, {kind}"
        return f"{name} (simulated)" if self.is_simulated else name

    @property
    def title(self) -> str:
        """One line that names this run among others."""
        when = self.wall(self.started_ns)
        return f"{self.started.plan} on {self.lab}, {when:%Y-%m-%d %H:%M:%S} UTC, seed {self.started.seed}"

    def wall(self, at_ns: int) -> datetime:
        """The time of day, in UTC, at ``at_ns`` on the run's clock."""
        begun = datetime.fromisoformat(self.started.wall).astimezone(UTC)
        return begun + timedelta(microseconds=(at_ns - self.started_ns) / 1000)

    def wall_ms(self, at_ns: int) -> int:
        """Milliseconds since 1970 at ``at_ns`` on the run's clock."""
        return round(self.wall(at_ns).timestamp() * 1000)


def samples_of(measured: Measured) -> Distribution:
    """The distribution that a statistic was taken from."""
    return Distribution(tuple(measured.values), tuple(measured.counts), measured.clusters)


def interval_of(test: TestRecord, measured: Measured, q: float) -> Interval:
    """The interval that a quantile was judged by, with what the machine may have added; else that of the samples."""
    told = (
        one.ci95
        for one in test.measurements
        if (one.name, one.labels, one.quantile) == (measured.name, measured.labels, f"p{q * 100:g}")
    )
    return next(filter(None, told), None) or samples_of(measured).quantile_ci95(q)


def fault_records(phases: Iterable[FaultPhase]) -> list[FaultRecord]:
    """The faults that ``phases`` belong to, in the order of their commands."""
    found: dict[tuple[str, int], dict[str, FaultPhase]] = {}
    for phase in phases:
        found.setdefault((phase.test, phase.fault), {}).setdefault(phase.phase, phase)
    faults = [FaultRecord(number, its) for (_, number), its in found.items()]
    return sorted(faults, key=lambda fault: (fault.began_ns, fault.number))


def read_run(run_dir: Path) -> RunRecord:
    """The run whose output directory this is.

    Raises BadInput where the directory is none, holds no event stream, or its stream is empty or corrupted.
    """
    if not run_dir.is_dir():
        raise BadInput(f"{run_dir} is not a directory: give the output directory of a run")
    path = run_dir / EVENTS_FILE
    if not path.is_file():
        raise BadInput(f"{run_dir} holds no {EVENTS_FILE}: give the output directory of a run")
    with _nothing_collected():
        events = list(read_events(path))
        if not events:
            raise BadInput(f"{path} holds no events: the run ended before it began; run the plan again")
        try:
            return digest(events)
        except ValueError as error:
            raise BadInput(f"{path}: {error}; was the file edited?") from error


@contextmanager
def _nothing_collected() -> Iterator[None]:
    """No search for cycles: events have none, and with tens of thousands of them it takes as long as reading them."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def digest(events: Sequence[Stamped]) -> RunRecord:
    """The run that these events tell, oldest first.

    Raises ValueError where the stream does not begin with ``run.started``, or a verdict, cause or lab in it is none.
    """
    match events[0]:
        case Stamped(_, started_ns, RunStarted() as started):
            run = RunRecord(started, started_ns, events[-1].t_ns, [], [], None)
        case other:
            raise ValueError(f"the stream begins with {other.event.kind}, expected {RunStarted.kind}")
    datetime.fromisoformat(run.started.wall)
    if Path(run.started.lab).name != run.started.lab:
        raise ValueError(f"{run.started.lab!r} is no name of a lab")
    reader = _Reader(run)
    for stamped in events[1:]:
        if not 0 <= stamped.t_ns < _END_NS:
            raise ValueError(f"event {stamped.seq} is at {stamped.t_ns} ns, which is no time of the run's clock")
        reader.take(stamped)
    if run.finished is None and all(test.is_finished for test in run.tests):
        run.tests.append(
            TestRecord(KILLED_RUN, "Carry out the plan", started_ns=run.ended_ns, ended_ns=run.ended_ns, reason=KILLED)
        )
    for test in run.tests:
        test.ended_ns = test.ended_ns or run.ended_ns
        pending = [str(act) for act in test.acts if act.done_ns is None]
        if pending and not test.is_finished:
            test.reason = f"{UNFINISHED}; announced without a recorded end: {', '.join(pending)}"
    return run


class _Reader:
    """Sorts events into the run they belong to."""

    def __init__(self, run: RunRecord) -> None:
        self.run = run
        self._tests: dict[str, TestRecord] = {}
        self._open_acts: dict[int, Act] = {}

    def take(self, stamped: Stamped) -> None:
        """File one event."""
        match stamped.event:
            case TestStarted() as event:
                test = self._test(event.test, stamped.t_ns)
                test.purpose, test.labels, test.headlines = event.purpose, event.labels, event.headlines
            case TestFinished() as event:
                self._finish(self._test(event.test, stamped.t_ns), event, stamped.t_ns)
            case ActAnnounced() as event:
                act = Act(*announced_act(event.ability, event.what), stamped.t_ns)
                self._open_acts[event.act] = act
                if event.test:
                    self._test(event.test, stamped.t_ns).acts.append(act)
            case ActDone() as event:
                ended = self._open_acts.pop(event.act, None)
                if ended is None:
                    raise ValueError(f"event {stamped.seq} ends act {event.act}, which was never announced")
                ended.done_ns, ended.error, ended.result = stamped.t_ns, event.error, event.result
            case Exchange() as event:
                owner = self._test(event.test, stamped.t_ns).exchanges if event.test else self.run.exchanges
                owner.append(event)
            case Measured() as event:
                if event.verdict:
                    Verdict(event.verdict)
                Distribution(tuple(event.values), tuple(event.counts))
                self._test(event.test, stamped.t_ns).measurements.append(event)
            case RemapSeen() as event:
                self._test(event.test, stamped.t_ns).remaps.append(event)
            case FaultPhase() as event:
                self._test(event.test, stamped.t_ns).faults.append(event)
            case IoSeries() as event:
                self._test(event.test, stamped.t_ns).series.append(event)
            case RoundsMeasured() as event:
                self._test(event.test, stamped.t_ns).rounds.append(event)
            case DriveSeen() as event:
                self._test(event.test, stamped.t_ns).drives.append(event)
            case TaskRan() as event:
                self._test(event.test, stamped.t_ns).tasks.append(event)
            case HealthCompared() as event:
                for name in (*event.since, event.test):
                    self._test(name, stamped.t_ns).health = event
            case EvidenceGathered() as event:
                self._test(event.test, stamped.t_ns).evidence = event
            case RetestDone() as event:
                self._test(event.test, stamped.t_ns).retests.append(event)
            case EnvironmentSeen() as event:
                self.run.environment |= event.facts
            case RackHealed() as event:
                self.run.healed += event.done
            case PartOut() as event:
                self.run.parts_out.append(event)
            case Attached() as event:
                self._test(event.test, stamped.t_ns).attachments.append(event)
            case RunFinished() as event:
                Verdict(event.verdict)
                self.run.finished = event
            case RunStarted():
                raise ValueError(f"event {stamped.seq} starts a second run in the same stream")

    def _test(self, name: str, at_ns: int) -> TestRecord:
        found = self._tests.get(name)
        if found is None:
            found = self._tests[name] = TestRecord(name, started_ns=at_ns)
            self.run.tests.append(found)
        return found

    @staticmethod
    def _finish(test: TestRecord, event: TestFinished, at_ns: int) -> None:
        if test.is_finished and worst([test.verdict, Verdict(event.verdict)]) is test.verdict:
            # It ran twice, and the worse of its outcomes is its own.
            return
        test.verdict = Verdict(event.verdict)
        test.cause = Cause(event.cause) if event.cause else None
        test.reason = event.reason
        test.load = event.load
        test.ended_ns = at_ns
        test.is_finished = True
