"""The common style of all plots: a palette for colour-blind readers, quiet axes, a caption with the data's source."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, wraps
from io import BytesIO
from pathlib import Path
from typing import Literal, ParamSpec, TypeAlias, TypedDict, TypeVar, cast

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import FuncFormatter, LogLocator, MultipleLocator, NullFormatter

from rackloop_reports._files import utf8
from rackloop_reports.record import RunRecord

# Okabe and Ito, "Color Universal Design" (2008).
BLUE, ORANGE, GREEN, RED = "#0072B2", "#E69F00", "#009E73", "#D55E00"
PURPLE, SKY, YELLOW, BLACK = "#CC79A7", "#56B4E9", "#F0E442", "#222222"
CYCLE = (BLUE, ORANGE, GREEN, PURPLE, RED, SKY, "#7A7A7A", BLACK)
GREY = "#6B6B6B"

_Dashes: TypeAlias = Literal["-"] | tuple[float, tuple[float, ...]]

_SHEET = Path(__file__).with_name("rackloop.mplstyle")
_CAPTION_CHARACTERS_PER_INCH = 16.0
_LEGEND_COLUMNS = 8
#: What is a formula: powers of ten that matplotlib writes at ticks, and the one in a title.
_FORMULAS = ("$\\mathdefault{", "$p_h$")

# What the paper's Figure 2 calls the driver stacks, in its order.
STACK_TITLES = {"vanilla": "Vanilla", "no_timeouts": "No timeouts", "warm_port": "Warm port", "comreset": "COMRESET"}

#: The dashes of lines that share axes, so that a print without colours can be read as well.
LINES: tuple[_Dashes, ...] = ("-", (0, (5, 2)), (0, (1, 1.3)), (0, (6, 2, 1, 2)))
LIMIT_DASHES: _Dashes = (0, (2, 1.5))
_PREFIXED = {
    "s": ((1.0, 1.0, "s"), (1e-3, 1e3, "ms"), (0.0, 1e6, "us")),
    "B/s": ((1e9, 1e-9, "GB/s"), (1e6, 1e-6, "MB/s"), (1e3, 1e-3, "kB/s")),
    "IOPS": ((1e6, 1e-6, "MIOPS"), (5e3, 1e-3, "kIOPS")),
}
# Fewer ticks of four digits than of two, and none of five.
_TIMES = ((3 * 3600.0, 1 / 3600, "h"), (600.0, 1 / 60, "min"))
_TIME_STEPS, _TIME_TICKS = (0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 20.0, 30.0, 60.0, 120.0), 9.0
#: The hatches of bars that share axes, so that a print without colours can be read as well.
HATCHES = ("", "///", "...", "\\\\\\", "xxx", "---", "|||", "+++")

P = ParamSpec("P")
R = TypeVar("R")


class LineLook(TypedDict):
    """The colour and the dashes of a line."""

    color: str
    linestyle: _Dashes


class _BarLook(TypedDict):
    facecolor: str
    edgecolor: str
    hatch: str
    linewidth: float


@dataclass(frozen=True)
class Source:
    """The source of a plot's data, shown in its caption. ``doubt`` is a sentence on why the data prove little."""

    plan: str
    lab: str
    seed: int
    is_simulated: bool
    doubt: str = ""

    @classmethod
    def of(cls, run: RunRecord) -> Source:
        """The source that ``run`` is."""
        return cls(run.started.plan, run.lab, run.started.seed, run.is_simulated)

    def title(self, text: str) -> str:
        """``text``, marked where the results are simulated."""
        return f"{text} (simulated)" if self.is_simulated else text

    def caption(self, *sentences: str) -> str:
        """The doubt, the sentences that are not empty, then plan, lab and seed."""
        whence = f"Plan {self.plan}, lab {self.lab}, seed {self.seed}."
        return " ".join(filter(None, (self.doubt, *sentences, whence)))


def styled(draw: Callable[P, R]) -> Callable[P, R]:
    """Have ``draw`` run under the house style, without touching the style of the process."""

    @wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> R:
        with mpl.rc_context(fname=_SHEET):
            return draw(*args, **kwargs)

    return drawn


def blank(width_in: float, height_in: float) -> Figure:
    """An empty figure of this size; :func:`put_caption` lays it out."""
    return Figure(figsize=(width_in, height_in))


def put_caption(figure: Figure, text: str, legend: Sequence[Artist] = (), *, columns: int = _LEGEND_COLUMNS) -> None:
    """Write ``text`` below everything else, wrapped to the figure's width, with a ``legend`` of the whole above it.

    It may name any file: dollars in it are no formula, and what is not UTF-8 is written as Python writes it.

    The rest of the figure gets the room that is left.
    """
    width, height = figure.get_size_inches()
    lines = textwrap.wrap(utf8(text).decode(), round(width * _CAPTION_CHARACTERS_PER_INCH))
    room = (0.17 * len(lines) + 0.08) / height
    written, below = "\n".join(lines), 0.06 / height
    figure.text(0.012, below, written, fontsize=8, color=GREY, va="bottom", linespacing=1.35, parse_math=False)
    if legend:
        columns = min(len(legend), columns)
        figure.legend(handles=legend, loc="lower left", bbox_to_anchor=(0.005, room), ncols=columns)
        room += (0.34 + 0.22 * ((len(legend) - 1) // columns)) / height
    figure.set_layout_engine("constrained", rect=(0.01, room, 0.98, 1 - room - 0.01))


def line_look(place: int) -> LineLook:
    """The colour and the dashes of line number ``place``: neighbours differ in both, and 32 lines in one."""
    dashes = LINES[(place + place // len(CYCLE)) % len(LINES)]
    return {"color": CYCLE[place % len(CYCLE)], "linestyle": dashes}


def bar_look(place: int) -> _BarLook:
    """The colour and the hatch of the bars of kind ``place``: neighbours differ in both, and 64 kinds in one."""
    hatch = HATCHES[(place + place // len(CYCLE)) % len(HATCHES)]
    return {"facecolor": CYCLE[place % len(CYCLE)], "edgecolor": "white", "hatch": hatch, "linewidth": 0.0}


def put_legend_beside(axes: Axes, title: str = "", *, columns: int = 1) -> None:
    """A legend at the right of the axes, where it covers nothing."""
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0, fontsize=8, title=title, ncols=columns)


@styled
def undrawn(error: Exception) -> Figure:
    """The words that stand where a plot could not be drawn of what was measured."""
    figure = blank(8.6, 1.2)
    why = textwrap.shorten(f"{type(error).__name__}: {error}", 300)
    put_caption(figure, f"This plot could not be drawn: {why}. What was measured is in the tables.")
    # There are no axes to be laid out.
    figure.set_layout_engine("none")
    return figure


def fitting(unit: str, largest: float) -> tuple[float, str]:
    """The factor and the name of the unit that values up to ``largest``, in SI units, are best read in."""
    for least, factor, name in _PREFIXED.get(unit, ()):
        if largest >= least:
            return factor, name
    return 1.0, unit


def fitting_time(longest_s: float) -> tuple[float, str]:
    """The factor and the name of the unit that an axis of times up to ``longest_s`` is best read in."""
    return next(((factor, name) for least, factor, name in _TIMES if longest_s >= least), (1.0, "s"))


def label_time(axes: Axes, what: str) -> None:
    """Name an x axis in seconds, once all is drawn, and have its ticks in minutes or hours where it is long."""
    low, high = axes.get_xlim()
    factor, unit = fitting_time(high - low)
    axes.set_xlabel(f"{what}, {unit}")
    if unit == "s":
        return
    step = next((step for step in _TIME_STEPS if step >= (high - low) * factor / _TIME_TICKS), _TIME_STEPS[-1])
    axes.xaxis.set_major_locator(MultipleLocator(step / factor))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value * factor:g}"))


def stack_title(stack: str) -> str:
    """A stack's name as people read it."""
    return STACK_TITLES.get(stack, stack)


def in_paper_order(stacks: set[str]) -> list[str]:
    """The paper's stacks first, in its order; then others by name."""
    known = list(STACK_TITLES)
    return sorted(stacks, key=lambda stack: (known.index(stack) if stack in known else len(known), stack))


def milliseconds(value_s: float) -> str:
    """``1.05 ms``: latencies of one plot share a unit."""
    return f"{value_s * 1e3:.3g} ms"


@FuncFormatter
def thousands(value: float, _position: int | None) -> str:
    """``0.5``, ``4096``, ``16.4k``, ``1.5M``: the label of a tick."""
    from quantiphy import Quantity

    return Quantity(value).render(prec=2) if abs(value) >= 10_000 else f"{value:g}"


def make_y_logarithmic(axes: Axes) -> None:
    """A logarithmic y axis that reads 1, 2, 5, 10 rather than powers, and has ticks where it spans no power at all."""
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def encode(figure: Figure, kind: Literal["svg", "png"]) -> bytes:
    """The bytes of ``figure``: the same for the same data."""
    buffer = BytesIO()
    with mpl.rc_context(fname=_SHEET):
        _settle(figure)
        figure.savefig(buffer, format=kind, metadata={"Date": None} if kind == "svg" else {"Software": None})
    return buffer.getvalue()


def _settle(figure: Figure) -> None:
    """Lay the figure out and round the result: the last bits that the solver gives differ from time to time."""
    _have_words_as_they_are(figure)
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
    # An engine that is left, and be it one that lays out nothing, has matplotlib draw all of it twice.
    figure.set_layout_engine(None)
    for axes in figure.get_axes():
        left, bottom, width, height = (round(edge, 4) for edge in axes.get_position().bounds)
        axes.set_position((left, bottom, width, height))


def _have_words_as_they_are(figure: Figure) -> None:
    """Have names drawn as they are: dollars in them are no formula, and what is not UTF-8 is as Python writes it."""
    for axes in figure.get_axes():
        for axis in (axes.xaxis, axes.yaxis):
            named = axis.get_major_formatter()
            if isinstance(named, FuncFormatter):
                axis.set_major_formatter(FuncFormatter(partial(_written, named)))
            # A tick has its words from here on.
            axis.get_ticklabels(which="both")
    for text in cast("list[Text]", figure.findobj(Text)):
        if text.get_text() and not text.get_text().startswith(_FORMULAS):
            text.set_text(utf8(text.get_text()).decode())
            text.set_parse_math(False)


def _written(named: FuncFormatter, value: float, position: int | None) -> str:
    return utf8(named(value, position)).decode()
