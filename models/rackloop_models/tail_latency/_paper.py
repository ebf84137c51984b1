"""The published figures to compare with: Section 4 of the FAST 2017 paper on local erasure coding."""

from __future__ import annotations

from dataclasses import dataclass

SOURCE = (
    "Facilitating Magnetic Recording Technology Scaling for Data Center Hard Disk Drives through Filesystem-level "
    "Transparent Local Erasure Coding, FAST 2017"
)


@dataclass(frozen=True)
class PublishedReduction:
    """By how much the 99th percentile falls with the code, as a share of what it is without."""

    sectors: int
    ph: float
    retry_s: float
    reduction: float


PUBLISHED_REDUCTIONS = (
    PublishedReduction(10_000, 1e-3, 0.020, 0.501),
    PublishedReduction(10_000, 1e-3, 0.040, 0.672),
    PublishedReduction(10_000, 5e-3, 0.020, 0.786),
    PublishedReduction(10_000, 5e-3, 0.040, 0.881),
    PublishedReduction(100_000, 5e-3, 0.020, 0.762),
    PublishedReduction(100_000, 5e-3, 0.040, 0.866),
)


@dataclass(frozen=True)
class PublishedOverhead:
    """The paper's capacity overhead of a benchmark at (1014, 9): it lies between these."""

    benchmark: str
    above: float
    below: float


PUBLISHED_OVERHEADS = (PublishedOverhead("pagerank", 0.12, 1.0), PublishedOverhead("hivebench", 0.0, 0.02))
