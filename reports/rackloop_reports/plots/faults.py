"""Timeline of faults and concurrent I/O."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from rackloop.record import IoSeries
from rackloop.units import counted
from rackloop_reports.plots._io_strips import draw_io, io_strips
from rackloop_reports.plots._limits import LimitLine
from rackloop_reports.plots._style import BLACK, Source, bar_look, blank, label_time, put_caption, styled
from rackloop_reports.record import FaultRecord

_LANES_AT_MOST = 24
_STRIPS_AT_MOST = 24
_LANE_IN = 0.3
_PANEL_IN = 1.25
_LEAST_SHARE = 0.002


@styled
def fault_timeline(
    faults: Sequence[FaultRecord],
    series: Sequence[IoSeries],
    start_ns: int,
    end_ns: int,
    source: Source,
    limits: Sequence[LimitLine] = (),
) -> Figure:
    """A lane for each target with a bar for each fault, from its command until it was undone; I/O on the same axis.

    A line marks the first observed effect. A fault whose end was not observed lasts to the end of the run. ``limits``
    are of stalls.
    """
    stood = [fault for fault in faults if fault.is_acknowledged]
    targets = list(dict.fromkeys(fault.target for fault in stood))
    lanes, kinds = targets[:_LANES_AT_MOST], list(dict.fromkeys(fault.kind for fault in stood))
    strips = io_strips(series)
    unshown = len(strips[_STRIPS_AT_MOST:])
    strips = strips[:_STRIPS_AT_MOST]
    heights = [0.6 + _LANE_IN * len(lanes), *[_PANEL_IN] * len(strips)]
    figure = blank(11.5, sum(heights) + 1.7)
    whole = figure.add_gridspec(1 + len(strips), 1, height_ratios=heights).subplots(sharex=True, squeeze=False)[:, 0]
    axes = whole[0]
    axes.grid(visible=False, axis="y")
    least_s = _LEAST_SHARE * (end_ns - start_ns) / 1e9
    for fault in stood:
        if fault.target in lanes:
            row, left = lanes.index(fault.target), (fault.began_ns - start_ns) / 1e9
            lasts_s = ((fault.healed_ns or end_ns) - fault.began_ns) / 1e9
            # A fault of milliseconds is seen all the same.
            axes.barh(row, max(lasts_s, least_s), 0.62, left=left, **bar_look(kinds.index(fault.kind)), alpha=0.85)
            if fault.effect is not None:
                seen_s = (fault.effect.at_ns - start_ns) / 1e9
                axes.plot([seen_s, seen_s], [row - 0.38, row + 0.38], color=BLACK, linewidth=1.2)
    axes.set_yticks(range(len(lanes)), lanes)
    axes.invert_yaxis()
    axes.set_title(source.title("Faults and I/O"))
    draw_io(list(whole[1:]), strips, start_ns, limits)
    label_time(whole[-1], "Time since the run started")
    hidden = len(targets) - len(lanes)
    put_caption(
        figure,
        source.caption(
            f"{counted(len(stood), 'fault')} on {counted(len(targets), 'target')}"
            + (f" ({hidden} not shown)" if hidden else "")
            + ", from the command until it was undone and read back.",
            f"{counted(unshown, 'strip')} of I/O not shown: see the events." if unshown else "",
        ),
        [
            *(Patch(**bar_look(place), label=kind) for place, kind in enumerate(kinds)),
            Line2D([], [], color=BLACK, marker="|", markersize=8, linestyle="none", label="first effect seen"),
        ],
    )
    return figure
