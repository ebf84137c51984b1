"""Strips of I/O over time: few lines in each, and each line told by its name alone."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from matplotlib.axes import Axes

from rackloop.record import IoSeries
from rackloop_reports.plots._limits import LimitLine, draw_limits
from rackloop_reports.plots._style import fitting, line_look, put_legend_beside

_Points = Sequence[tuple[int, float]]

# As many noisy curves as can be followed in one strip, and as many strips as one quantity may have.
_MOST_LINES, _MOST_STRIPS = 4, 6


@dataclass(frozen=True)
class IoStrip:
    """Lines of one quantity by the names of their jobs, as points of (t_ns, value); NaN ends a stretch of I/O.

    ``largest`` is the largest value of the quantity and ``span_ns`` the first and the last moment, in this strip or in
    others of the same lot; ``test`` is empty where a strip has those of several.
    """

    test: str
    quantity: str
    unit: str
    largest: float
    span_ns: tuple[int, int]
    lines: Mapping[str, _Points]


def io_strips(series: Sequence[IoSeries], *, by_test: bool = False) -> list[IoStrip]:
    """The strips that show ``series``; those that have no point are in none.

    The series of one job are one line, also where they are of several tests. ``by_test`` makes strips of each test.
    """
    found: dict[tuple[str, str, str], dict[str, list[_Points]]] = {}
    for entry in series:
        if entry.points:
            jobs = found.setdefault((entry.test if by_test else "", entry.quantity, entry.unit), {})
            jobs.setdefault(entry.job, []).append(entry.points)
    spans: dict[str, list[int]] = {}
    for (test, _, _), jobs in found.items():
        for stretches in jobs.values():
            spans.setdefault(test, []).extend(points[end][0] for points in stretches for end in (0, -1))
    tests = list(spans)
    return [
        strip
        for key in sorted(found, key=lambda key: (tests.index(key[0]), key))
        for strip in _strips(key, (min(spans[key[0]]), max(spans[key[0]])), found[key])
    ]


def _strips(of: tuple[str, str, str], span_ns: tuple[int, int], jobs: Mapping[str, list[_Points]]) -> Iterator[IoStrip]:
    largest = max(value for stretches in jobs.values() for points in stretches for _, value in points)
    most = max(_MOST_LINES, math.ceil(len(jobs) / _MOST_STRIPS))
    # Those of one server stand together where they are shared out.
    names = sorted(jobs) if len(jobs) > most else list(jobs)
    for first in range(0, len(names), most):
        yield IoStrip(*of, largest, span_ns, {name: _joined(jobs[name]) for name in names[first : first + most]})


def _joined(stretches: Sequence[_Points]) -> _Points:
    joined: list[tuple[int, float]] = []
    for points in sorted(stretches, key=lambda points: points[0][0]):
        if joined:
            joined.append((joined[-1][0], math.nan))
        joined += points
    return joined


def draw_io(
    panels: Sequence[Axes], strips: Sequence[IoStrip], origin_ns: int, limits: Sequence[LimitLine] = ()
) -> None:
    """Each strip on a panel of its own, on the time since ``origin_ns``, times with their limits."""
    for axes, strip in zip(panels, strips, strict=True):
        scale, shown_unit = fitting(strip.unit, strip.largest)
        for place, (job, points) in enumerate(strip.lines.items()):
            axes.plot(
                [(t_ns - origin_ns) / 1e9 for t_ns, _ in points],
                [value * scale for _, value in points],
                drawstyle="steps-post",
                linewidth=1.1,
                **line_look(place),
                label=job,
            )
        # A count or a ratio has no unit to be named.
        axes.set_ylabel(strip.quantity if strip.unit == "1" else f"{strip.quantity},\n{shown_unit}", fontsize=8.5)
        if strip.test:
            axes.set_title(strip.test.partition("::")[0], fontsize=9, pad=3)
        put_legend_beside(axes)
        # Strips of the same quantity, and of the same test, can be compared.
        axes.update_datalim([((t_ns - origin_ns) / 1e9, strip.largest * scale) for t_ns in strip.span_ns])
        axes.autoscale_view()
        axes.margins(y=0.1)
        if not any(value < 0 for points in strip.lines.values() for _, value in points):
            axes.set_ylim(bottom=0)
        draw_limits(axes, _limits_in(strip, limits), scale)


def _limits_in(strip: IoStrip, limits: Sequence[LimitLine]) -> list[LimitLine]:
    """The limits that concern a strip, those of several tests that are alike once."""
    of_unit = (limit for limit in limits if limit.unit == strip.unit)
    mine = (limit for limit in of_unit if not strip.test or limit.test in ("", strip.test))
    return list(dict.fromkeys(replace(limit, test="") for limit in mine))
