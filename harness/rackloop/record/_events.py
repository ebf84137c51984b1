"""The events of a run; :mod:`rackloop.record` writes and reads streams of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, get_args

from rackloop.measurement import MachineLoad
from rackloop.record._health_change import HealthChange
from rackloop.record._remap_seen import RemapSeen

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
class EnvironmentSeen:
    """The rack answered: facts about it by names for people, such as the kernel of each server."""

    kind: ClassVar[str] = "environment.seen"
    facts: Mapping[str, str]


@dataclass(frozen=True)
class RackHealed:
    """The rack was not at its baseline when the run began; ``done`` has in words what was undone and restored."""

    kind: ClassVar[str] = "rack.healed"
    done: Sequence[str]


@dataclass(frozen=True)
class TestStarted:
    """A test began. ``labels`` carry epic, feature, story and the plan's parameters as text.

    ``headlines`` are the measures whose figures the summary on the terminal shows.
    """

    kind: ClassVar[str] = "test.started"
    __test__: ClassVar[bool] = False
    test: str
    purpose: str
    labels: Mapping[str, str] = field(default_factory=dict)
    headlines: Sequence[str] = ()


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
class FaultPhase:
    """A moment of a fault, which ``fault`` numbers within the test: when, on whose clock, how far off that may be (ns).

    ``phase`` is ``commanded`` (about to be asked for), ``acknowledged`` (the equipment said that it is broken),
    ``effect`` (what a server or the rack first saw of it), ``cut_short`` (its end was commanded, before the time that
    its own parameters say, or when it stood no longer), ``healed`` (mended and read back). A phase that was not seen
    is absent. ``target`` and ``parameters`` are as in :class:`rackloop.faults.FaultSpec`.
    """

    kind: ClassVar[str] = "fault.phase"
    test: str
    fault: int
    fault_kind: str
    target: str
    parameters: Mapping[str, Any]
    phase: str
    at_ns: int
    error_ns: int
    clock: str


@dataclass(frozen=True)
class MeansChosen:
    """The choice of how to do what a test meant (``unplug``): by ``means``, a kind of fault, which ``by`` has in words.

    ``passed_over`` has for each means that would have come before it why the rack cannot do it.
    """

    kind: ClassVar[str] = "means.chosen"
    test: str
    what: str
    target: str
    means: str
    by: str
    passed_over: Sequence[str] = ()


@dataclass(frozen=True)
class IoSeries:
    """A time series of one I/O job, for the timeline: points of (t_ns, value), each value holding until the next."""

    kind: ClassVar[str] = "io.series"
    test: str
    job: str
    quantity: str
    unit: str
    points: Sequence[tuple[int, float]]

    @classmethod
    def of_intervals(
        cls, test: str, job: str, quantity: str, unit: str, began_ns: int, ended: Iterable[tuple[int, float]]
    ) -> IoSeries:
        """The series of values that were each taken over an interval and stamped at its end.

        The first began at ``began_ns``, each other where the one before ended: so fio and rackprobe stamp.
        """
        points: list[tuple[int, float]] = []
        for ended_ns, value in ended:
            points.append((began_ns, value))
            began_ns = ended_ns
        if points:
            points.append((began_ns, points[-1][1]))
        return cls(test, job, quantity, unit, points)


@dataclass(frozen=True)
class TaskRan:
    """A task of a playbook ended on a server; ``test`` is the provisioning it was part of.

    ``status``: ok, changed, failed, skipped, unreachable. ``reason`` says why it was skipped or what failed, and is
    None for the others; ``role`` is empty outside roles.
    """

    kind: ClassVar[str] = "task.ran"
    test: str
    playbook: str
    server: str
    role: str
    task: str
    action: str
    status: str
    reason: str | None
    started_ns: int
    ended_ns: int


@dataclass(frozen=True)
class Measured:
    """A measurement was taken and judged; ``values`` and ``counts`` are its distribution.

    ``quantile`` is ``p99``-like for quantiles, else ``max``, ``min`` or ``mean``; ``limits`` is None where the plan
    has none, else ``{"text", "min", "max"}``. ``ci95`` is None for what has no interval, a maximum or a minimum.
    ``cause`` says whose fault a verdict that is no pass is. ``clusters`` is how many independent draws the samples come
    from, None where each is one; ``error`` is the most that the measuring machine may have added to one of them.
    """

    kind: ClassVar[str] = "measured"
    test: str
    name: str
    labels: Mapping[str, str]
    unit: str
    n: int
    quantile: str
    value: float
    ci95: tuple[float | None, float | None] | None
    p50: float | None
    p99: float | None
    limits: Mapping[str, Any] | None
    verdict: str | None
    reason: str | None
    values: Sequence[float]
    counts: Sequence[int]
    cause: str | None = None
    clusters: int | None = None
    error: float = 0.0


@dataclass(frozen=True)
class RoundsMeasured:
    """One quantity of one workload, round after round: ``values`` are in the order they were measured.

    ``round_s`` is how long each was measured. ``criteria`` (``rounds``, ``excursion``, ``slope``) are those that steady
    state was judged by (:class:`rackloop.measurement.Criteria`), None where this quantity did not decide it.
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
    """A drive's identity when a test began; ``differs`` are sentences on what the lab description says else.

    ``facts`` are what its server says besides, in words: ``Link``, ``LBA format``.
    """

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
    facts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class HealthCompared:
    """The health of the rack before and after a test: every change, expected or not.

    ``unread`` says of what could not be read why. ``before`` and ``after`` are the snapshots' files below the run's
    output directory, None where there are none because no server can be asked. ``since`` are the tests before it that
    the comparison ranges over as well, oldest first: none of them asked anything of the rack, and nor did ``test``.
    """

    kind: ClassVar[str] = "health.compared"
    test: str
    changes: Sequence[HealthChange]
    unread: Mapping[str, str]
    before: str | None
    after: str | None
    since: Sequence[str] = ()


@dataclass(frozen=True)
class EvidenceGathered:
    """The evidence on a test that did not pass, on the run's clock; the file has it in words.

    ``lanes`` has the moments at which each source said something, (t_ns, error_ns); ``unread`` says of sources that
    could not be read, or whose clock is not known, why. ``left_out`` counts the lines which lanes do not have, and
    ``gaps`` has from when to when they were said; without ``gaps`` they were the first.
    """

    kind: ClassVar[str] = "evidence.gathered"
    test: str
    began_ns: int
    ended_ns: int
    lanes: Mapping[str, Sequence[tuple[int, int]]]
    unread: Mapping[str, str]
    left_out: Mapping[str, int] = field(default_factory=dict)
    gaps: Mapping[str, Sequence[tuple[int, int]]] = field(default_factory=dict)


@dataclass(frozen=True)
class RetestDone:
    """A drive that failed was tried elsewhere, and another in its place (:mod:`rackloop.safety.maintenance`).

    ``finding`` is drive, port or cable, server, several, not reproduced or unclear; ``culprits`` are the parts that
    are, or may be, at fault. Each trial has drive, server, port, seen, took_s and detail. ``said`` is it in words.
    """

    kind: ClassVar[str] = "retest.done"
    test: str
    drive: str
    finding: str
    culprits: Sequence[str]
    trials: Sequence[Mapping[str, Any]]
    said: str


@dataclass(frozen=True)
class PartOut:
    """A part of the rack is not used: ``state`` is maintenance, quarantine or broken, the latter for this run alone.

    ``test`` is the one it was taken out after, None where it was out before the run. ``evidence`` is what it failed.
    """

    kind: ClassVar[str] = "gear.out"
    test: str | None
    gear: str
    state: str
    reason: str
    evidence: Sequence[str] = ()


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
    """A test ended with a verdict and, unless it passed, a cause and a reason.

    ``load`` is how busy the machine of the harness was meanwhile, None for what is no test's body.
    """

    kind: ClassVar[str] = "test.finished"
    __test__: ClassVar[bool] = False
    test: str
    verdict: str
    cause: str | None
    reason: str | None
    duration_s: float
    load: MachineLoad | None = None


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
    | FaultPhase
    | MeansChosen
    | RemapSeen
    | IoSeries
    | TaskRan
    | Measured
    | RoundsMeasured
    | DriveSeen
    | HealthCompared
    | EvidenceGathered
    | RetestDone
    | PartOut
    | RackHealed
    | EnvironmentSeen
    | Attached
    | TestFinished
    | RunFinished
)
KINDS: Mapping[str, type[Event]] = {cls.kind: cls for cls in get_args(Event)}
