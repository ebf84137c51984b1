"""Batches of trace requests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import polars as pl

from rackloop_traces import Op, Statistics, TraceMeter, columns

Row = tuple[int, Op, int, int]


def frame(rows: Iterable[Row], volume: str = "0", response_ns: int | None = None) -> pl.DataFrame:
    """A batch of (t_ns, op, offset, size) on one volume."""
    full = [(t, int(op), offset, size, volume, response_ns) for t, op, offset, size in rows]
    return pl.DataFrame(full, schema=columns(), orient="row")


def measured(frames: Iterable[pl.DataFrame]) -> Statistics:
    """The statistics of the batches."""
    meter = TraceMeter()
    for batch in frames:
        meter.add(batch)
    return meter.result()


def pieces(whole: pl.DataFrame, cuts: Sequence[int]) -> list[pl.DataFrame]:
    """The batch cut before each of these rows."""
    edges = [0, *sorted(cuts), whole.height]
    return [whole[begin:end] for begin, end in pairwise(edges)]
