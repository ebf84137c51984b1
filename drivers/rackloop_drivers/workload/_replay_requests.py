"""The requests of a trace, fitted to a drive: a stretch, at a speed, whole sectors, within the drive."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rackloop.errors import BadInput
from rackloop.units import counted, format_quantity
from rackloop_traces import Op

if TYPE_CHECKING:
    import polars

# fio holds what it replays in memory, and so does whoever judges it.
MAX_REQUESTS = 4_000_000
MAX_SIZE_BYTES = 64 << 20
# What coarse stamps are multiples of: requests of one such stamp came at any time until the next.
_TICKS_NS = (1_000_000_000, 100_000_000, 10_000_000, 1_000_000)
# Times are whole nanoseconds in 64 bits.
_LONGEST_S = 9e9


@dataclass(frozen=True, kw_only=True)
class Stretch:
    """The part of a trace to replay, its speed, and how it is fitted to the drive.

    ``speed`` 10 plays ten times as fast as it was recorded. ``from_s`` and ``duration_s`` are the trace's own seconds,
    None to its end; from 0 on is all of it, what is earlier than the first line included. With ``fold`` offsets beyond
    the region come back into it, modulo its size; with ``reads_only`` everything else is dropped. With ``spread``,
    requests that share a stamp of a millisecond or coarser are spread evenly until the next stamp. Raises BadInput for
    what is no stretch of any trace.
    """

    speed: float = 1.0
    from_s: float = 0.0
    duration_s: float | None = None
    fold: bool = False
    reads_only: bool = False
    spread: bool = True

    def __post_init__(self) -> None:
        if not 0 < self.speed < float("inf"):
            raise BadInput(f"speed is {self.speed:g}, must be above 0: 1 is the trace's own, 10 ten times as fast")
        if not 0 <= self.from_s <= _LONGEST_S:
            raise BadInput(f"from_s is {self.from_s:g}: a trace begins at 0, and none is longer than {_LONGEST_S:g} s")
        if self.duration_s is not None and not 0 < self.duration_s <= _LONGEST_S:
            raise BadInput(f"duration_s is {self.duration_s:g}, must be above 0 and at most {_LONGEST_S:g}")


@dataclass(frozen=True)
class Planned:
    """The requests to replay, and what became of the trace on the way.

    ``requests`` has ``due_ns`` (from the first request, at the replay's speed, ascending), ``op``, ``offset_bytes`` (on
    the device) and ``size_bytes``. ``dropped`` counts what reads alone leave out, ``trims`` the trims, which the iologs
    of fio 3.33 do not know and are never replayed, ``folded`` the requests whose offset
    was brought back into the drive, ``aligned`` those that were widened to whole sectors, ``spread`` those moved away
    from a coarse stamp they shared; ``tick_s`` is the stamps' resolution. ``malformed`` counts the trace's lines that
    are no requests, ``volumes`` the volumes that all go to the one device, and ``doubts`` are those about its format.
    """

    requests: polars.DataFrame
    dropped: int
    trims: int
    folded: int
    aligned: int
    spread: int
    tick_s: float
    malformed: int = 0
    volumes: int = 1
    doubts: tuple[str, ...] = ()

    @property
    def span_s(self) -> float:
        """The length of the replay when it keeps its times."""
        return int(self.requests["due_ns"][-1]) / 1e9

    @property
    def writes(self) -> bool:
        """Whether anything but reads is left."""
        return bool((self.requests["op"] != int(Op.READ)).any())

    def changes(self) -> dict[str, int]:
        """The number of requests that were changed or left out, by what was done to them."""
        return {
            "dropped": self.dropped,
            "trims": self.trims,
            "folded": self.folded,
            "aligned": self.aligned,
            "spread": self.spread,
            "malformed": self.malformed,
        }

    def remarks(self) -> list[str]:
        """The changes made to the trace, and doubts about it, in sentences; empty where it is replayed as recorded."""
        counts = {
            "dropped: only reads are replayed": self.dropped,
            "dropped: fio replays no trims": self.trims,
            "folded onto the smaller drive": self.folded,
            "widened to whole sectors": self.aligned,
            f"spread over stamps {format_quantity(self.tick_s, 's')} apart": self.spread,
        }
        changed = [f"{counted(count, 'request')} {what}" for what, count in counts.items() if count]
        if self.malformed:
            changed.append(f"{counted(self.malformed, 'malformed line')} left out")
        if self.volumes > 1:
            changed.append(f"the requests of {self.volumes} volumes are all replayed on one drive")
        return changed + [f"doubt: {doubt}" for doubt in self.doubts]


def plan_requests(
    batches: Iterable[polars.DataFrame],
    stretch: Stretch,
    *,
    region_bytes: int,
    offset_bytes: int = 0,
    sector_bytes: int = 512,
) -> Planned:
    """Fit a stretch of a trace to the region of a device that begins at ``offset_bytes``.

    ``batches`` are frames of :func:`rackloop_traces.columns`, in any order. Raises BadInput where the stretch holds no
    request, holds more than 4 million, or does not fit the region and may not be folded.
    """
    import polars as pl

    recorded, last_s = _collect(batches, stretch)
    trims = 0 if stretch.reads_only else int((recorded["op"] == int(Op.TRIM)).sum())
    kept = recorded.filter(pl.col("op") == int(Op.READ) if stretch.reads_only else pl.col("op") != int(Op.TRIM))
    if not (kept["op"] != int(Op.FLUSH)).any():
        what = "no reads" if stretch.reads_only and recorded.height else "nothing that fio replays"
        raise BadInput(
            f"the trace has {what} from {stretch.from_s:g} s on for {_until(stretch)}, and its last request is at "
            f"{last_s:g} s: choose another part"
        )
    # A flush is of all the drive, whatever place a trace says of it.
    is_placed = pl.col("op") != int(Op.FLUSH)
    places = ("offset_bytes", "size_bytes")
    kept = kept.with_columns(pl.when(is_placed).then(pl.col(name)).otherwise(0).alias(name) for name in places)
    kept = kept.sort("t_ns", maintain_order=True)
    tick_ns = _tick_ns(kept["t_ns"])
    spread = 0
    if stretch.spread and tick_ns:
        kept, spread = _spread(kept, tick_ns)
    fitted, aligned = _whole_sectors(kept, sector_bytes)
    fitted, folded = _within(fitted, region_bytes // sector_bytes * sector_bytes, fold=stretch.fold)
    since_first = pl.col("t_ns") - pl.col("t_ns").first()
    if (span_s := int(fitted["t_ns"][-1] - fitted["t_ns"][0]) / 1e9 / stretch.speed) > _LONGEST_S:
        raise BadInput(f"at speed {stretch.speed:g} the replay would take {span_s:g} s: choose another speed or part")
    return Planned(
        requests=fitted.select(
            due_ns=(since_first / stretch.speed).cast(pl.Int64),
            op="op",
            offset_bytes=pl.col("offset_bytes") + offset_bytes,
            size_bytes="size_bytes",
        ),
        dropped=recorded.height - kept.height - trims,
        trims=trims,
        folded=folded,
        aligned=aligned,
        spread=spread,
        tick_s=tick_ns / 1e9,
    )


def _collect(batches: Iterable[polars.DataFrame], stretch: Stretch) -> tuple[polars.DataFrame, float]:
    """The requests of the stretch, and the time of the trace's last one in seconds."""
    import polars as pl

    begin_ns = round(stretch.from_s * 1e9)
    # A request that is earlier than the one that stands first has a time below zero.
    chosen = pl.col("t_ns") >= begin_ns if begin_ns else pl.lit(value=True)
    if stretch.duration_s is not None:
        chosen &= pl.col("t_ns") < begin_ns + round(stretch.duration_s * 1e9)
    found, total, last_ns = [], 0, 0
    for batch in batches:
        last_ns = max(last_ns, *batch["t_ns"].top_k(1))
        part = batch.lazy().filter(chosen).select("t_ns", "op", "offset_bytes", "size_bytes").collect()
        total += part.height
        if total > MAX_REQUESTS:
            raise BadInput(
                f"more than {MAX_REQUESTS} requests are too many for one replay: choose a part, from_s and duration_s"
            )
        found.append(part)
    if not found:
        raise BadInput("the trace holds no requests")
    return pl.concat(found), last_ns / 1e9


def _until(stretch: Stretch) -> str:
    return "the rest of it" if stretch.duration_s is None else f"{stretch.duration_s:g} s"


def _tick_ns(stamps: polars.Series) -> int:
    """The resolution of coarse stamps; 0 for fine ones, and where all are the same."""
    import numpy as np

    common = int(np.gcd.reduce((stamps - stamps[0]).to_numpy()))
    return next((tick_ns for tick_ns in _TICKS_NS if common and common % tick_ns == 0), 0)


def _spread(requests: polars.DataFrame, tick_ns: int) -> tuple[polars.DataFrame, int]:
    import polars as pl

    nth, of = pl.int_range(pl.len()).over("t_ns"), pl.len().over("t_ns")
    moved = requests.with_columns(nth=nth, t_ns=pl.col("t_ns") + nth * tick_ns // of)
    return moved.drop("nth"), moved.filter(pl.col("nth") > 0).height


def _whole_sectors(requests: polars.DataFrame, sector_bytes: int) -> tuple[polars.DataFrame, int]:
    import polars as pl

    begin = pl.col("offset_bytes") // sector_bytes * sector_bytes
    end = -(-(pl.col("offset_bytes") + pl.col("size_bytes")) // sector_bytes) * sector_bytes
    whole = requests.with_columns(offset_bytes=begin, size_bytes=end - begin)
    if int(whole.select(pl.col("size_bytes").max()).item()) > MAX_SIZE_BYTES:
        raise BadInput(
            f"the trace has requests of more than {format_quantity(MAX_SIZE_BYTES, 'B')}: no drive takes them"
        )
    changed = (whole["offset_bytes"] != requests["offset_bytes"]) | (whole["size_bytes"] != requests["size_bytes"])
    return whole, int(changed.sum())


def _within(requests: polars.DataFrame, region_bytes: int, *, fold: bool) -> tuple[polars.DataFrame, int]:
    import polars as pl

    ends = requests["offset_bytes"] + requests["size_bytes"]
    beyond = int((ends > region_bytes).sum())
    needed = int(requests.select(pl.col("offset_bytes") + pl.col("size_bytes")).max().item())
    if not beyond:
        return requests, 0
    if not fold:
        raise BadInput(
            f"{beyond} of {requests.height} requests reach beyond the drive: the trace needs {needed} bytes and "
            f"{region_bytes} can be used; fold the offsets (--fold), or take a larger drive"
        )
    largest = int(requests.select(pl.col("size_bytes").max()).item())
    if largest > region_bytes:
        raise BadInput(f"a request of {largest} bytes cannot be folded onto {region_bytes}: take a larger drive")
    # What would run over the end is moved back as a whole, so that no request is cut in two.
    wrapped = pl.min_horizontal(pl.col("offset_bytes") % region_bytes, region_bytes - pl.col("size_bytes"))
    return requests.with_columns(
        offset_bytes=pl.when(pl.col("offset_bytes") + pl.col("size_bytes") > region_bytes)
        .then(wrapped)
        .otherwise(pl.col("offset_bytes"))
    ), beyond
