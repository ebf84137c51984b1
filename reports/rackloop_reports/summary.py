"""``summary.json``: a run's verdicts and measurements in one small file that other programs read.

``summary.schema.json`` beside this module is its JSON Schema, generated from the classes here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from rackloop.measurement import Cause, Interval, MachineLoad, Verdict
from rackloop.record import Measured
from rackloop_reports.profile_verdicts import profile_verdicts
from rackloop_reports.record import RunRecord, TestRecord

SCHEMA = 1


@dataclass(frozen=True)
class DutSummary:
    """A drive under test; ``identifiers`` has keys among ``wwn``, ``eui64``, ``nguid``, ``by_path`` and ``slot``."""

    id: str
    model: str | None
    serial: str | None
    firmware: str | None
    protocol: str | None
    identifiers: Mapping[str, str | None]


@dataclass(frozen=True)
class MeasurementSummary:
    """One statistic of one measurement, in SI units; ``limits`` and ``verdict`` are None where the plan has no limit.

    ``quantile`` is ``p99``-like, or ``max``, ``min`` or ``mean``. ``ci95`` bounds ``value`` at 95 %, with None where
    ``n`` samples cannot; it is None for a maximum and a minimum, which are facts and no estimates. ``p50`` and ``p99``
    are None where they cannot be bounded. ``clusters`` is how many independent draws the samples come from, None where
    each is one; ``error`` is the most that the measuring machine may have added to one of them. ``cause`` and
    ``reason`` say why a verdict is not a pass.
    """

    name: str
    labels: Mapping[str, str]
    unit: str
    n: int
    quantile: str
    value: float
    ci95: Interval | None
    p50: float | None
    p99: float | None
    limits: Mapping[str, Any] | None
    verdict: Verdict | None
    cause: Cause | None = None
    reason: str | None = None
    clusters: int | None = None
    error: float = 0.0


@dataclass(frozen=True)
class TestSummary:
    """One test: ``cause`` and ``reason`` say why it is not a pass, ``load`` how busy the harness's machine was.

    ``duration_s`` is how long it took with its set-up and tear-down, None where the run was killed meanwhile.
    ``headlines`` are the measures that sum it up, which the summary on the terminal shows.
    """

    __test__ = False
    id: str
    verdict: Verdict
    cause: Cause | None
    reason: str | None
    labels: Mapping[str, str]
    measurements: Sequence[MeasurementSummary]
    load: MachineLoad | None = None
    duration_s: float | None = None
    headlines: Sequence[str] = ()


@dataclass(frozen=True)
class PartSummary:
    """A part of the rack that was not used: ``state`` is maintenance, quarantine or broken.

    ``test`` is the one it was taken out after or before, None where it was out before the run.
    """

    gear: str
    state: str
    reason: str
    test: str | None


@dataclass(frozen=True)
class Summary:
    """A run, as ``summary.json`` holds it. ``started`` is ISO 8601, ``wall_s`` how long it took.

    ``out_of_service`` is in the file only where something was not used, ``profiles`` only where measurements have the
    label ``profile``: the verdict on each profile of drives. ``healed``, what was undone and restored before the first
    test, is there only where something was.
    """

    schema: int
    plan: str
    lab: str
    lab_kind: str
    seed: int
    started: str
    wall_s: float
    verdict: Verdict
    versions: Mapping[str, str]
    duts: Sequence[DutSummary]
    tests: Sequence[TestSummary]
    out_of_service: Sequence[PartSummary] = ()
    profiles: Mapping[str, Verdict] = field(default_factory=dict)
    healed: Sequence[str] = ()


def summarize(run: RunRecord) -> Summary:
    """The summary of ``run``."""
    return Summary(
        schema=SCHEMA,
        plan=run.started.plan,
        lab=run.started.lab,
        lab_kind=run.started.lab_kind,
        seed=run.started.seed,
        started=run.started.wall,
        wall_s=round((run.ended_ns - run.started_ns) / 1e9, 3),
        verdict=run.verdict,
        versions=run.started.versions,
        duts=[_dut(dut) for dut in run.started.duts],
        tests=[_test(test) for test in run.tests],
        out_of_service=[PartSummary(out.gear, out.state, out.reason, out.test) for out in run.parts_out],
        profiles=profile_verdicts(run.tests),
        healed=run.healed,
    )


def to_json(summary: Summary) -> str:
    """The text of ``summary.json``."""
    document = asdict(summary)
    for seldom in ("out_of_service", "profiles", "healed"):
        if not document[seldom]:
            del document[seldom]
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def json_schema() -> str:
    """The text of ``summary.schema.json``."""
    from pydantic import TypeAdapter

    described = TypeAdapter(Summary).json_schema()
    return json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema", **described}, indent=2) + "\n"


def _dut(dut: Mapping[str, Any]) -> DutSummary:
    return DutSummary(
        id=str(dut.get("id")),
        model=dut.get("model"),
        serial=dut.get("serial"),
        firmware=dut.get("firmware"),
        protocol=dut.get("protocol"),
        identifiers=dut.get("identifiers") or {},
    )


def _test(test: TestRecord) -> TestSummary:
    measurements = [_measurement(measured) for measured in test.measurements]
    duration_s = round((test.ended_ns - test.started_ns) / 1e9, 3) if test.is_finished else None
    return TestSummary(
        test.id,
        test.verdict,
        test.cause,
        test.reason,
        test.labels,
        measurements,
        test.load,
        duration_s,
        test.headlines,
    )


def _measurement(measured: Measured) -> MeasurementSummary:
    return MeasurementSummary(
        name=measured.name,
        labels=measured.labels,
        unit=measured.unit,
        n=measured.n,
        quantile=measured.quantile,
        value=measured.value,
        ci95=measured.ci95,
        p50=measured.p50,
        p99=measured.p99,
        limits=measured.limits,
        verdict=Verdict(measured.verdict) if measured.verdict else None,
        cause=Cause(measured.cause) if measured.cause else None,
        reason=measured.reason,
        clusters=measured.clusters,
        error=measured.error,
    )
