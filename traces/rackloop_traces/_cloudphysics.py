"""CloudPhysics' traces of virtual machines (SHARDS, FAST '15), vscsi records written as CSV.

The file says ``time`` and no unit. Public ones have seconds, also whole ones, or the microseconds of the records.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rackloop_traces._columns import Op
from rackloop_traces._expressions import (
    SECTOR_STARTS,
    no_response,
    ns_to_seconds,
    request_columns,
    seconds_to_ns,
    word,
)
from rackloop_traces._format import SECTOR_BYTES, SECTOR_DIGITS, Clock, Field, Format, Kind, Loss

if TYPE_CHECKING:
    import polars

_SCSI = {
    "28": Op.READ, "2a": Op.WRITE, "2A": Op.WRITE, "08": Op.READ, "0a": Op.WRITE, "0A": Op.WRITE, "88": Op.READ,
    "8a": Op.WRITE, "8A": Op.WRITE, "a8": Op.READ, "A8": Op.READ, "aa": Op.WRITE, "AA": Op.WRITE, "35": Op.FLUSH,
    "91": Op.FLUSH,
}  # fmt: skip
# Fewer requests than one in so many seconds are not traced, but 100,000 a second may be.
_SLOWEST_S = 10


def _read(frame: polars.DataFrame, stamp: polars.Expr) -> polars.DataFrame:
    import polars

    codes = list(_SCSI.values())
    return frame.select(
        request_columns(
            stamp,
            polars.lit(polars.Series(codes, dtype=polars.UInt8)).gather(polars.col("op").to_physical()),
            polars.col("lbn") * SECTOR_BYTES,
            polars.col("size"),
            polars.lit("0"),
            no_response(),
        )
    )


def _read_s(frame: polars.DataFrame) -> polars.DataFrame:
    return _read(frame, seconds_to_ns("time"))


def _read_us(frame: polars.DataFrame) -> polars.DataFrame:
    import polars

    return _read(frame, polars.col("time"))


def _write(frame: polars.DataFrame, time: polars.Expr) -> polars.DataFrame:
    import polars

    code = polars.when(polars.col("op") == Op.FLUSH).then(polars.lit("35")).otherwise(word(("28", "2a")))
    return frame.select(
        polars.lit(1).alias("version"),
        time,
        code.alias("op"),
        "size_bytes",
        polars.col("offset_bytes") // SECTOR_BYTES,
    )


def _write_s(frame: polars.DataFrame) -> polars.DataFrame:
    return _write(frame, ns_to_seconds("stamp"))


def _write_us(frame: polars.DataFrame) -> polars.DataFrame:
    import polars

    return _write(frame, polars.col("stamp"))


def _is_trim() -> polars.Expr:
    import polars

    return polars.col("op") == Op.TRIM


_TIME = Field("time", Kind.SECONDS)
CLOUDPHYSICS = Format(
    name="cloudphysics",
    title="CloudPhysics vscsi as CSV, time in seconds",
    fields=(
        Field("version", Kind.INTEGER, digits=9),
        _TIME,
        Field("op", Kind.WORD, words=tuple(_SCSI)),
        Field("size", Kind.INTEGER),
        Field("lbn", Kind.INTEGER, digits=SECTOR_DIGITS),
    ),
    header="version,time,op,size,lbn",
    clock=Clock.OWN,
    tick_ns=1,
    read=_read_s,
    write=_write_s,
    losses=(Loss("trims", _is_trim, left_out=True), SECTOR_STARTS),
    keeps_volume=False,
)
CLOUDPHYSICS_US = replace(
    CLOUDPHYSICS,
    name="cloudphysics-us",
    title="CloudPhysics vscsi as CSV, time in microseconds",
    fields=tuple(Field("time", Kind.INTEGER, digits=18) if field is _TIME else field for field in CLOUDPHYSICS.fields),
    tick_ns=1000,
    read=_read_us,
    write=_write_us,
)


def told_by_rate(lines: Sequence[str]) -> tuple[Format, tuple[str, ...]]:
    """The format of ``lines`` and its certainty: only one of the two units gives a possible rate."""
    times = [line.split(",")[1] for line in lines if re.match(CLOUDPHYSICS.pattern, line)]
    whole_times = [line.split(",")[1] for line in lines if re.match(CLOUDPHYSICS_US.pattern, line)]
    if len(times) != len(whole_times):  # fractions, or more digits than seconds have
        return (CLOUDPHYSICS if len(times) > len(whole_times) else CLOUDPHYSICS_US), ()
    span = int(times[-1]) - int(times[0]) if times else 0
    if span <= 0:
        return CLOUDPHYSICS, ("no unit of its whole-number times can be told from the first lines: read as seconds",)
    rate = len(times) / span
    rates = f"read as seconds, they make {rate:.3g} requests/s, as microseconds {rate * 1e6:.3g}"
    if rate * _SLOWEST_S < 1:
        return CLOUDPHYSICS_US, (f"its whole-number times are taken for microseconds: {rates}",)
    return CLOUDPHYSICS, (
        f"its times are taken for whole seconds: {rates}; requests of one second have an order and no spacing",
    )
