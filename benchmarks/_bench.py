"""Comparing two ways to do a thing in one run, so that the machine's mood is the same for both."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import asdict, dataclass

from rackloop.seed import stream


@dataclass(frozen=True)
class Paired:
    """Medians of both, and the median, lowest and highest of the rounds' ratios ``a / b``."""

    a: float
    b: float
    ratio: float
    ratio_min: float
    ratio_max: float
    rounds: int

    def as_dict(self) -> dict[str, float]:
        return asdict(self)


def paired(a: Callable[[], float], b: Callable[[], float], rounds: int, seed: int = 1) -> Paired:
    """Measure ``a`` and ``b`` once in each round, in an order drawn for each round."""
    order = stream(seed, "paired")
    values: dict[str, list[float]] = {"a": [], "b": []}
    for _ in range(rounds):
        for name in order.sample(["a", "b"], 2):
            values[name].append(a() if name == "a" else b())
    ratios = [one / other for one, other in zip(values["a"], values["b"], strict=True)]
    return Paired(
        a=statistics.median(values["a"]),
        b=statistics.median(values["b"]),
        ratio=statistics.median(ratios),
        ratio_min=min(ratios),
        ratio_max=max(ratios),
        rounds=rounds,
    )
