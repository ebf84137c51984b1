"""The columns of a trace of any format."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars


class Op(IntEnum):
    """The kind of a request, as the ``op`` column numbers it."""

    READ = 0
    WRITE = 1
    TRIM = 2
    FLUSH = 3


def columns() -> dict[str, type[polars.DataType]]:
    """Name -> type of the columns of a batch, in order.

    ``t_ns`` counts from the trace's first request, which may stand later in the file, so that it can be negative.
    ``offset_bytes`` and ``size_bytes`` are bytes on the volume. ``volume`` is what the trace calls the device, disk or
    LUN, ``"0"`` in formats that have one. ``response_ns`` is how long the request took, null where not recorded.
    """
    import polars

    return {
        "t_ns": polars.Int64,
        "op": polars.UInt8,
        "offset_bytes": polars.Int64,
        "size_bytes": polars.Int64,
        "volume": polars.String,
        "response_ns": polars.Int64,
    }
