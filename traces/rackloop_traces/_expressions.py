"""Polars expressions that several formats share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rackloop_traces._columns import Op
from rackloop_traces._format import NS_PER_S, SECTOR_BYTES, Loss

if TYPE_CHECKING:
    import polars


def request_columns(
    stamp: polars.Expr,
    op: polars.Expr,
    offset_bytes: polars.Expr,
    size_bytes: polars.Expr,
    volume: polars.Expr,
    response_ns: polars.Expr,
) -> list[polars.Expr]:
    """The columns that every ``read`` makes, under their names and types."""
    import polars

    return [
        stamp.cast(polars.Int64).alias("stamp"),
        op.cast(polars.UInt8).alias("op"),
        offset_bytes.alias("offset_bytes"),
        size_bytes.alias("size_bytes"),
        volume.cast(polars.String).alias("volume"),
        response_ns.cast(polars.Int64).alias("response_ns"),
    ]


def seconds_to_ns(name: str) -> polars.Expr:
    """A column of seconds, exact to the nanosecond, as nanoseconds."""
    import polars

    return (polars.col(name) * NS_PER_S).cast(polars.Int64)


def ns_to_seconds(name: str) -> polars.Expr:
    """A column of nanoseconds as seconds with nine places."""
    import polars

    unit = polars.lit("0.000000001").cast(polars.Decimal(38, 9))
    return polars.col(name).cast(polars.Decimal(38, 9)) * unit


def no_response() -> polars.Expr:
    import polars

    return polars.lit(None, dtype=polars.Int64)


def word(words: tuple[str, str]) -> polars.Expr:
    """The operation as the format spells it: reads as the first word, writes as the second."""
    import polars

    return polars.when(polars.col("op") == Op.READ).then(polars.lit(words[0])).otherwise(polars.lit(words[1]))


def _only_reads_and_writes() -> polars.Expr:
    import polars

    return polars.col("op") > Op.WRITE


def _off_sector() -> polars.Expr:
    import polars

    return polars.col("offset_bytes") % SECTOR_BYTES != 0


def _off_sectors() -> polars.Expr:
    import polars

    return _off_sector() | (polars.col("size_bytes") % SECTOR_BYTES != 0)


READS_AND_WRITES = Loss("neither reads nor writes", _only_reads_and_writes, left_out=True)
SECTOR_STARTS = Loss("moved down to the start of a sector of 512 B", _off_sector)
SECTORS = Loss("widened to whole sectors of 512 B", _off_sectors)
