"""Plots of a replayed trace: planned and issued requests, lateness and latency."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from rackloop.measurement import Distribution
from rackloop_reports.plots._limits import LimitLine, draw_limits
from rackloop_reports.plots._style import (
    BLUE,
    GREY,
    ORANGE,
    Source,
    blank,
    fitting,
    label_time,
    milliseconds,
    put_caption,
    styled,
)

_ROOM_FOR_WORDS = 8.0
Points = Sequence[tuple[int, float]]


@dataclass(frozen=True)
class Replayed:
    """One replay: rates as planned and as issued in requests a second, the longest latencies in seconds, over time.

    ``lateness_s`` is how late each request reached the drive, by the stamps of ``seen_by``; ``limits`` are of it, and
    ``latency_limits`` of the longest latencies.
    """

    planned: Points
    issued: Points
    longest_s: Points
    lateness_s: Distribution
    seen_by: str
    limits: Sequence[LimitLine] = ()
    latency_limits: Sequence[LimitLine] = ()


@styled
def replay_fidelity(replayed: Replayed, source: Source) -> Figure:
    """Rate over time against the plan, the distribution of the lateness, and the longest latency over time."""
    figure = blank(10.5, 6.2)
    rate, late, longest, _ = figure.subplots(2, 2, width_ratios=(2, 1)).flat
    figure.axes[3].set_visible(False)
    begin_ns = min(points[0][0] for points in (replayed.planned, replayed.issued) if points)
    _over_time(rate, replayed.planned, begin_ns, GREY, "planned", width=4.0)
    _over_time(rate, replayed.issued, begin_ns, BLUE, "issued")
    _to_ground(rate)
    rate.set_ylabel("Requests per second")
    rate.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2, borderaxespad=0.2)
    factor, unit = fitting("s", max((value for _, value in replayed.longest_s), default=1.0))
    _over_time(longest, [(t_ns, value * factor) for t_ns, value in replayed.longest_s], begin_ns, ORANGE, "")
    _to_ground(longest)
    longest.set_ylabel(f"Longest latency, {unit}")
    draw_limits(longest, replayed.latency_limits, factor)
    label_time(longest, "Time since the first request")
    _distribution(late, replayed.lateness_s)
    draw_limits(late, replayed.limits, 1e3, is_across=False)
    figure.suptitle(source.title("Replay of a trace"), x=0.012, ha="left", fontweight="bold")
    put_caption(
        figure,
        source.caption(
            f"n = {replayed.lateness_s.n} requests.",
            f"Lateness: when a request reached the drive, by {replayed.seen_by}'s stamps, less when it was due;"
            " 0 for the request that was least late.",
        ),
    )
    return figure


def _over_time(axes: Axes, points: Points, begin_ns: int, color: str, label: str, width: float = 1.2) -> None:
    axes.plot(
        [(t_ns - begin_ns) / 1e9 for t_ns, _ in points],
        [value for _, value in points],
        drawstyle="steps-post",
        color=color,
        linewidth=width,
        alpha=0.45 if width > 2 else 1.0,
        label=label,
    )


def _to_ground(axes: Axes) -> None:
    """Have the axes begin at 0, once all is drawn: they grow no further with what is drawn after that."""
    axes.set_ylim(bottom=0)


def _distribution(axes: Axes, lateness_s: Distribution) -> None:
    import numpy as np

    late_ms = np.asarray(lateness_s.values) * 1e3
    axes.step(late_ms, np.cumsum(lateness_s.counts) / lateness_s.n, where="post", color=BLUE)
    for share, name in ((0.5, "median"), (0.99, "p99")):
        if lateness_s.draws < Distribution.fewest_draws(share):
            continue
        value_s = lateness_s.quantile(share)
        axes.plot([value_s * 1e3], [share], marker="o", color=ORANGE, linestyle="none", markersize=5)
        axes.annotate(
            f"{name} {milliseconds(value_s)}",
            (value_s * 1e3, share),
            (8, -12),
            textcoords="offset points",
            fontsize=8.5,
        )
    axes.set_xscale("symlog", linthresh=0.1)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    # The words stand at the right of their points.
    axes.set_xlim(right=axes.get_xlim()[1] * _ROOM_FOR_WORDS)
    axes.set_ylim(0, 1.05)
    axes.set_xlabel("Lateness, ms")
    axes.set_ylabel("Share of requests")
