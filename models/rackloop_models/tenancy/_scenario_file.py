"""Scenario files: tenants of one drive, as they are written in YAML."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field

from rackloop.errors import BadInput
from rackloop.lab.yaml import (
    Description,
    Flag,
    Name,
    Scalar,
    Seconds,
    compose_file,
    examine,
    one_of,
    path_of,
    text_of,
    whole,
    wrong,
)
from rackloop.names import kind_of
from rackloop.units import NUMBER, parse_size
from rackloop_models.drives import (
    Bursts,
    Depth,
    Pattern,
    Priority,
    Rate,
    Slo,
    TraceReplay,
    WeightedOperation,
    WeightedSize,
)
from rackloop_models.tenancy._scenarios import CONDITIONS, UNIT_BYTES, Scenario, TenantKind

_LARGEST_BYTES = 1 << 50
_PATTERNS: tuple[Pattern, ...] = ("random", "sequential")
_PRIORITIES: tuple[Priority, ...] = ("urgent", "high", "medium", "low")
_REQUESTS = ("block", "sizes", "operations", "trace")


def _above_zero(value: object, _info: object) -> float:
    text = text_of(value, "a number above zero")
    if not NUMBER.fullmatch(text) or not 0 < float(text) <= 1e9:
        raise wrong(f"expected a number above zero, at most 1e9, found {kind_of(text)}")
    return float(text)


def _bytes(value: object, _info: object) -> int:
    text = text_of(value, "a size such as 4 KiB")
    try:
        size = parse_size(text)
    except ValueError as error:
        raise wrong(str(error)) from None
    if not 512 <= size <= _LARGEST_BYTES or size % 512:
        raise wrong(f"expected whole sectors of 512 bytes, 1 PiB at most, found {kind_of(text)}")
    return size


def _region(value: object, info: object) -> int:
    size = _bytes(value, info)
    if size % UNIT_BYTES:
        raise wrong(f"expected a multiple of 4 KiB, found {kind_of(value)}: drives map so much at once")
    return size


def _percent(value: object, _info: object) -> float:
    text = text_of(value, "a percentage")
    if not NUMBER.fullmatch(text) or not 0 <= float(text) <= 100:
        raise wrong(f"expected a number from 0 to 100, found {kind_of(text)}")
    return float(text)


Bytes = Annotated[int, Scalar(_bytes, {"type": "string", "examples": ["4 KiB", "1 GiB"]})]
RegionBytes = Annotated[int, Scalar(_region, {"type": "string", "examples": ["1 GiB"]})]
Positive = Annotated[float, Scalar(_above_zero, {"type": "number", "exclusiveMinimum": 0})]
Percent = Annotated[float, Scalar(_percent, {"type": "number", "minimum": 0, "maximum": 100})]


class WrittenSlo(Description):
    """A service level objective, which only ReFlex keeps."""

    iops: Positive
    """Requests of 4 KiB a second."""
    p95_us: Positive
    """The bound on the 95th percentile of read latency, in microseconds."""
    read_percent: Percent = 100.0
    """Share of reads among them."""


class WrittenSize(Description):
    """A size in a mix."""

    block: Bytes
    """The size of a request, such as 4 KiB."""
    weight: Positive
    """Its share, relative to the other sizes."""


class WrittenOperation(Description):
    """An operation in a mix, such as a get or a compaction of a key-value store."""

    operation: Annotated[str, one_of(("read", "write"))]
    """Read or write."""
    block: Bytes
    """The size of a request, such as 4 KiB."""
    weight: Positive
    """Its share, relative to the other operations."""
    pattern: Annotated[str, one_of(_PATTERNS)] = "random"
    """The access pattern: random or sequential."""
    priority: Annotated[str, one_of(_PRIORITIES)] | None = None
    """The tag of its requests; else that of the tenant."""


class WrittenBursts(Description):
    """Times with and without requests, in turns, from the time a tenant joins."""

    on: Seconds
    """Time in which it asks, such as 10 ms."""
    off: Seconds
    """Time in which it does not."""


class WrittenTrace(Description):
    """A recorded load to replay."""

    file: Annotated[Path, Scalar(path_of, {"type": "string"})]
    """JSON lines of t_ns, op (0 read, 1 write), offset_bytes and size_bytes, by time."""
    speed: Positive = 1.0
    """The speed of the replay, relative to that of the recording."""
    repeat: Flag = False
    """True where it begins again at its end."""


class WrittenKind(Description):
    """Tenants that are alike."""

    name: Name
    """Their name, which a number follows."""
    block: Bytes | None = None
    """The size of all requests, such as 4 KiB."""
    sizes: Annotated[tuple[WrittenSize, ...], Field(min_length=1, max_length=64)] | None = None
    """A mix of sizes, in place of block."""
    operations: Annotated[tuple[WrittenOperation, ...], Field(min_length=1, max_length=64)] | None = None
    """A mix of operations, in place of block, pattern and read_percent."""
    trace: WrittenTrace | None = None
    """A trace, in place of these."""
    depth: Annotated[int, whole(1, 65_536)] | None = None
    """A closed loop: requests kept in flight."""
    per_second: Positive | None = None
    """An open loop: a Poisson process of this rate."""
    read_percent: Percent | None = None
    """Share of reads; 100 unless given."""
    pattern: Annotated[str, one_of(_PATTERNS)] | None = None
    """The access pattern: random, unless given, or sequential."""
    region: RegionBytes | None = None
    """The part of the drive that each has, a multiple of 4 KiB; else an equal part of the rest."""
    weight: Positive = 1.0
    """The share, for schedulers that have weights: from 0.000001 to 1000000."""
    slo: WrittenSlo | None = None
    """The objective."""
    priority: Annotated[str, one_of(_PRIORITIES)] = "medium"
    """The tag of its requests, for Gimbal with priority_quotas: urgent, high, medium or low."""
    follows_credit: Flag = False
    """True where it keeps its outstanding requests within the credit that Gimbal tells it."""
    bursts: WrittenBursts | None = None
    """Times with and without requests; without them it always asks."""
    joins: Seconds | None = None
    """The time it joins, from the beginning of the warm-up; else at once."""
    leaves: Seconds | None = None
    """The time it disconnects, from the same beginning; else it stays."""


class WrittenScenario(Description):
    """Tenants of some kinds, in turns."""

    name: Name
    """The scenario's name."""
    condition: Annotated[str, one_of(CONDITIONS)] = "clean"
    """The drive's condition: clean or fragmented."""
    tenants: Annotated[tuple[WrittenKind, ...], Field(min_length=1, max_length=64)]
    """The kinds of tenants."""


class WrittenScenarios(Description):
    """A file of scenarios."""

    scenarios: Annotated[tuple[WrittenScenario, ...], Field(min_length=1, max_length=1000)]
    """The scenarios."""


def load_scenarios(path: Path) -> tuple[Scenario, ...]:
    """The scenarios of a file; raises DescriptionError with its problems, BadInput where a kind has no load."""
    written = examine(compose_file(path), WrittenScenarios).finish()
    found = tuple(_scenario(path, one) for one in written.scenarios)
    names = [(scenario.name, scenario.condition) for scenario in found]
    if twice := next((one for one in names if names.count(one) > 1), None):
        raise BadInput(f"{path}: two scenarios are called {twice[0]} on a {twice[1]} drive; rename one")
    return found


def _scenario(path: Path, written: WrittenScenario) -> Scenario:
    names = [kind.name for kind in written.tenants]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise BadInput(f"{path}: scenario {written.name} has two kinds of tenants called {twice}; rename one")
    condition = next(one for one in CONDITIONS if one == written.condition)
    return Scenario(written.name, condition, tuple(_kind(path, written.name, kind) for kind in written.tenants))


def _kind(path: Path, scenario: str, written: WrittenKind) -> TenantKind:
    place = f"{path}: scenario {scenario}, tenant {written.name}"
    given = [name for name in _REQUESTS if getattr(written, name) is not None]
    if len(given) != 1:
        found = f"has {' and '.join(given)}" if given else "has no requests"
        raise BadInput(f"{place} {found}; give one of {', '.join(_REQUESTS[:-1])} and {_REQUESTS[-1]}")
    is_mixed = written.operations is not None or written.trace is not None
    if is_mixed and not (written.pattern is None and written.read_percent is None):
        raise BadInput(f"{place}: {given[0]} says itself what is read where; leave pattern and read_percent out")
    _require_load(place, written)
    if written.trace is not None and not written.trace.file.is_file():
        raise BadInput(f"{place}: there is no trace {written.trace.file}; write one as JSON lines")
    slo, bursts = written.slo, written.bursts
    return TenantKind(
        name=written.name,
        arrivals=_arrivals(written),
        block_bytes=written.block,
        sizes=None if written.sizes is None else tuple(WeightedSize(one.block, one.weight) for one in written.sizes),
        operations=None if written.operations is None else tuple(_operation(one) for one in written.operations),
        trace=None if (one := written.trace) is None else TraceReplay(str(one.file), one.speed, one.repeat),
        read_percent=100.0 if written.read_percent is None else written.read_percent,
        pattern=_pattern(written.pattern),
        region_bytes=written.region,
        weight=written.weight,
        slo=None if slo is None else Slo(slo.iops, slo.read_percent, slo.p95_us),
        priority=_priority(written.priority),
        follows_credit=written.follows_credit,
        bursts=None if bursts is None else Bursts(bursts.on, bursts.off),
        joins_s=written.joins or 0.0,
        leaves_s=written.leaves,
    )


def _require_load(place: str, written: WrittenKind) -> None:
    """Raise BadInput for a load that is not there, or twice."""
    if written.depth is not None and written.per_second is not None:
        found = "has both depth and per_second"
    elif written.depth is None and written.per_second is None and written.trace is None:
        found = "has no load"
    elif _arrivals(written) is None and written.bursts is not None:
        raise BadInput(f"{place}: a trace at its own times has no bursts; leave them out, or give depth or per_second")
    else:
        return
    raise BadInput(f"{place} {found}; give depth for a closed loop, or per_second for an open one")


def _arrivals(written: WrittenKind) -> Depth | Rate | None:
    if written.per_second is not None:
        return Rate(written.per_second)
    return None if written.depth is None else Depth(written.depth)


def _operation(written: WrittenOperation) -> WeightedOperation:
    return WeightedOperation(
        operation="read" if written.operation == "read" else "write",
        block_bytes=written.block,
        weight=written.weight,
        pattern=_pattern(written.pattern),
        priority=None if written.priority is None else _priority(written.priority),
    )


def _pattern(name: str | None) -> Pattern:
    return "sequential" if name == "sequential" else "random"


def _priority(name: str) -> Priority:
    return next(one for one in _PRIORITIES if one == name)
