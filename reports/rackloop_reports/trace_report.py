"""Reports of a block trace: tables for a terminal, and a directory with its statistics and its page of plots."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.table import Table

from rackloop.units import format_quantity
from rackloop_reports._files import write_atomically, writing

if TYPE_CHECKING:
    from rackloop_traces import Gaps, HeatMap, Statistics

_TOP_SIZES = 5
_QUANTILES = (0.5, 0.95, 0.99, 1.0)


def tables(statistics: Statistics) -> list[Table]:
    """The figures as tables, to be printed by a rich console."""
    parts = [_overview(statistics), _operations(statistics), _gaps(statistics)]
    if statistics.arrivals.scales:
        parts.append(_burstiness(statistics))
    return parts


def write_report(statistics: Statistics, heat_map: HeatMap, name: str, out: Path) -> list[Path]:
    """Write ``statistics.json`` and ``trace.svg`` into ``out``, made if need be, and return their paths.

    Raises BadInput where the disk refuses.
    """
    from rackloop_reports.plots import encode, trace_page

    page = encode(trace_page(statistics, heat_map, name), "svg")
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
    files: dict[Path, str | bytes] = {
        out / "statistics.json": statistics.model_dump_json(indent=1) + "\n",
        out / "trace.svg": page,
    }
    for path, data in files.items():
        write_atomically(path, data)
    return list(files)


def _table(title: str, columns: Iterable[str]) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False)
    for place, column in enumerate(columns):
        table.add_column(column, justify="right" if place else "left")
    return table


def _overview(statistics: Statistics) -> Table:
    arrivals, blocks, runs = statistics.arrivals, statistics.blocks, statistics.sequentiality
    seconds = statistics.duration_s
    about = "" if blocks.is_exact else f" (standard error {blocks.standard_error:.1%})"
    hot = ", ".join(f"{part * 100:g} % get {share:.1%}" for part, share in blocks.hot_shares.items())
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim")
    table.add_column()
    rate = f"{statistics.requests / seconds:.4g} per second" if seconds else "all at one time"
    rows = {
        "requests": f"{statistics.requests:,} in {_duration(seconds)}, {rate}, "
        f"at most {arrivals.peak_second_requests:,} in a second",
        "volumes": f"{statistics.volumes}",
        "footprint": f"{_bytes(blocks.distinct * blocks.block_bytes)} in {blocks.distinct:,} blocks of 4 KiB{about}; "
        f"read {_bytes(blocks.distinct_read * blocks.block_bytes)}, "
        f"written {_bytes(blocks.distinct_written * blocks.block_bytes)}",
        "offsets": f"{_bytes(statistics.placement.lowest_offset_bytes)} to "
        f"{_bytes(statistics.placement.highest_end_bytes)}",
        "busiest blocks": f"{hot} of touches; {blocks.touched_once / max(1, blocks.distinct):.1%} touched once",
        "sequential": f"{runs.following_share:.1%} begin where the last request ended, "
        f"{runs.continuing_share:.1%} where one of the last 32 did; "
        f"runs of {runs.runs.mean_requests:.3g} on average, at most {runs.runs.quantiles_requests[1.0]}",
        "aligned": f"{statistics.placement.aligned_4096_share:.1%} to 4 KiB, "
        f"{statistics.placement.aligned_512_share:.1%} to 512 B",
    }
    for op, found in statistics.ops.items():
        top = sorted(found.sizes, key=lambda pair: -pair[1])[:_TOP_SIZES]
        if top:
            rows[f"{op} sizes"] = ", ".join(f"{_bytes(size)} {count / found.requests:.1%}" for size, count in top)
    for name, text in rows.items():
        table.add_row(name, text)
    return table


def _operations(statistics: Statistics) -> Table:
    responses = ("response p50", "p99") if any(found.response_us for found in statistics.ops.values()) else ()
    table = _table("\nRequests by kind", ("", "requests", "share", "bytes", "size p50", "p99", *responses))
    for name, found in statistics.ops.items():
        if found.requests:
            times = found.response_us or {}
            table.add_row(
                name,
                f"{found.requests:,}",
                f"{found.requests / statistics.requests:.1%}",
                *(_bytes(count) for count in (found.bytes, found.quantiles_bytes[0.5], found.quantiles_bytes[0.99])),
                *(format_quantity(times[q] / 1e6, "s") if times else "" for q in (0.5, 0.99)[: len(responses)]),
            )
    return table


def _gaps(statistics: Statistics) -> Table:
    arrivals = statistics.arrivals
    table = _table("\nTime between arrivals", ("", "mean", "p50", "p95", "p99", "longest", "variation", "at once"))
    kinds: dict[str, Gaps | None] = {
        "all": arrivals.gaps,
        "reads": arrivals.read_gaps,
        "writes": arrivals.write_gaps,
    }
    for name, gaps in kinds.items():
        if gaps is not None:
            shown = [gaps.mean_us, *(gaps.quantiles_us[q] for q in _QUANTILES[:3]), gaps.longest_us]
            times = (format_quantity(us / 1e6, "s") for us in shown)
            table.add_row(name, *times, f"{gaps.variation:.3g}", f"{gaps.zero_share:.1%}")
    return table


def _burstiness(statistics: Statistics) -> Table:
    table = _table("\nBurstiness by interval", ("interval", "variance / mean", "most requests in one"))
    for scale in statistics.arrivals.scales:
        table.add_row(format_quantity(scale.interval_s, "s"), f"{scale.dispersion:.4g}", f"{scale.peak_requests:,}")
    return table


def _duration(seconds: float) -> str:
    return format_quantity(seconds, "s") if seconds < 60 else str(timedelta(seconds=round(seconds)))


def _bytes(count: int) -> str:
    return format_quantity(count, "B")
