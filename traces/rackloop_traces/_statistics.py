"""The statistics of a trace, in one pass and in memory that does not grow with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rackloop.errors import BadInput
from rackloop.units import counted, format_quantity
from rackloop_traces._columns import Op
from rackloop_traces._statistics_arrivals import SECOND_NS, ArrivalRecord, TimeBins
from rackloop_traces._statistics_blocks import BLOCK_BYTES, MOST_BLOCKS_OF_A_REQUEST, BlockRecord
from rackloop_traces._statistics_histogram import Ints, LogLinearHistogram
from rackloop_traces._statistics_result import OpStatistics, Placement, Statistics, op_name
from rackloop_traces._statistics_runs import RunRecord

if TYPE_CHECKING:
    import polars

_ROWS_AT_ONCE = 2**18
_RATE_BINS = 4096
_MAP_TIMES, _MAP_PLACES = 512, 256
_SIZE_BITS, _RESPONSE_BITS, _COARSE_SIZE_BITS = 11, 11, 5
_MOST_SIZES = 1024
_POINTS = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 0.999, 1.0)
_COARSE_TICK_NS = 10**6
_SECTOR_BYTES = 512
_LARGEST_REQUEST = 2**44
_FARTHEST_END = 2**62


class _OpRecord:
    """Sizes and response times of one kind of request."""

    def __init__(self) -> None:
        self._sizes = LogLinearHistogram(_SIZE_BITS)
        self._responses = LogLinearHistogram(_RESPONSE_BITS)
        self._bytes = 0

    def add(self, size_bytes: Ints, response_ns: Ints) -> None:
        self._sizes.add(size_bytes)
        self._responses.add(response_ns)
        self._bytes += int(size_bytes.sum())

    def result(self) -> OpStatistics:
        sizes = self._sizes
        if sizes.nonzero()[0].size > _MOST_SIZES:
            sizes = sizes.coarser(_COARSE_SIZE_BITS)
        values, counts = sizes.nonzero()
        responses = self._responses.quantiles(*_POINTS)
        return OpStatistics(
            requests=self._sizes.total,
            bytes=self._bytes,
            quantiles_bytes=dict(zip(_POINTS, self._sizes.quantiles(*_POINTS), strict=True)),
            sizes=list(zip(values.tolist(), counts.tolist(), strict=True)),
            response_us={q: ns / 1e3 for q, ns in zip(_POINTS, responses, strict=True)} if responses[-1] else None,
        )


class HeatMap:
    """Requests by time and offset, in bins that widen as the trace needs: ``counts[place, time]``."""

    def __init__(self) -> None:
        self._times = TimeBins(channels=_MAP_PLACES, limit=_MAP_TIMES)
        self.place_bytes = 2**20

    def add(self, since_start_ns: Ints, offset_bytes: Ints) -> None:
        """Count requests at these times and offsets."""
        while int(offset_bytes.max()) // self.place_bytes >= _MAP_PLACES:
            self.place_bytes *= 2
            joined = self._times.sums.reshape(-1, 2, _MAP_TIMES).sum(axis=1)
            self._times.sums[:] = 0
            self._times.sums[: joined.shape[0]] = joined
        self._times.add(since_start_ns, offset_bytes // self.place_bytes)

    @property
    def bin_s(self) -> float:
        """The width of a bin of time."""
        return self._times.width_ns / SECOND_NS

    @property
    def counts(self) -> Ints:
        """The counts, without the empty bins beyond the last offset and time."""
        counts = self._times.sums[:, : self._times.used]
        highest = np.flatnonzero(counts.any(axis=1))
        return counts[: highest[-1] + 1 if highest.size else 1]


class TraceMeter:
    """Takes in a trace batch by batch and says its :class:`Statistics` at the end.

    Requests should come in the order of their times. One that comes late is sorted into its place within its batch;
    one that is late beyond that counts as arriving with the latest before it. ``out_of_order`` says how many were
    late.
    """

    def __init__(self) -> None:
        self.heat_map = HeatMap()
        self._arrivals, self._runs, self._blocks = ArrivalRecord(_RATE_BINS), RunRecord(), BlockRecord()
        self._ops = {op: _OpRecord() for op in Op}
        self._volumes: dict[str, int] = {}
        self._requests, self._out_of_order = 0, 0
        self._start_ns: int | None = None
        self._latest_ns = 0
        self._lowest, self._highest = 2**63 - 1, 0
        self._shifts: Ints = np.zeros(9, dtype=np.int64)
        self._aligned: Ints = np.zeros(2, dtype=np.int64)

    @property
    def requests(self) -> int:
        """The number of requests added so far."""
        return self._requests

    def add(self, frame: polars.DataFrame) -> None:
        """Take in a batch: a frame of the columns of :func:`rackloop_traces.columns`.

        Raises BadInput where a request is larger than 16 TiB, or ends beyond 4 EiB.
        """
        for part in frame.iter_slices(_ROWS_AT_ONCE):
            if part.height:
                self._add(part)

    def _add(self, frame: polars.DataFrame) -> None:
        times = frame["t_ns"].to_numpy()
        if self._start_ns is None:
            self._start_ns = int(times.min())
        # Late is what is earlier than any before, however many came late in a row.
        latest = np.maximum.accumulate(np.append(self._start_ns + self._latest_ns, times[:-1]))
        late = int((times < latest).sum())
        if late:
            frame = frame.sort("t_ns", maintain_order=True)
            times = frame["t_ns"].to_numpy()
        self._out_of_order += late
        since_start = np.maximum(times - self._start_ns, self._latest_ns)
        self._latest_ns = int(since_start[-1])
        self._requests += frame.height

        op = frame["op"].to_numpy().astype(np.int64)
        size = frame["size_bytes"].to_numpy()
        if int(size.max()) > _LARGEST_REQUEST:
            raise BadInput(
                f"a request of {int(size.max())} bytes: no drive takes one, so the file is damaged or in another format"
            )
        self._arrivals.add(since_start, op, size)
        counts = np.bincount(op, minlength=len(Op))
        for kind, record in self._ops.items():
            if counts[kind]:
                chosen = frame if counts[kind] == frame.height else frame.filter(frame["op"] == kind.value)
                record.add(chosen["size_bytes"].to_numpy(), chosen["response_ns"].drop_nulls().to_numpy())
        has_place = (op != Op.FLUSH) & (size > 0)
        if has_place.any():
            columns = (since_start, self._numbered(frame["volume"]), op, frame["offset_bytes"].to_numpy(), size)
            self._add_placed(*(columns if has_place.all() else (column[has_place] for column in columns)))

    def _add_placed(self, since_start: Ints, volume: Ints, op: Ints, offset: Ints, size: Ints) -> None:
        self._lowest = min(self._lowest, int(offset.min()))
        self._highest = max(self._highest, int((offset + size).max()))
        if self._highest > _FARTHEST_END:
            raise BadInput(
                f"a request at offset {int(offset.max())}: no drive is so large, so the file is damaged or in another "
                "format"
            )
        in_block = offset % BLOCK_BYTES
        shift = np.where(in_block % _SECTOR_BYTES == 0, in_block // _SECTOR_BYTES, 8)
        self._shifts += np.bincount(shift, minlength=9)
        for place, unit in enumerate((_SECTOR_BYTES, BLOCK_BYTES)):
            self._aligned[place] += int((((offset | size) % unit) == 0).sum())
        self.heat_map.add(since_start, offset)
        self._runs.add(volume, op, offset, size)
        is_data = op != Op.TRIM
        data = (since_start, volume, (op == Op.WRITE).astype(np.int64), offset, size)
        if is_data.any():
            self._blocks.add(*(data if is_data.all() else (column[is_data] for column in data)))

    def _numbered(self, volumes: polars.Series) -> Ints:
        names = volumes.unique(maintain_order=True).to_list()
        for name in names:
            self._volumes.setdefault(name, len(self._volumes))
        if len(names) == 1:
            return np.full(len(volumes), self._volumes[names[0]], dtype=np.int64)
        return volumes.replace_strict(self._volumes).to_numpy().astype(np.int64)

    def result(self, doubts: tuple[str, ...] = ()) -> Statistics:
        """The statistics of all that was taken in; ``doubts`` are said with those that the figures raise.

        Raises BadInput where there was no request.
        """
        if not self._requests:
            raise BadInput("the trace holds no request, so there is nothing to say of it; give one that does")
        placed = max(1, int(self._shifts.sum()))
        blocks = self._blocks.result(self._latest_ns)
        arrivals = self._arrivals.result()
        found = list(doubts)
        if arrivals.tick_us * 1e3 >= _COARSE_TICK_NS and self._requests > 1:
            found.append(
                f"every time is a multiple of {format_quantity(arrivals.tick_us / 1e6, 's')}: nothing can be said of "
                "burstiness or of times between arrivals below that"
            )
        if blocks.requests_cut_short:
            most = format_quantity(MOST_BLOCKS_OF_A_REQUEST * BLOCK_BYTES, "B")
            found.append(
                f"{counted(blocks.requests_cut_short, 'request')} above {most}: footprint and locality count "
                f"the first {most} of each"
            )
        if self._out_of_order:
            found.append(f"{counted(self._out_of_order, 'request')} out of order: times between arrivals may be off")
        return Statistics(
            requests=self._requests,
            duration_s=self._latest_ns / SECOND_NS,
            volumes=len(self._volumes),
            out_of_order=self._out_of_order,
            ops={op_name(op): record.result() for op, record in self._ops.items()},
            arrivals=arrivals,
            sequentiality=self._runs.result(),
            placement=Placement(
                lowest_offset_bytes=min(self._lowest, self._highest),
                highest_end_bytes=self._highest,
                aligned_512_share=int(self._aligned[0]) / placed,
                aligned_4096_share=int(self._aligned[1]) / placed,
                shift_shares=(self._shifts / placed).tolist(),
            ),
            blocks=blocks,
            doubts=found,
        )
