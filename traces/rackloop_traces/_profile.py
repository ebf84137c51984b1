"""The profile of a synthetic trace: a load's statistics, taken from a trace or given in round numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from rackloop.errors import BadInput
from rackloop_traces._columns import Op

if TYPE_CHECKING:
    from rackloop_traces._statistics_result import OpName, Statistics

MADE_OPS = (Op.READ, Op.WRITE, Op.TRIM)
BLOCK_BYTES = 4096
MOST_BIAS = 0.9
_HIGHEST_RATE = 1e7
_SHORTEST_PERIOD_S = 1e-3
_LONGEST_S = 2**33
_LARGEST_FOOTPRINT = 2**53
_LARGEST_EXTENT = 2**60
_LONGEST_RUN_SHARE = 0.999


@dataclass(frozen=True)
class TraceProfile:
    """The load that a synthetic trace has.

    ``rates`` holds requests per second of each kind in consecutive bins of ``bin_s``; a longer trace begins again with
    the first. ``biases`` is (interval in seconds, bias), longest first: an interval of that length gives this share of
    its requests to one of its halves (the b-model). ``sizes`` is (bytes, weight). ``continuing`` is the share of
    requests that go on where one of the last few ended, ``following`` of those the share that goes on where the last
    one did. ``locality`` is a curve (share of blocks, share of touches), busiest blocks first. ``shifts`` weighs
    offsets by their remainder modulo 4 KiB in sectors of 512 bytes.
    """

    duration_s: float
    bin_s: float
    rates: Mapping[Op, tuple[float, ...]]
    biases: tuple[tuple[float, float], ...]
    sizes: Mapping[Op, tuple[tuple[int, float], ...]]
    continuing: Mapping[Op, float]
    following: float
    footprint_bytes: int
    extent_bytes: int
    locality: tuple[tuple[float, float], ...]
    shifts: tuple[float, ...] = (1.0, 0, 0, 0, 0, 0, 0, 0)

    @classmethod
    def plain(
        cls,
        *,
        duration_s: float = 60.0,
        rate: float = 100.0,
        read_share: float = 0.7,
        sizes: Sequence[tuple[int, float]] = ((4096, 0.6), (16384, 0.2), (65536, 0.2)),
        footprint_bytes: int = 2**30,
        bias: float = 0.65,
        continuing: float = 0.3,
        hot: tuple[float, float] = (0.1, 0.6),
        swing: float = 0.0,
        period_s: float = 86400.0,
    ) -> TraceProfile:
        """A load in round numbers. ``hot``: this share of the blocks gets that share of the touches.

        The rate swings by ``swing`` (0 to 1) of its mean about it, as a sine of ``period_s``. Raises BadInput where a
        number is out of its range.
        """
        if not 0 <= swing <= 1 or not period_s >= _SHORTEST_PERIOD_S:
            raise BadInput(
                f"a rate swings by 0 to 100 % in a period of 1 ms or longer, not by {swing:.0%} in {period_s:g} s"
            )
        if fault := _wrong_duration(duration_s):
            raise BadInput(fault)
        bins = min(4096, max(1, math.ceil(duration_s / 10)))
        bin_s = duration_s / bins
        middles = (np.arange(bins) + 0.5) * bin_s
        course = rate * (1 + swing * np.sin(2 * math.pi * middles / period_s))
        return cls(
            duration_s=duration_s,
            bin_s=bin_s,
            rates={
                Op.READ: tuple((course * read_share).tolist()),
                Op.WRITE: tuple((course * (1 - read_share)).tolist()),
                Op.TRIM: (0.0,) * bins,
            },
            biases=((bin_s, bias),),
            sizes={op: tuple(sizes) for op in MADE_OPS},
            continuing=dict.fromkeys(MADE_OPS, continuing),
            following=0.8,
            footprint_bytes=footprint_bytes,
            extent_bytes=footprint_bytes,
            locality=_hot(*hot),
        )

    @classmethod
    def of(cls, statistics: Statistics) -> TraceProfile:
        """The load that a trace with these ``statistics`` is. Flushes are left out: they have no place."""
        series = statistics.arrivals.rate
        names: dict[Op, OpName] = {Op.READ: "read", Op.WRITE: "write", Op.TRIM: "trim"}
        by_op = statistics.sequentiality.continuing_by_op
        continuing = statistics.sequentiality.continuing_share
        blocks = statistics.blocks
        return cls(
            duration_s=len(series.requests["read"]) * series.bin_s,
            bin_s=series.bin_s,
            rates={op: tuple(n / series.bin_s for n in series.requests[name]) for op, name in names.items()},
            biases=_biases(statistics),
            sizes={op: tuple((s, float(n)) for s, n in statistics.ops[name].sizes) for op, name in names.items()},
            continuing={op: min(by_op.get(name, 0.0), _LONGEST_RUN_SHARE) for op, name in names.items()},
            following=statistics.sequentiality.following_share / continuing if continuing else 1.0,
            footprint_bytes=max(1, blocks.distinct) * blocks.block_bytes,
            extent_bytes=statistics.placement.highest_end_bytes,
            locality=tuple(blocks.curve) or ((1.0, 1.0),),
            shifts=_whole(statistics.placement.shift_shares[:8]),
        )

    @property
    def mean_rate(self) -> float:
        """Requests per second over the profile's own duration."""
        return self.count(self.duration_s) / self.duration_s

    def count(self, duration_s: float) -> float:
        """The number of requests in a trace of this duration."""
        sums = np.cumsum(np.sum(list(self.rates.values()), axis=0)) * self.bin_s
        rounds, rest_s = divmod(duration_s, self.bin_s * sums.size)
        ends = np.arange(sums.size + 1) * self.bin_s
        return float(rounds * sums[-1] + np.interp(rest_s, ends, np.concatenate(([0.0], sums))))

    def at_rate(self, rate: float) -> TraceProfile:
        """The same load with another mean rate, in requests per second."""
        factor = rate / self.mean_rate
        return replace(self, rates={op: tuple(r * factor for r in rates) for op, rates in self.rates.items()})

    def with_read_share(self, share: float) -> TraceProfile:
        """The same load with this share of reads among reads and writes at any time."""
        both = np.asarray(self.rates[Op.READ]) + np.asarray(self.rates[Op.WRITE])
        parts = {Op.READ: tuple((both * share).tolist()), Op.WRITE: tuple((both * (1 - share)).tolist())}
        sizes = {op: found or self.sizes[Op.WRITE] or self.sizes[Op.READ] for op, found in self.sizes.items()}
        return replace(self, rates={**self.rates, **parts}, sizes=sizes)

    def with_sizes(self, sizes: Sequence[tuple[int, float]]) -> TraceProfile:
        """The same load with these (bytes, weight) for requests of every kind."""
        return replace(self, sizes={op: tuple(sizes) for op in MADE_OPS})

    def with_footprint(self, footprint_bytes: int) -> TraceProfile:
        """The same load on so many distinct bytes, spread over as many times their number as before."""
        spread = self.extent_bytes / self.footprint_bytes
        return replace(self, footprint_bytes=footprint_bytes, extent_bytes=round(footprint_bytes * spread))

    def with_span(self, span_bytes: int) -> TraceProfile:
        """The same load, its footprint spread over this much of the drive, or over itself where that is more."""
        return replace(self, extent_bytes=span_bytes)

    def with_bias(self, bias: float) -> TraceProfile:
        """The same load with this bias at every time scale below a bin's."""
        return replace(self, biases=((self.bin_s, bias),))

    def with_sequential(self, share: float) -> TraceProfile:
        """The same load with this share of requests of every kind that continue a sequential run."""
        return replace(self, continuing=dict.fromkeys(MADE_OPS, share))

    def with_hot(self, blocks: float, touches: float) -> TraceProfile:
        """The same load, with this share of the blocks getting that share of the touches."""
        return replace(self, locality=_hot(blocks, touches))

    def __post_init__(self) -> None:
        """Raises BadInput with everything that is out of its range."""
        faults = []
        if fault := _wrong_duration(self.duration_s):
            faults.append(fault)
        elif not 0 < self.mean_rate <= _HIGHEST_RATE:
            faults.append(f"a rate is above 0 and at most 10 million requests per second, not {self.mean_rate:g}")
        if any(rate < 0 for rates in self.rates.values() for rate in rates):
            faults.append("reads are 0 to 100 percent of requests")
        if any(not 0.5 <= bias <= MOST_BIAS for _, bias in self.biases):
            faults.append(f"a bias is 0.5 (even) to {MOST_BIAS} (very bursty), not {self.biases[0][1]:g}")
        if any(not 0 <= share <= _LONGEST_RUN_SHARE for share in self.continuing.values()):
            faults.append(f"at most {_LONGEST_RUN_SHARE:.1%} of requests can be sequential, and not less than 0 %")
        if not BLOCK_BYTES <= self.footprint_bytes <= _LARGEST_FOOTPRINT:
            faults.append(f"a footprint is at least 4 KiB and at most 8 PiB, not {self.footprint_bytes} bytes")
        if not 0 <= self.extent_bytes <= _LARGEST_EXTENT:
            faults.append(f"a footprint is spread over at most 1 EiB, not {self.extent_bytes} bytes")
        sizes = [size for of_op in self.sizes.values() for size, _ in of_op]
        if any(size <= 0 or size % 512 for size in sizes):
            odd = next(size for size in sizes if size <= 0 or size % 512)
            faults.append(f"a request's size is a multiple of 512 bytes, not {odd}")
        elif max(sizes, default=0) > max(self.footprint_bytes, BLOCK_BYTES):
            faults.append(
                f"a request of {max(sizes)} bytes does not fit in a footprint of {self.footprint_bytes}: "
                "give a larger footprint or smaller sizes"
            )
        if faults:
            raise BadInput("; ".join(faults))


def _wrong_duration(seconds: float) -> str:
    if 1e-9 <= seconds < _LONGEST_S:
        return ""
    return f"a duration is more than 0 s and less than 272 years, not {seconds:g} s"


def _hot(blocks: float, touches: float) -> tuple[tuple[float, float], ...]:
    if not 0 < blocks < 1 or not blocks <= touches <= 1:
        raise BadInput(
            f"hot blocks get at least their share, as in 10:60 percent; found {blocks:.0%} and {touches:.0%}"
        )
    return ((blocks, touches), (1.0, 1.0))


def _whole(shares: Sequence[float]) -> tuple[float, ...]:
    """The shares, or all at the beginning of a block where there are none."""
    return tuple(shares) if sum(shares) > 0 else (1.0, *(0.0,) * (len(shares) - 1))


def _biases(statistics: Statistics) -> tuple[tuple[float, float], ...]:
    """The bias between each two time scales, from the share of pairs of requests that stay together.

    Halving an interval with bias b keeps b^2 + (1 - b)^2 of the pairs that fell into it, in a multiplicative cascade as
    in Wang and others, "Data Mining Meets Performance Evaluation" (ICDE 2002); Poisson noise falls out of the pairs.
    """
    scales = sorted(statistics.arrivals.scales, key=lambda scale: scale.interval_s)
    biases = []
    for fine, coarse in pairwise(scales):
        if not fine.pairs_together or not coarse.pairs_together:
            continue
        halvings = math.log2(coarse.interval_s / fine.interval_s)
        kept = (fine.pairs_together / coarse.pairs_together) ** (1 / halvings)
        bias = (1 + math.sqrt(max(0.0, 2 * kept - 1))) / 2
        biases.append((coarse.interval_s, min(bias, MOST_BIAS)))
    return tuple(reversed(biases)) or ((statistics.arrivals.rate.bin_s, 0.5),)
