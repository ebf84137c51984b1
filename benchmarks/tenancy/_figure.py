"""A figure with its target, as the table of the benchmark has it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """A measured figure; ``is_met`` is None where it has no target, or where it could not be measured."""

    name: str
    measured: str
    target: str = "quoted"
    is_met: bool | None = None

    def line(self) -> str:
        verdict = {True: "met", False: "MISSED", None: ""}[self.is_met]
        return f"{self.name:58} {self.measured:>34}   {self.target:22} {verdict}"


def least(measure: Callable[[], float], rounds: int) -> float:
    """The least of the rounds: what a busy machine adds is never negative."""
    return min(measure() for _ in range(rounds))
