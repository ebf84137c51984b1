"""A plan file as it is written: which tests, with which parameters, limits and repeats."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationInfo

from rackloop.faults.schedules import PlanSchedule
from rackloop.lab import LabKind, ProfileName
from rackloop.lab.yaml import Description, Name, Scalar, Seconds, Text, flag, matching, one_of, text_of, whole, wrong
from rackloop.measurement import Statistic
from rackloop.names import NAME, kind_of
from rackloop.units import quantile_of

MOST_TESTS = 10_000
"""The largest number of tests of a plan, repeats included."""

_DOTTED = r"[a-z][a-z0-9_]*(?:\.[a-z][a-z0-9_]*)*"


def _statistic(value: object, _info: ValidationInfo) -> Statistic:
    expected = "max, min, mean, or a quantile such as p50, p99 or p99.9"
    match text_of(value, expected):
        case "max" | "min" | "mean" as name:
            return name
        case text if quantile := quantile_of(text):
            return quantile
        case text:
            raise wrong(f"expected {expected}, found {kind_of(text)}")


ServerChoice = Annotated[
    str, matching(rf"(?:tag:)?{NAME.pattern}", "a server such as srv1, or a tag such as tag:nvme8")
]
Dotted = Annotated[str, matching(_DOTTED, "a dotted name such as remap.latency")]


class WrittenOn(Description):
    """The runs that a limit, or parameters, are for."""

    lab_kind: Annotated[LabKind, one_of(LabKind, LabKind)] | None = None
    """Only runs on this kind of lab: mock, virtual or physical."""
    lab: Name | None = None
    """Only runs on the lab of this name."""


class WrittenLimitOn(WrittenOn):
    """The measurements that a limit is for."""

    profile: ProfileName | None = None
    """Only what was measured of drives of this profile, such as nvme-ssd, or a profile file of your own."""


class WrittenLimit(Description):
    """A demand on a measure; the bounds are texts until the test file has said the measure's unit."""

    measure: Dotted
    """The measure it is about, one of the test file's MEASURES, such as remap.latency."""
    where: Mapping[Name, Text] = {}
    """Only measurements with these labels, such as {stack: comreset}."""
    quantile: Annotated[Statistic, Scalar(_statistic, {"type": "string", "examples": ["p99", "max"]})] | None = None
    """The statistic that is judged: p50, p99, p99.9 and the like, max, min or mean."""
    maximum: Text | None = Field(default=None, alias="max")
    """The highest value allowed, with its unit, such as 2 ms."""
    minimum: Text | None = Field(default=None, alias="min")
    """The lowest value allowed, with its unit, such as 280 MB/s."""
    on: WrittenLimitOn = WrittenLimitOn()
    """Only this lab, kind of lab or profile of drives, such as {lab_kind: mock} or {profile: nvme-ssd}."""


class WrittenHealth(Description):
    """Rules for the rack's health."""

    expect: tuple[Dotted, ...] = ()
    """Counters and kernel messages that the test moves itself, such as [media_errors, kernel.medium_error]."""


class WrittenInstead(Description):
    """Parameters on some labs, which outrank those of the entry, and what they may lack."""

    on: WrittenOn
    """The lab or the kind of lab that they are for, such as {lab_kind: virtual}."""
    may_skip: tuple[Dotted, ...] = ()
    """Abilities that may be lacking there besides those of the entry, such as [parts]."""
    parameters: Mapping[Name, Any] = Field(default={}, alias="with")
    """Parameters that differ there, such as {remaps: 40}."""


class WrittenEntry(Description):
    """One test of a plan."""

    test: Annotated[
        str, matching(r"[A-Za-z0-9_/-]{1,200}(?:::[A-Za-z0-9_]{1,100})?", "a test such as fabric/remap_latency")
    ]
    """The test file below testplans/ without 'test_' and '.py', such as fabric/remap_latency; '::name' for one test."""
    requires: tuple[Dotted, ...] = ()
    """Abilities that the lab must offer besides those of the test file, such as [fabric.remap]."""
    may_skip: tuple[Dotted, ...] = ()
    """Abilities, parts or equipment without which it is skipped, not blocked, such as [fabric.remap]."""
    parameters: Mapping[Name, Any] = Field(default={}, alias="with")
    """Parameters that differ from the test file's PARAMETERS, such as {remaps: 400}."""
    differing: tuple[WrittenInstead, ...] = Field(default=(), alias="instead")
    """Parameters that differ on some labs, such as [{on: {lab_kind: virtual}, with: {remaps: 40}}]."""
    limits: tuple[WrittenLimit, ...] = ()
    """The limits of its measures."""
    repeats: Annotated[int, whole(1, MOST_TESTS)] = 1
    """The number of its runs."""
    timeout: Seconds | None = None
    """The time for one run of its function, fixtures aside, such as 10 min."""
    health: WrittenHealth = WrittenHealth()
    """The changes of the rack's health that it makes on purpose, such as {expect: [media_errors]}."""
    disturbs: tuple[Name, ...] = ()
    """Drives that may lose their links for a moment though they are not scratch, such as [archive]."""
    labels: Mapping[Name, Text] = {}
    """Labels that reports show with it, such as {severity: critical}."""
    schedule: PlanSchedule | None = None
    """The schedule of faults that it plays, or the name of its file, such as storms/drives.yaml."""


class WrittenProvision(Description):
    """Provisioning of the servers before the first test."""

    playbook: Text = "site"
    """The playbook: a file, or the name of a packaged one."""
    roles: tuple[Name, ...] = ()
    """Only these roles of it, such as [base_tools, network_tuning]; all by default."""
    servers: tuple[Name, ...] = ()
    """Only these servers, such as [srv1, srv2]; all that the run has by default."""
    variables: Mapping[Name, Any] = Field(default={}, alias="vars")
    """Variables for the playbook, such as {network_tuning_mtu: 1500}; they outrank the roles' defaults."""
    timeout: Seconds = 600.0
    """The time that it may take."""


def _from_flag(value: object) -> object:
    """True says all by default, false nothing."""
    if isinstance(value, str):
        return {} if flag(value) else None
    return value


def _or_a_flag(schema: dict[str, Any]) -> None:
    schema["anyOf"].append({"type": "boolean"})


class WrittenPlan(Description):
    """A whole plan file."""

    plan: Name
    """The plan's name, which reports and results carry."""
    purpose: Annotated[str, matching(r"(?s)\S.{0,2000}", "a sentence that says what a pass means")]
    """The meaning of a pass of the plan, in a sentence."""
    seed: Annotated[int, whole(0, 2**63 - 1)] | None = None
    """The seed of everything random; without it each run chooses its own, and prints it."""
    provision: Annotated[WrittenProvision | None, BeforeValidator(_from_flag), Field(json_schema_extra=_or_a_flag)] = (
        None
    )
    """True, or the roles, where servers are provisioned before the first test; false by default."""
    servers: tuple[ServerChoice, ...] = ()
    """The servers to lease, such as [srv1, tag:nvme8]: by name, or any with a tag; all by default."""
    tests: Annotated[tuple[WrittenEntry, ...], Field(min_length=1)]
    """The tests, in the order they run."""
