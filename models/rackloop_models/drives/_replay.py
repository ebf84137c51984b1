"""Traces as tenants replay them: JSON lines of reads and writes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from rackloop.errors import BadInput
from rackloop_traces import Op, Trace


@dataclass(frozen=True)
class ReplayWritten:
    """The reads and writes that were written, and the operations of other kinds that were left out."""

    requests: int
    left_out: int


def write_replay(trace: Trace, path: Path, *, sector_bytes: int = 512) -> ReplayWritten:
    """Write the reads and writes of a trace for :class:`TraceReplay`, in order of time, widened to whole sectors.

    Times count from the first of them. Raises BadInput where it has none or the file cannot be written, and what
    reading a trace does.
    """
    written = left_out = 0
    origin_ns: int | None = None
    try:
        with path.open("wb") as file:
            for batch in trace.batches(in_order=True):
                frame = batch.filter(pl.col("op").is_in([Op.READ, Op.WRITE]))
                left_out += batch.height - frame.height
                if frame.is_empty():
                    continue
                if origin_ns is None:
                    origin_ns = int(frame["t_ns"][0])
                begin = pl.col("offset_bytes") // sector_bytes * sector_bytes
                end = -(-(pl.col("offset_bytes") + pl.col("size_bytes")) // sector_bytes) * sector_bytes
                frame.select(
                    pl.col("t_ns") - origin_ns, "op", begin.alias("offset_bytes"), (end - begin).alias("size_bytes")
                ).write_ndjson(file)
                written += frame.height
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror or error}") from error
    if not written:
        path.unlink()
        raise BadInput(f"{path}: the trace has neither reads nor writes to replay")
    return ReplayWritten(written, left_out)
