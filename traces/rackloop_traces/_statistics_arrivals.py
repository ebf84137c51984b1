"""Statistics of arrivals: rate over time, burstiness by time scale, and interarrival times."""

from __future__ import annotations

import math

import numpy as np

from rackloop_traces._columns import Op
from rackloop_traces._statistics_histogram import Ints, LogLinearHistogram
from rackloop_traces._statistics_result import Arrivals, Gaps, RateSeries, ScaleStatistics, op_name

SECOND_NS = 10**9
# Each a multiple of the one before, so that bins of one width can be joined to the next.
WIDTHS_NS = tuple(
    round(seconds * SECOND_NS)
    for seconds in (1e-3, 5e-3, 1e-2, 5e-2, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 600, 1800, 3600, 21600, 86400)
)
SCALES_NS = tuple(10**exponent for exponent in range(4, 14))
_GAP_BITS = 11
_GAP_POINTS = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1.0)
_FEWEST_INTERVALS = 10


def wider(width_ns: int) -> int:
    """The next width of bins: a round one as far as there are any, then twice as wide each time."""
    return next((width for width in WIDTHS_NS if width > width_ns), 2 * width_ns)


class TimeBins:
    """Sums by channel and time, in at most ``limit`` bins: when a trace outgrows them they are joined."""

    def __init__(self, channels: int, limit: int) -> None:
        self.width_ns = WIDTHS_NS[0]
        self.sums: Ints = np.zeros((channels, limit), dtype=np.int64)
        self.used = 1

    def add(self, since_start_ns: Ints, channels: Ints, amounts: Ints | None = None) -> None:
        """Add ``amounts``, or one each, to the channels at times that do not come before the start."""
        rows, limit = self.sums.shape
        last = int(since_start_ns[-1])
        while last // self.width_ns >= limit:
            self._join()
        bins = since_start_ns // self.width_ns
        self.used = max(self.used, int(bins[-1]) + 1)
        # Sums of bytes are below 2**53 in a batch, where floats are exact.
        found = np.bincount(channels * limit + bins, amounts, minlength=rows * limit)
        self.sums += found.astype(np.int64).reshape(rows, limit)

    def _join(self) -> None:
        width_ns = wider(self.width_ns)
        ratio = width_ns // self.width_ns
        rows, limit = self.sums.shape
        padded = np.zeros((rows, math.ceil(limit / ratio) * ratio), dtype=np.int64)
        padded[:, :limit] = self.sums
        self.sums[:] = 0
        joined = padded.reshape(rows, -1, ratio).sum(axis=2)
        self.sums[:, : joined.shape[1]] = joined
        self.used = math.ceil(self.used / ratio)
        self.width_ns = width_ns


class _Scale:
    """Counts of arrivals in intervals of one length, of which only moments are kept."""

    def __init__(self, width_ns: int) -> None:
        self.width_ns = width_ns
        self._place, self._count = -1, 0
        self._squares, self._peak = 0, 0

    def add(self, since_start_ns: Ints) -> None:
        places = since_start_ns // self.width_ns
        starts = np.concatenate(([0], np.flatnonzero(places[1:] != places[:-1]) + 1))
        counts = np.diff(starts, append=places.size)
        if int(places[0]) == self._place:
            counts[0] += self._count
        else:
            self._close(np.asarray([self._count]))
        self._close(counts[:-1])
        self._place, self._count = int(places[-1]), int(counts[-1])

    def _close(self, counts: Ints) -> None:
        if counts.size:
            self._squares += int(np.dot(counts, counts))
            self._peak = max(self._peak, int(counts.max()))

    def result(self, requests: int, duration_ns: int) -> ScaleStatistics:
        self._close(np.asarray([self._count]))
        self._place, self._count = -1, 0
        intervals = duration_ns // self.width_ns + 1
        mean = requests / intervals
        pairs = requests * (requests - 1)
        return ScaleStatistics(
            interval_s=self.width_ns / SECOND_NS,
            intervals=intervals,
            peak_requests=self._peak,
            dispersion=(self._squares / intervals - mean**2) / mean,
            pairs_together=(self._squares - requests) / pairs if pairs else 1.0,
        )


class _GapRecord:
    """The times between arrivals of one kind of request."""

    def __init__(self) -> None:
        self._histogram = LogLinearHistogram(_GAP_BITS)
        self._last_ns: int | None = None
        self._sum, self._squares, self._longest = 0, 0.0, 0

    def add(self, since_start_ns: Ints) -> None:
        if not since_start_ns.size:
            return
        gaps = np.diff(since_start_ns, prepend=since_start_ns[0] if self._last_ns is None else self._last_ns)
        if self._last_ns is None:
            gaps = gaps[1:]
        self._last_ns = int(since_start_ns[-1])
        if gaps.size:
            self._histogram.add(gaps)
            self._sum += int(gaps.sum())
            self._squares += float(np.dot(gaps.astype(np.float64), gaps.astype(np.float64)))
            self._longest = max(self._longest, int(gaps.max()))

    def result(self) -> Gaps | None:
        n = self._histogram.total
        if not n:
            return None
        mean = self._sum / n
        variance = max(0.0, self._squares / n - mean**2)
        values, counts = self._histogram.nonzero()
        coarse_values, coarse_counts = self._histogram.coarser(4).nonzero()
        return Gaps(
            n=n,
            mean_us=mean / 1e3,
            variation=math.sqrt(variance) / mean if mean else 0.0,
            longest_us=self._longest / 1e3,
            quantiles_us={
                q: v / 1e3 for q, v in zip(_GAP_POINTS, self._histogram.quantiles(*_GAP_POINTS), strict=True)
            },
            curve_us=[
                (value / 1e3, share)
                for value, share in zip(coarse_values.tolist(), (np.cumsum(coarse_counts) / n).tolist(), strict=True)
            ],
            zero_share=int(counts[0]) / n if values[0] == 0 else 0.0,
        )


class ArrivalRecord:
    """Everything about arrivals that a pass over a trace has seen; times count from its start and never fall."""

    def __init__(self, rate_bins: int) -> None:
        self._rate = TimeBins(channels=2 * len(Op), limit=rate_bins)
        self._scales = [_Scale(width_ns) for width_ns in SCALES_NS]
        self._second = next(scale for scale in self._scales if scale.width_ns == SECOND_NS)
        self._gaps = {None: _GapRecord(), Op.READ: _GapRecord(), Op.WRITE: _GapRecord()}
        self._requests, self._last_ns, self._tick_ns = 0, 0, 0

    def add(self, since_start_ns: Ints, op: Ints, size_bytes: Ints) -> None:
        """Record a stretch of the trace."""
        self._tick_ns = math.gcd(self._tick_ns, int(np.gcd.reduce(since_start_ns)))
        self._requests += since_start_ns.size
        self._last_ns = int(since_start_ns[-1])
        self._rate.add(since_start_ns, op)
        self._rate.add(since_start_ns, op + len(Op), size_bytes)
        for scale in self._scales:
            scale.add(since_start_ns)
        for kind, gaps in self._gaps.items():
            gaps.add(since_start_ns if kind is None else since_start_ns[op == kind])

    def result(self) -> Arrivals:
        """The statistics, without scales below the clock's tick or with hardly any interval."""
        scales = [scale.result(self._requests, self._last_ns) for scale in self._scales]
        peak = scales[self._scales.index(self._second)].peak_requests
        known = [
            scale
            for scale in scales
            if scale.interval_s * SECOND_NS >= self._tick_ns and scale.intervals >= _FEWEST_INTERVALS
        ]
        return Arrivals(
            tick_us=self._tick_ns / 1e3,
            peak_second_requests=peak,
            scales=known,
            rate=RateSeries(
                bin_s=self._rate.width_ns / SECOND_NS,
                requests={op_name(op): self._rate.sums[op, : self._rate.used].tolist() for op in Op},
                bytes={op_name(op): self._rate.sums[op + len(Op), : self._rate.used].tolist() for op in Op},
            ),
            gaps=self._gaps[None].result(),
            read_gaps=self._gaps[Op.READ].result(),
            write_gaps=self._gaps[Op.WRITE].result(),
        )
