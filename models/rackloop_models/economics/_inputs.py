"""The inputs of the cost model, each with its source and the range that is looked through."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any


@dataclass(frozen=True)
class Input:
    """A number with its source, and the bounds within which other values of it are looked at."""

    value: float
    low: float
    high: float
    source: str

    @property
    def is_assumed(self) -> bool:
        """Whether no source was found for the value."""
        return self.source.startswith("assumed")


@dataclass(frozen=True)
class Box:
    """A storage box with its drives."""

    name: str
    purchase_usd: Input
    watts: Input
    rack_units: Input
    lifetime_years: Input
    maintenance_percent_per_year: Input
    iops: Input


@dataclass(frozen=True)
class Conditions:
    """The conditions that both boxes are run under."""

    years: Input
    needed_iops: Input
    energy_usd_per_kwh: Input
    pue: Input
    rack_unit_usd_per_year: Input
    discount_percent: Input


@dataclass(frozen=True)
class Costs:
    """A ``candidate`` held against a ``baseline``, and the saving that was published, in percent of the baseline."""

    conditions: Conditions
    candidate: Box
    baseline: Box
    published_saving_percent: Input

    def inputs(self) -> Iterator[tuple[str, Input]]:
        """All inputs, by names such as ``pue`` and ``baseline.watts``, but for the published saving."""
        for field in fields(self.conditions):
            yield field.name, getattr(self.conditions, field.name)
        for part, box in (("candidate", self.candidate), ("baseline", self.baseline)):
            for field in fields(box)[1:]:
                yield f"{part}.{field.name}", getattr(box, field.name)

    def with_value(self, name: str, value: float) -> Costs:
        """The same with another value of an input. Raises KeyError for a name that no input has."""
        old = dict(self.inputs())[name]
        changed: dict[str, Any] = {name.rpartition(".")[2]: replace(old, value=value)}
        match name.rpartition(".")[0]:
            case "candidate":
                return replace(self, candidate=replace(self.candidate, **changed))
            case "baseline":
                return replace(self, baseline=replace(self.baseline, **changed))
            case _:
                return replace(self, conditions=replace(self.conditions, **changed))
