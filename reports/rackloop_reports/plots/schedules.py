"""Timeline of a schedule of faults."""

from __future__ import annotations

from matplotlib.figure import Figure
from matplotlib.patches import Patch

from rackloop.faults.schedules import Schedule
from rackloop.units import counted
from rackloop_reports.plots._style import BLACK, bar_look, blank, label_time, put_caption, styled

_LANE_IN = 0.3
_LEAST_SHARE = 0.003
_HALF_BAR = 0.31


@styled
def schedule_timeline(schedule: Schedule, title: str) -> Figure:
    """A lane for each target, and in it a bar for each fault in the colour of its kind, from a line where it begins."""
    steps = schedule.unrolled().steps
    targets = list(dict.fromkeys(step.fault.target for step in steps))
    kinds = list(dict.fromkeys(step.fault.kind for step in steps))
    figure = blank(11.5, 1.7 + _LANE_IN * max(1, len(targets)))
    axes = figure.subplots()
    axes.grid(visible=False, axis="y")
    # A fault of milliseconds is seen all the same.
    least_s = _LEAST_SHARE * max((step.ends_s for step in steps), default=1.0)
    for step in steps:
        axes.barh(
            targets.index(step.fault.target),
            max(step.stands_s, least_s),
            2 * _HALF_BAR,
            left=step.at_s,
            **bar_look(kinds.index(step.fault.kind)),
            alpha=0.85,
        )
    # Where one follows on another of its kind the bars alone would be one.
    rows = [targets.index(step.fault.target) for step in steps]
    edges = [row - _HALF_BAR for row in rows], [row + _HALF_BAR for row in rows]
    axes.vlines([step.at_s for step in steps], *edges, colors=BLACK, linewidths=1.6)
    axes.set_yticks(range(len(targets)), targets)
    axes.invert_yaxis()
    axes.set_xlim(left=0)
    label_time(axes, "Time since the schedule began")
    axes.set_title(f"Faults of {title}")
    most = schedule.most
    bound = f"{counted(most.faults, 'fault')}, {counted(most.drives, 'drive')}, {counted(most.servers, 'server')}"
    seed = f" Drawn with seed {schedule.seed}." if schedule.seed is not None else ""
    put_caption(
        figure,
        f"{counted(len(steps), 'fault')} in {schedule.lasts_s:g} s, at most {bound} at once.{seed} A line marks "
        "where a fault begins. As planned, not as played.",
        [Patch(**bar_look(place), label=kind) for place, kind in enumerate(kinds)],
    )
    return figure
