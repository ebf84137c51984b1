"""Plots of the cost of boxes over years, and of the inputs for which a saving comes out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from rackloop_reports.plots._style import BLACK, bar_look, blank, line_look, put_caption, styled

_LEVELS = 9


@dataclass(frozen=True)
class CostLines:
    """Costs in USD by the year: totals by the name of the box, and their parts at the end."""

    years: Sequence[float]
    totals: Mapping[str, Sequence[float]]
    parts: Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class SavingRegion:
    """Savings over two inputs, in percent; ``here`` is the place of the inputs as they are."""

    x_label: str
    y_label: str
    x: Sequence[float]
    y: Sequence[float]
    percent: Sequence[Sequence[float]]
    here: tuple[float, float]


@styled
def cost_sheet(lines: CostLines, regions: Sequence[SavingRegion], published_percent: float, caption: str) -> Figure:
    """Cost over the years, its parts at their end, and the saving over pairs of inputs, the published one marked."""
    rows = -(-(2 + len(regions)) // 2)
    figure = blank(11.0, 3.6 * rows + 1.2)
    drawn = list(figure.subplots(rows, 2, squeeze=False).flat)
    over_years, parts, *fields = drawn[: 2 + len(regions)]
    for unused in drawn[2 + len(regions) :]:
        unused.set_visible(False)
    for place, (name, totals) in enumerate(lines.totals.items()):
        over_years.plot(lines.years, [usd / 1e3 for usd in totals], **line_look(place), label=name)
    over_years.set(xlabel="Years", ylabel="Cost, 1000 USD", title="Purchase and operation", ylim=(0, None))
    over_years.legend(fontsize=8)
    kinds = list(dict.fromkeys(kind for costs in lines.parts.values() for kind in costs))
    bottoms = [0.0] * len(lines.parts)
    for place, kind in enumerate(kinds):
        heights = [costs.get(kind, 0.0) / 1e3 for costs in lines.parts.values()]
        parts.bar(range(len(heights)), heights, 0.6, bottom=bottoms, label=kind, **bar_look(place))
        bottoms = [low + height for low, height in zip(bottoms, heights, strict=True)]
    parts.set_xticks(range(len(lines.parts)), list(lines.parts))
    parts.grid(visible=False, axis="x")
    parts.set(title=f"After {lines.years[-1]:g} years", ylabel="Cost, 1000 USD")
    parts.set_ylim(0, max(bottoms) * 1.45)
    parts.legend(fontsize=8, loc="upper left")
    for axes, one in zip(fields, regions, strict=True):
        shades = axes.contourf(one.x, one.y, one.percent, levels=_LEVELS, cmap="cividis", alpha=0.75)
        figure.colorbar(shades, ax=axes, label="Saving, %", shrink=0.85)
        values = [value for row in one.percent for value in row]
        if min(values) < published_percent < max(values):
            line = axes.contour(one.x, one.y, one.percent, levels=[published_percent], colors=BLACK, linewidths=2)
            axes.clabel(line, fmt=f"{published_percent:g} %%")
        axes.plot(*one.here, marker="o", color="white", markeredgecolor=BLACK, ls="none")
        axes.annotate("as given", one.here, (6, -11), textcoords="offset points", fontsize=8, color="white")
        axes.grid(visible=False)
        axes.set(xlabel=one.x_label, ylabel=one.y_label, title="Saving of the total")
        axes.tick_params(labelsize=9)
    figure.suptitle("Cost of storage boxes (calculated)", x=0.012, ha="left", fontweight="bold")
    put_caption(figure, caption)
    return figure
