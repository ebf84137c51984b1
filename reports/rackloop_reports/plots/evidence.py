"""A timeline of all evidence from a test that did not pass."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from rackloop.record import EvidenceGathered
from rackloop_reports.plots._style import CYCLE, GREY, Source, blank, label_time, put_caption, styled

_LANE_IN = 0.34


@styled
def evidence_timeline(evidence: EvidenceGathered, source: Source) -> Figure:
    """A lane for each source: a mark at every line it wrote, as wide as its clock is uncertain.

    A lane is hatched where lines were left out.
    """
    lanes = list(evidence.lanes)
    left_out = {name: evidence.left_out[name] for name in lanes if evidence.left_out.get(name)}
    figure = blank(11.5, 1.7 + _LANE_IN * len(lanes))
    axes = figure.subplots()
    axes.grid(visible=False, axis="y")
    for place, name in enumerate(lanes):
        moments = evidence.lanes[name]
        color = CYCLE[place % len(CYCLE)]
        at_s, error_s = ((np.array(moments).reshape(-1, 2) - (evidence.began_ns, 0)) / 1e9).T
        rows = np.full_like(at_s, place)
        # As hlines draws it, which takes several times as long for thousands of lines.
        bars = np.stack([at_s - error_s, rows, at_s + error_s, rows], axis=-1).reshape(-1, 2, 2)
        axes.add_collection(LineCollection(list(bars), colors=color, alpha=0.4, linewidths=5))
        axes.plot(at_s, rows, "|", color=color, markersize=11, markeredgewidth=1.1)
        if name in left_out:
            # What an earlier version left out were the first lines.
            first_s = float(at_s.min(initial=_seconds(evidence.ended_ns, evidence)))
            until_first = [(evidence.began_ns, evidence.began_ns + round(max(0.0, first_s) * 1e9))]
            for from_ns, until_ns in evidence.gaps.get(name, until_first):
                from_s, until_s = _seconds(from_ns, evidence), _seconds(until_ns, evidence)
                axes.add_patch(_hatched((from_s, place - 0.3), until_s - from_s, 0.6))
    for edge_ns, what in ((evidence.began_ns, "begins"), (evidence.ended_ns, "ends")):
        axes.axvline(_seconds(edge_ns, evidence), color=GREY, linewidth=1, linestyle="--")
        axes.text(_seconds(edge_ns, evidence), -0.72, what, color=GREY, fontsize=8, ha="center", va="bottom")
    axes.set_yticks(range(len(lanes)), [_row(name, len(evidence.lanes[name]), left_out.get(name, 0)) for name in lanes])
    axes.set_ylim(len(lanes) - 0.4, -0.75)
    label_time(axes, "Time since the test began")
    axes.set_title(
        source.title(f"Logs of all sources around {evidence.test.partition('::')[0]}, on one time base"), pad=16
    )
    put_caption(
        figure,
        source.caption(
            f"A mark for every line{' that is kept' if left_out else ''}, with how many there are; "
            "the bar behind it is how far its clock may be off.",
            f"Hatched: the time for which lines were left out, {sum(left_out.values())} in all, not silence."
            if left_out
            else "",
            _unread(sorted(evidence.unread)),
        ),
        [_hatched((0.0, 0.0), 1.0, 1.0, "lines left out")] if left_out else (),
    )
    return figure


def _row(name: str, kept: int, left_out: int) -> str:
    return f"{name} ({kept} of {kept + left_out})" if left_out else f"{name} ({kept})"


def _hatched(corner: tuple[float, float], width: float, height: float, label: str = "") -> Rectangle:
    return Rectangle(corner, width, height, label=label, facecolor="none", edgecolor=GREY, hatch="////", linewidth=0.0)


def _seconds(at_ns: int, evidence: EvidenceGathered) -> float:
    return (at_ns - evidence.began_ns) / 1e9


def _unread(sources: Sequence[str]) -> str:
    return f"Not read in full, or not on this time base: {', '.join(sources)}." if sources else ""
