"""The common style of all plots: a palette for colour-blind readers, quiet axes, a caption with the data's source."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from io import BytesIO
from pathlib import Path
from typing import Literal, ParamSpec, TypeVar

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from rackloop_reports.record import RunRecord

# Okabe and Ito, "Color Universal Design" (2008).
BLUE, ORANGE, GREEN, RED = "#0072B2", "#E69F00", "#009E73", "#D55E00"
PURPLE, SKY, YELLOW, BLACK = "#CC79A7", "#56B4E9", "#F0E442", "#222222"
CYCLE = (BLUE, ORANGE, GREEN, PURPLE, RED, SKY, "#7A7A7A", BLACK)
GREY = "#6B6B6B"

_SHEET = Path(__file__).with_name("rackloop.mplstyle")
_CAPTION_CHARACTERS_PER_INCH = 17.5
_LEGEND_COLUMNS = 8

# What the paper's Figure 2 calls the driver stacks, in its order.
STACK_TITLES = {"vanilla": "Vanilla", "no_timeouts": "No timeouts", "warm_port": "Warm port", "comreset": "COMRESET"}

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class Source:
    """The source of a plot's data, shown in its caption."""

    plan: str
    lab: str
    seed: int
    is_simulated: bool

    @classmethod
    def of(cls, run: RunRecord) -> Source:
        """The source that ``run`` is."""
        return cls(run.started.plan, run.lab, run.started.seed, run.is_simulated)

    def title(self, text: str) -> str:
        """``text``, marked where the results are simulated."""
        return f"{text} (simulated)" if self.is_simulated else text

    def caption(self, *sentences: str) -> str:
        """The sentences that are not empty, then plan, lab and seed."""
        return " ".join((*filter(None, sentences), f"Plan {self.plan}, lab {self.lab}, seed {self.seed}."))


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


def put_caption(figure: Figure, text: str, legend: Sequence[Artist] = ()) -> None:
    """Write ``text`` below everything else, wrapped to the figure's width, with a ``legend`` of the whole above it.

    The rest of the figure gets the room that is left.
    """
    width, height = figure.get_size_inches()
    lines = textwrap.wrap(text, round(width * _CAPTION_CHARACTERS_PER_INCH))
    room = (0.17 * len(lines) + 0.08) / height
    figure.text(0.012, 0.06 / height, "\n".join(lines), fontsize=8, color=GREY, va="bottom", linespacing=1.35)
    if legend:
        columns = min(len(legend), _LEGEND_COLUMNS)
        figure.legend(handles=legend, loc="lower left", bbox_to_anchor=(0.005, room), ncols=columns)
        room += (0.34 + 0.22 * ((len(legend) - 1) // columns)) / height
    figure.set_layout_engine("constrained", rect=(0.01, room, 0.98, 1 - room - 0.01))


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
    """``0.5``, ``200``, ``50k``: the label of a tick."""
    return f"{value / 1e3:g}k" if abs(value) >= 10_000 else f"{value:g}"


def make_y_logarithmic(axes: Axes) -> None:
    """A logarithmic y axis that reads 0.1, 1, 10, 100 rather than powers."""
    axes.set_yscale("log")
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
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
    figure.set_layout_engine("none")
    for axes in figure.get_axes():
        left, bottom, width, height = (round(edge, 4) for edge in axes.get_position().bounds)
        axes.set_position((left, bottom, width, height))
