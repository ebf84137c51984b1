"""fio's logs of requests, as fio 3.33 reads and writes them.

Version 3 stamps each line in microseconds. Version 2 has lines that say ``wait``; fio's manual calls their number
microseconds since the wait before, but fio waits until so many milliseconds after its own start, and so does this.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rackloop_traces._columns import Op
from rackloop_traces._expressions import no_response, request_columns
from rackloop_traces._format import NOT_A_REQUEST, Clock, Field, Format, Kind, Loss

if TYPE_CHECKING:
    import polars

_ACTIONS = {
    "read": Op.READ,
    "write": Op.WRITE,
    "trim": Op.TRIM,
    "sync": Op.FLUSH,
    "datasync": Op.FLUSH,
    "wait": NOT_A_REQUEST,
}
_NAME = Field("filename", Kind.TEXT, shape=r"\S+")
_LARGEST_BYTES = 2**32 - 1  # fio reads the length into 32 bits


def _read(frame: polars.DataFrame, stamp: polars.Expr) -> polars.DataFrame:
    import polars

    codes = polars.Series(list(_ACTIONS.values()), dtype=polars.UInt8)
    op = polars.lit(codes).gather(polars.col("action").to_physical())
    return frame.select(
        request_columns(stamp, op, polars.col("offset"), polars.col("length"), polars.col("filename"), no_response())
    )


def _read_v2(frame: polars.DataFrame) -> polars.DataFrame:
    import polars

    return _read(frame, polars.when(polars.col("action") == "wait").then(polars.col("offset")))


def _read_v3(frame: polars.DataFrame) -> polars.DataFrame:
    import polars

    return _read(frame, polars.col("timestamp"))


def _wait(frame: polars.DataFrame, last: int) -> polars.DataFrame:
    """Give each request the time of the longest wait before it: fio does not go back."""
    import polars

    return frame.with_columns(polars.col("stamp").fill_null(last).clip(lower_bound=last).cum_max())


def _action() -> polars.Expr:
    import polars

    names = ["read", "write", "trim", "sync"]
    return polars.col("op").replace_strict(list(range(4)), names, return_dtype=polars.String)


def _write_v2(frame: polars.DataFrame) -> polars.DataFrame:
    import polars

    line = polars.format("{} {} {} {}", "volume", _action(), "offset_bytes", "size_bytes")
    wait = polars.format("{} wait {} 0\n", "volume", "stamp")
    is_later = (polars.col("stamp") > polars.col("stamp").shift(1)).fill_null(polars.col("stamp") > 0)
    return frame.select(polars.concat_str(polars.when(is_later).then(wait).otherwise(polars.lit("")), line))


def _write_v3(frame: polars.DataFrame) -> polars.DataFrame:
    return frame.select("stamp", "volume", _action(), "offset_bytes", "size_bytes")


def _announce_v2(volumes: Sequence[str], _stamp: int) -> str:
    return "".join(f"{volume} add\n{volume} open\n" for volume in volumes)


def _announce_v3(volumes: Sequence[str], stamp: int) -> str:
    return "".join(f"{stamp} {volume} add\n{stamp} {volume} open\n" for volume in volumes)


def _too_large() -> polars.Expr:
    import polars

    return polars.col("size_bytes") > _LARGEST_BYTES


_LOSSES = (Loss("larger than 4 GiB - 1 B", _too_large, left_out=True),)

IOLOG2 = Format(
    name="iolog2",
    title="fio iolog version 2",
    fields=(
        _NAME,
        Field("action", Kind.WORD, words=tuple(_ACTIONS)),
        Field("offset", Kind.INTEGER, digits=18),
        Field("length", Kind.INTEGER),
    ),
    separator=" ",
    header="fio version 2 iolog",
    directive=r"^\S+ (?:add|open|close)$",
    clock=Clock.START,
    tick_ns=1_000_000,
    read=_read_v2,
    finish=_wait,
    write=_write_v2,
    announce=_announce_v2,
    losses=_LOSSES,
    in_order=True,
    starts_at=0,
)
IOLOG3 = Format(
    name="iolog3",
    title="fio iolog version 3",
    fields=(
        Field("timestamp", Kind.INTEGER),
        _NAME,
        Field("action", Kind.WORD, words=tuple(_ACTIONS)),
        Field("offset", Kind.INTEGER, digits=18),
        Field("length", Kind.INTEGER),
    ),
    separator=" ",
    header="fio version 3 iolog",
    directive=r"^[0-9]+ \S+ (?:add|open|close)$",
    clock=Clock.START,
    tick_ns=1000,
    read=_read_v3,
    write=_write_v3,
    announce=_announce_v3,
    losses=_LOSSES,
    in_order=True,
    starts_at=1,  # fio takes a gap after a stamp of 0 for none
)
