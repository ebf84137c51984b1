"""Statistics of sequential runs: requests that continue where an earlier one ended."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from rackloop_traces._columns import Op
from rackloop_traces._statistics_histogram import Ints, LogLinearHistogram
from rackloop_traces._statistics_result import OpName, RunLengths, Sequentiality, op_name

LOOK_BACK = 32
_Flags: TypeAlias = NDArray[np.bool_]
_RUN_BITS = 8
_RUN_POINTS = (0.5, 0.9, 0.99, 1.0)


class RunRecord:
    """Sequential requests by volume: those that begin where the one before, or one of the last 32, ended."""

    def __init__(self) -> None:
        self._following: Ints = np.zeros(len(Op), dtype=np.int64)
        self._continuing: Ints = np.zeros(len(Op), dtype=np.int64)
        self._requests: Ints = np.zeros(len(Op), dtype=np.int64)
        # The last ends of each volume, oldest first, and the length of the run that is open there.
        self._ended_volume: Ints = np.zeros(0, dtype=np.int64)
        self._ended_bytes: Ints = np.zeros(0, dtype=np.int64)
        self._open_runs: Ints = np.zeros(0, dtype=np.int64)
        self._lengths = LogLinearHistogram(_RUN_BITS)
        self._runs = 0

    def add(self, volume: Ints, op: Ints, offset_bytes: Ints, size_bytes: Ints) -> None:
        """Record a stretch of the trace; volumes are numbered from zero as they appear."""
        carried = self._ended_volume.size
        volumes = np.concatenate((self._ended_volume, volume))
        begins = np.concatenate((np.full(carried, -1, dtype=np.int64), offset_bytes))
        ends = np.concatenate((self._ended_bytes, offset_bytes + size_bytes))
        ops = np.concatenate((np.zeros(carried, dtype=np.int64), op))
        is_new = np.arange(volumes.size) >= carried
        if volumes.size and int(volumes.max()) > 0:
            order = np.argsort(volumes, kind="stable")
            volumes, begins, ends, ops = (column[order] for column in (volumes, begins, ends, ops))
            is_new = is_new[order]
        follows = np.zeros(volumes.size, dtype=bool)
        continues = np.zeros(volumes.size, dtype=bool)
        for back in range(1, min(LOOK_BACK, volumes.size - 1) + 1):
            match = (begins[back:] == ends[:-back]) & (volumes[back:] == volumes[:-back])
            continues[back:] |= match
            if back == 1:
                follows[1:] = match
        self._requests += np.bincount(ops[is_new], minlength=len(Op))
        self._following += np.bincount(ops[follows & is_new], minlength=len(Op))
        self._continuing += np.bincount(ops[continues & is_new], minlength=len(Op))
        self._close_runs(volumes, follows, is_new)
        self._carry(volumes, ends)

    def _close_runs(self, volumes: Ints, follows: _Flags, is_new: _Flags) -> None:
        new_volumes, new_follows = volumes[is_new], follows[is_new]
        if new_volumes.size:
            if (beyond := int(new_volumes.max()) + 1 - self._open_runs.size) > 0:
                self._open_runs = np.concatenate((self._open_runs, np.zeros(beyond, dtype=np.int64)))
            enters = np.concatenate(([True], new_volumes[1:] != new_volumes[:-1]))
            starts = np.flatnonzero(~new_follows | enters)
            lengths = np.diff(starts, append=new_volumes.size)
            owner = new_volumes[starts]
            # The first piece of a volume goes on with the run that was open there, or ends it.
            first = enters[starts]
            goes_on = first & new_follows[starts]
            self._finish(self._open_runs[owner[first & ~goes_on]])
            lengths[goes_on] += self._open_runs[owner[goes_on]]
            last = np.concatenate((owner[1:] != owner[:-1], [True]))
            self._finish(lengths[~last])
            self._open_runs[owner[last]] = lengths[last]

    def _finish(self, lengths: Ints) -> None:
        finished = lengths[lengths > 0]
        self._lengths.add(finished)
        self._runs += finished.size

    def _carry(self, volumes: Ints, ends: Ints) -> None:
        if volumes.size:
            lasts = np.flatnonzero(np.concatenate((volumes[1:] != volumes[:-1], [True])))
            place = np.searchsorted(lasts, np.arange(volumes.size))
            kept = lasts[place] - np.arange(volumes.size) < LOOK_BACK
            self._ended_volume, self._ended_bytes = volumes[kept], ends[kept]

    def result(self) -> Sequentiality:
        """The statistics, including the runs that are still open at the end."""
        self._finish(self._open_runs)
        self._open_runs = np.zeros(0, dtype=np.int64)

        def shares(counted: Ints) -> dict[OpName, float]:
            return {op_name(op): int(counted[op]) / int(self._requests[op]) for op in Op if self._requests[op]}

        total = max(1, int(self._requests.sum()))
        return Sequentiality(
            following_share=int(self._following.sum()) / total,
            continuing_share=int(self._continuing.sum()) / total,
            following_by_op=shares(self._following),
            continuing_by_op=shares(self._continuing),
            runs=RunLengths(
                n=self._runs,
                mean_requests=total / max(1, self._runs),
                quantiles_requests=dict(zip(_RUN_POINTS, self._lengths.quantiles(*_RUN_POINTS), strict=True)),
            ),
        )
