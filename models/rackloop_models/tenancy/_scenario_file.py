"""Scenario files: tenants of one drive, as they are written in YAML."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field

from rackloop.errors import BadInput
from rackloop.lab.yaml import Description, Name, Scalar, compose_file, examine, one_of, text_of, whole, wrong
from rackloop.names import kind_of
from rackloop.units import NUMBER, parse_size
from rackloop_models.drives import Depth, Rate, Slo
from rackloop_models.tenancy._scenarios import CONDITIONS, Scenario, TenantKind

_LARGEST_BYTES = 1 << 50


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


def _percent(value: object, _info: object) -> float:
    text = text_of(value, "a percentage")
    if not NUMBER.fullmatch(text) or not 0 <= float(text) <= 100:
        raise wrong(f"expected a number from 0 to 100, found {kind_of(text)}")
    return float(text)


Bytes = Annotated[int, Scalar(_bytes, {"type": "string", "examples": ["4 KiB", "1 GiB"]})]
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


class WrittenKind(Description):
    """Tenants that are alike."""

    name: Name
    """Their name, which a number follows."""
    block: Bytes
    """The size of a request, such as 4 KiB."""
    depth: Annotated[int, whole(1, 65_536)] | None = None
    """A closed loop: requests kept in flight."""
    per_second: Positive | None = None
    """An open loop: a Poisson process of this rate."""
    read_percent: Percent = 100.0
    """Share of reads."""
    pattern: Annotated[str, one_of(("random", "sequential"))] = "random"
    """The access pattern."""
    region: Bytes | None = None
    """The part of the drive that each has; else an equal part of the rest."""
    weight: Positive = 1.0
    """The share, for schedulers that have weights."""
    slo: WrittenSlo | None = None
    """The objective."""


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
    if (written.depth is None) == (written.per_second is None):
        found = "has no load" if written.depth is None else "has both depth and per_second"
        raise BadInput(
            f"{path}: scenario {scenario}, tenant {written.name} {found}; give depth for a closed loop, or per_second "
            "for an open one"
        )
    arrivals = Rate(written.per_second) if written.per_second is not None else Depth(written.depth or 1)
    slo = written.slo
    return TenantKind(
        name=written.name,
        block_bytes=written.block,
        arrivals=arrivals,
        read_percent=written.read_percent,
        pattern="random" if written.pattern == "random" else "sequential",
        region_bytes=written.region,
        weight=written.weight,
        slo=None if slo is None else Slo(slo.iops, slo.read_percent, slo.p95_us),
    )
