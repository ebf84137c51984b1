"""Limits in plots: a line over the axes, or a mark at what is limited, with the words of the limit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from matplotlib.axes import Axes

from rackloop.record import Measured
from rackloop.units import counted, format_quantity
from rackloop_reports.plots._style import LIMIT_DASHES, RED
from rackloop_reports.record import TestRecord

# A limit so many times beyond what was measured would press the curves into a corner: its words stand at the edge.
_FAR_LINEAR, _FAR_LOGARITHMIC = 6.0, 30.0
_FONT_SIZE = 8
_STALL = "stall"
GROUND = {"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.65}
_MOST_AT_EDGE = 2
# The room of the words, as a share of the axes.
_ROOM = 0.08


@dataclass(frozen=True)
class LimitLine:
    """A limit to be drawn: the statistic it is held against, such as ``p99``, and its value in SI units.

    ``measure`` names what is limited, where the axes show more than that; ``test`` is the one it is of, where the axes
    may be of others.
    """

    statistic: str
    value: float
    unit: str = "s"
    is_least: bool = False
    measure: str = ""
    test: str = ""

    @property
    def words(self) -> str:
        """``limit of p99: ≤ 20 ms``."""
        of = " ".join(filter(None, (self.statistic, self.measure and f"of {self.measure}")))
        return f"limit of {of}: {self.bound}"

    @property
    def bound(self) -> str:
        """``≤ 20 ms``."""
        return f"{'≥' if self.is_least else '≤'} {format_quantity(self.value, self.unit)}"


def limits_of(test: TestRecord, measured: Measured, measure: str = "") -> list[LimitLine]:
    """The bounds that limits set to what was measured, each with its statistic."""
    alike = [one for one in test.measurements if one.name == measured.name and one.labels == measured.labels]
    return list(
        dict.fromkeys(
            LimitLine(one.quantile, float(one.limits[key]), one.unit, key == "min", measure)
            for one in alike
            if one.limits
            for key in ("min", "max")
            if one.limits.get(key) is not None
        )
    )


def stall_limits(tests: Iterable[TestRecord]) -> list[LimitLine]:
    """The limits of the longest times without I/O, which axes of latencies over time show as well."""
    return [
        replace(limit, test=test.id)
        for test in tests
        for name in dict.fromkeys(one.name for one in test.measurements if one.name.endswith(_STALL))
        for measured in test.measured(name)
        for limit in limits_of(test, measured, name)
    ]


def draw_limits(axes: Axes, limits: Sequence[LimitLine], factor: float, *, is_across: bool = True) -> None:
    """Draw each limit over the whole width of the axes, or their height, once all else is drawn.

    ``factor`` makes SI units those of the axes. A limit that is far from what was measured is named at the edge.
    """
    # Looked for before the first is drawn, for axes count what is drawn among their data.
    sides = {limit: _far_side(axes, limit.value * factor, is_across=is_across) for limit in limits}
    near: dict[float, list[LimitLine]] = {}
    for limit in (limit for limit, side in sides.items() if side is None):
        near.setdefault(limit.value * factor, []).append(limit)
    for value, (limit, *alike) in near.items():
        words = f"{limit.words}, {counted(len(alike), 'other')}" if alike else limit.words
        draw = axes.axhline if is_across else axes.axvline
        draw(value, color=RED, linewidth=1.4, linestyle=LIMIT_DASHES, zorder=3, label="_limit")
        _have_in_view(axes, value, is_across=is_across)
        if is_across:
            # On the side where what keeps the limit is not.
            offset, va = ((-3, -3), "top") if limit.is_least else ((-3, 3), "bottom")
            _write(axes, words, (1.0, value), ("axes fraction", "data"), offset, "right", va)
        else:
            # On the side where what keeps the limit is not, as far as the axes go there.
            offset, ha = ((-3, 0), "right") if limit.is_least else ((3, 0), "left")
            _write(axes, words, (value, 0.02), ("data", "axes fraction"), offset, ha, "bottom", rotation=90)
    for is_above in (True, False):
        far = sorted((limit for limit, side in sides.items() if side is is_above), key=lambda limit: limit.value)
        _name_at_edge(axes, far if is_above else far[::-1], is_above=is_above, is_across=is_across)


def mark_limit(
    axes: Axes, limit: LimitLine, factor: float, ends: tuple[float, float], *, is_across: bool = True
) -> None:
    """Draw a limit of one bar or one point between these ``ends``; the legend has it once."""
    value = limit.value * factor
    name = "_limit" if "limit" in axes.get_legend_handles_labels()[1] else "limit"
    draw = axes.hlines if is_across else axes.vlines
    draw(value, *ends, color=RED, linewidth=2, linestyle=LIMIT_DASHES, zorder=4, label=name)
    if not (axes.get_autoscaley_on() if is_across else axes.get_autoscalex_on()):
        _have_in_view(axes, value, is_across=is_across)
    place = (ends[1], value) if is_across else (value, ends[0])
    beside = {"ha": "right", "va": "bottom"} if is_across else {"ha": "left", "va": "bottom"}
    axes.annotate(
        limit.bound,
        place,
        (0, 2) if is_across else (3, 2),
        textcoords="offset points",
        color=RED,
        fontsize=_FONT_SIZE - 1,
        bbox=GROUND,
        zorder=4,
        **beside,  # type: ignore[arg-type]  # the alignment of a text
    )


def _far_side(axes: Axes, value: float, *, is_across: bool) -> bool | None:
    """Whether a value is far above what is drawn (True) or far below (False); None where it is near."""
    low, high = axes.dataLim.intervaly if is_across else axes.dataLim.intervalx
    is_logarithmic = (axes.get_yscale() if is_across else axes.get_xscale()) != "linear"
    far = _FAR_LOGARITHMIC if is_logarithmic else _FAR_LINEAR
    if not high > 0:
        return None
    if value > high * far:
        return True
    return False if is_logarithmic and value < low / far else None


def _name_at_edge(axes: Axes, limits: Sequence[LimitLine], *, is_above: bool, is_across: bool) -> None:
    """The words of limits at the edge of the axes that they are beyond, the nearest first."""
    said = [limit.words for limit in limits[:_MOST_AT_EDGE]]
    if more := len(limits) - len(said):
        said.append(counted(more, "further limit"))
    if not said:
        return
    arrow = {(True, True): "↑", (True, False): "↓", (False, True): "→", (False, False): "←"}[is_across, is_above]
    is_right = is_above or is_across
    # Distributions rise to the top: beside them there is room below.
    is_at_top = is_above and is_across
    # The words of limits in view stand at the right.
    at = (0.01 if is_at_top or not is_right else 0.99, 0.98 if is_at_top else 0.04)
    fraction = ("axes fraction", "axes fraction")
    side, va = "left" if at[0] < 0.5 else "right", "top" if is_at_top else "bottom"
    _write(axes, "\n".join(f"{words} {arrow}" for words in said), at, fraction, (0, 0), side, va)
    if is_at_top:
        low, high = axes.get_ylim()
        room = _ROOM * (0.5 + len(said))
        axes.set_ylim(low, high * (1 + room) if axes.get_yscale() == "linear" else high * (high / low) ** room)


def _have_in_view(axes: Axes, value: float, *, is_across: bool) -> None:
    """Widen the axes so that a limit, and its words, are in view."""
    low, high = axes.get_ylim() if is_across else axes.get_xlim()
    scale = axes.get_yscale() if is_across else axes.get_xscale()
    room = (high / low) ** _ROOM if scale == "log" and low > 0 else 1 + _ROOM
    wider = (min(low, value / room) if value < low else low, max(high, value * room))
    if wider != (low, high):
        (axes.set_ylim if is_across else axes.set_xlim)(wider)


def _write(
    axes: Axes,
    words: str,
    at: tuple[float, float],
    coordinates: tuple[str, str],
    offset: tuple[int, int],
    ha: str,
    va: str,
    rotation: int = 0,
) -> None:
    axes.annotate(
        words,
        at,
        offset,
        xycoords=coordinates,
        textcoords="offset points",
        ha=ha,
        va=va,
        rotation=rotation,
        color=RED,
        fontsize=_FONT_SIZE,
        bbox=GROUND,
        zorder=4,
    )
