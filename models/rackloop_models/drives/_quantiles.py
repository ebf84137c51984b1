"""The quantiles of latency that results tell, and how many requests one has to be of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

REQUESTS_BEYOND = 10
"""Of fewer requests beyond it a quantile is a matter of chance: the p99.9 of 500 is the longest of them."""


@dataclass(frozen=True)
class Quantile:
    """A quantile that one request in ``one_in`` exceeds, and its name as it is shown."""

    shown: str
    one_in: int

    def is_of(self, requests: int) -> bool:
        """Whether so many requests are enough for it."""
        return requests >= REQUESTS_BEYOND * self.one_in


QUANTILES: Mapping[str, Quantile] = {
    "p50": Quantile("p50", 2),
    "p99": Quantile("p99", 100),
    "p99_9": Quantile("p99.9", 1000),
}
"""By the names that latencies of results have them under."""
