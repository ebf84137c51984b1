"""The lateness of a replay's requests: their arrival at the drive against their due time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rackloop.errors import BadInput
from rackloop.measurement import Distribution

if TYPE_CHECKING:
    import polars

_KEY = ("op", "offset_bytes", "size_bytes")


@dataclass(frozen=True)
class Lateness:
    """The arrival of each due request.

    ``requests`` holds those that were seen, by the time they were due: ``due_ns``, ``reached_ns`` and ``late_ns``,
    their difference, 0 for the least late one: replay and drive need no common clock, since that one relates their
    clocks, and a late first request does not make others look early. ``due`` counts all planned requests,
    ``unexpected`` the others that arrived. Stamps are good to ``resolution_ns``.
    """

    requests: polars.DataFrame
    due: int
    unexpected: int
    resolution_ns: int

    @property
    def missing(self) -> int:
        """The number of due requests that never reached the drive."""
        return self.due - self.requests.height

    @property
    def late_s(self) -> Distribution:
        """The lateness in seconds, in steps of a microsecond or of the stamps where they are coarser."""
        step_ns = max(self.resolution_ns, 1000)
        counts = (self.requests["late_ns"] / step_ns).round().cast(int).value_counts()
        return Distribution.from_bins({step * step_ns / 1e9: count for step, count in counts.iter_rows()})

    @property
    def drift(self) -> float:
        """The slope of the lateness over time, in seconds a second: 1e-6 is a millisecond too slow in 1000 s.

        The line through all requests by least squares; 0 where all were due at once.
        """
        due, late = self.requests["due_ns"].cast(float), self.requests["late_ns"].cast(float)
        spread = due - due.mean()
        variance = float((spread * spread).sum())
        return float((spread * late).sum()) / variance if variance else 0.0


def judge_lateness(due: polars.DataFrame, reached: polars.DataFrame, *, resolution_ns: int) -> Lateness:
    """Hold the requests that were ``due`` against those that ``reached`` the drive.

    ``due`` has ``due_ns``, ``reached`` has ``reached_ns`` on any clock; both have ``op``, ``offset_bytes`` and
    ``size_bytes``. The n-th request of one kind, place and size is the n-th that was due; neither needs to be sorted.
    Raises BadInput where not one was seen.
    """
    import polars as pl

    def numbered(frame: polars.DataFrame, stamp: str) -> polars.DataFrame:
        ordered = frame.sort(stamp, maintain_order=True).with_columns(pl.col("op").cast(pl.UInt8))
        return ordered.with_columns(nth=pl.int_range(pl.len()).over(_KEY))

    joined = numbered(due, "due_ns").join(numbered(reached, "reached_ns"), on=[*_KEY, "nth"], how="inner")
    if joined.is_empty():
        raise BadInput(f"none of the {due.height} requests that were due was seen at the drive: was it the right one?")
    behind = pl.col("reached_ns") - pl.col("due_ns")
    seen = joined.sort("due_ns", maintain_order=True).with_columns(late_ns=behind - behind.min())
    seen = seen.with_columns(reached_ns=pl.col("due_ns") + pl.col("late_ns"))
    return Lateness(
        requests=seen.select("due_ns", "reached_ns", "late_ns"),
        due=due.height,
        unexpected=reached.height - joined.height,
        resolution_ns=resolution_ns,
    )
