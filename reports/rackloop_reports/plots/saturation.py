"""The plot of a drive's write saturation, from new to steady."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rackloop.measurement import Criteria, SteadySpan, steady_spans
from rackloop.record import RoundsMeasured
from rackloop.units import parse_size
from rackloop_reports.plots._limits import LimitLine, draw_limits
from rackloop_reports.plots._style import (
    BLACK,
    BLUE,
    GREEN,
    ORANGE,
    PURPLE,
    Source,
    blank,
    fitting,
    fitting_time,
    make_y_logarithmic,
    put_caption,
    styled,
)
from rackloop_reports.plots.characterize import criteria_of, criteria_words, shown


@styled
def write_saturation(
    iops: RoundsMeasured,
    longest: RoundsMeasured | None,
    source: Source,
    limits: Sequence[LimitLine] = (),
    longest_limits: Sequence[LimitLine] = (),
) -> Figure:
    """IOPS of random writes to a new drive over time and over what was written; the longest latency over time."""
    figure = blank(11.5, 6.2)
    over_time, over_bytes, stalls = figure.subplot_mosaic([["time", "bytes"], ["stalls", "bytes"]]).values()
    criteria = criteria_of(iops) or Criteria()
    spans = steady_spans(iops.values, criteria)
    per_s, time_unit = fitting_time(iops.round_s * len(iops.values))
    times = [iops.round_s * per_s * number for number in range(1, len(iops.values) + 1)]
    block = parse_size(iops.labels["block"])
    written = list(accumulate(value * iops.round_s * block for value in iops.values))
    size, size_unit = (1 << 40, "TiB") if written[-1] >= 1 << 42 else (1 << 30, "GiB")
    scale, shown_unit = fitting("IOPS", max(iops.values))
    for axes, along, what in (
        (over_time, times, f"Time, {time_unit}"),
        (over_bytes, [total / size for total in written], f"Written, {size_unit}"),
    ):
        _saturating(axes, along, [value * scale for value in iops.values], spans, scale)
        axes.set_xlabel(what)
        axes.set_ylabel(shown_unit)
        axes.set_ylim(bottom=0)
        draw_limits(axes, limits, scale)
    if longest is not None:
        times = [longest.round_s * per_s * number for number in range(1, len(longest.values) + 1)]
        longest_scale, longest_unit = fitting("s", max(longest.values))
        stalls.plot(times, [value * longest_scale for value in longest.values], color=PURPLE, linewidth=1.2)
        make_y_logarithmic(stalls)
        draw_limits(stalls, longest_limits, longest_scale)
        stalls.set_ylabel(f"Longest latency, {longest_unit}")
    stalls.set_xlabel(f"Time, {time_unit}")
    stalls.sharex(over_time)
    figure.suptitle(
        source.title(f"Write saturation, {iops.labels['block']} random writes to a purged drive"),
        x=0.012,
        ha="left",
        fontweight="bold",
    )
    put_caption(figure, source.caption(f"Rounds of {iops.round_s:g} s.", criteria_words([iops])), shown(over_bytes))
    return figure


def _saturating(
    axes: Axes, along: Sequence[float], values: Sequence[float], spans: Sequence[SteadySpan], scale: float
) -> None:
    axes.plot(along, values, color=BLUE, linewidth=1.4, label="IOPS of a round")
    for number, span in enumerate(spans):
        end = along[(span.left or len(values)) - 1]
        label = "steady" if number == 0 else "_nolegend_"
        axes.axvspan(along[span.attained.first - 1], end, color=GREEN, alpha=0.12, linewidth=0, label=label)
        axes.hlines(span.attained.average * scale, along[span.attained.first - 1], end, color=BLACK, linewidth=1)
    if spans and spans[0].left is not None:
        left_at = along[spans[0].left - 1]
        axes.axvline(left_at, color=ORANGE, linestyle=(0, (4, 3)), label="end of FOB (fresh out of box) state")
