"""Limits: what a plan demands of a measurement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class Limit:
    """One demand on one measure, in SI base units.

    It holds for measurements whose labels have every pair in ``where``, in runs whose facts (``lab``, ``lab_kind``)
    have every pair in ``on``. ``quantile`` is the statistic the bounds are held against, 0.99 for p99; None leaves it
    to the measurement: its only sample, or the median. ``text`` is the demand as the plan has it, such as ``max 2 ms``.
    """

    measure: str
    where: Mapping[str, str] = field(default_factory=dict)
    quantile: float | Literal["max", "min", "mean"] | None = None
    minimum: float | None = None
    maximum: float | None = None
    unit: str = "1"
    text: str = ""
    on: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        labels = ", ".join(f"{key}={value}" for key, value in self.where.items())
        measure = f"{self.measure}{{{labels}}}" if labels else self.measure
        statistic = f"p{self.quantile * 100:g}" if isinstance(self.quantile, float) else self.quantile
        return " ".join(filter(None, (measure, statistic, self.text)))

    def __hash__(self) -> int:
        return hash((self.measure, self.quantile, self.text, *sorted(self.where.items())))

    def holds_in(self, facts: Mapping[str, str]) -> bool:
        """Whether it is for a run with these facts."""
        return all(facts.get(key) == value for key, value in self.on.items())
