"""Sorting of nearly sorted requests by time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from rackloop.errors import BadInput

if TYPE_CHECKING:
    import polars

REORDERED_REQUESTS = 1 << 18


def ordered(frames: Iterable[polars.DataFrame], where: str) -> Iterator[polars.DataFrame]:
    """``frames`` with their rows in the order of ``t_ns``; rows of the same time keep the order they had.

    A request is put in its place if it stands at most 262,144 requests behind it. Raises BadInput that names the first
    line that is further away.
    """
    import polars

    held: polars.DataFrame | None = None
    given_ns: int | None = None
    for frame in frames:
        held = frame if held is None else polars.concat([held, frame])
        if not held["t_ns"].is_sorted():
            held = held.sort("t_ns", maintain_order=True)
        _check_not_before(given_ns, held, where)
        if held.height > 2 * REORDERED_REQUESTS:
            given = held[:-REORDERED_REQUESTS]
            held = held[-REORDERED_REQUESTS:]
            given_ns = given["t_ns"][-1]
            yield given
    if held is not None:
        yield held


def _check_not_before(given_ns: int | None, held: polars.DataFrame, where: str) -> None:
    if given_ns is None or held["t_ns"][0] >= given_ns:
        return
    import polars

    line = held.filter(polars.col("t_ns") < given_ns)["line"].sort()[0]
    raise BadInput(
        f"{where}: line {line} is earlier than requests that stand more than {REORDERED_REQUESTS:,} before it: "
        "sort the trace by time first"
    )
