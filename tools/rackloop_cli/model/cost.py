"""`rackloop model cost`: two storage boxes over years, and where a published saving comes out."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from rackloop.errors import EXIT_PASS
from rackloop_cli.shared.output import make_directory, say, write_results
from rackloop_cli.shared.tables import print_whole, table_of_figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from rackloop_models.economics import Breakeven, Costs

_REGIONS = (("energy_usd_per_kwh", "pue"), ("energy_usd_per_kwh", "baseline.purchase_usd"))
_LABELS = {
    "energy_usd_per_kwh": "Energy, USD/kWh",
    "pue": "PUE",
    "baseline.purchase_usd": "Purchase of the baseline, USD",
}


def cost(*, inputs: Path | None, out: Path | None, as_json: bool) -> int:
    """Compute the costs, print the tables, and write the files and the plot."""
    from rackloop_models.economics import breakevens, load_costs, saving

    costs = load_costs(inputs)
    make_directory(out)
    found, saved = breakevens(costs), saving(costs)
    if not as_json:
        _print(costs, found, saved)
    settings = {
        "inputs": {name: {"value": one.value, "source": one.source} for name, one in costs.inputs()},
        "saving_percent": saved * 100,
        "published_saving_percent": costs.published_saving_percent.value,
        "purchase_saving_percent": _purchase_saving(costs) * 100,
        "comes_out_at": [
            {
                "input": one.name,
                "is_assumed": one.input.is_assumed,
                "given": one.input.value,
                "from": one.input.low,
                "to": one.input.high,
                "values": one.values,
                "least_percent": one.least * 100,
                "most_percent": one.most * 100,
            }
            for one in found
        ],
    }
    write_results(out, "cost", settings, _rows(costs), lambda: _figure(costs, saved), as_json=as_json)
    return EXIT_PASS


def _years(costs: Costs) -> list[float]:
    span = costs.conditions.years.value
    return [*(float(year) for year in range(1, math.ceil(span))), span]


def _rows(costs: Costs) -> list[dict[str, Any]]:
    """A row for each box and year, of the costs up to its end."""
    from rackloop_models.economics import cost_of

    rows = []
    for box in (costs.candidate, costs.baseline):
        for years in _years(costs):
            one = cost_of(box, costs.conditions, years)
            rows.append(
                {
                    "box": box.name,
                    "years": years,
                    "boxes": one.boxes,
                    "purchase_usd": one.purchase_usd,
                    "energy_usd": one.energy_usd,
                    "space_usd": one.space_usd,
                    "maintenance_usd": one.maintenance_usd,
                    "operation_usd": one.operation_usd,
                    "total_usd": one.total_usd,
                }
            )
    return rows


def _purchase_saving(costs: Costs) -> float:
    from rackloop_models.economics import cost_of

    candidate, baseline = (cost_of(box, costs.conditions).purchase_usd for box in (costs.candidate, costs.baseline))
    return 1 - candidate / baseline


def _print(costs: Costs, found: tuple[Breakeven, ...], saved: float) -> None:
    from rackloop_models.economics import cost_of

    console = Console()
    span, published = costs.conditions.years.value, costs.published_saving_percent.value
    columns = ("box", "number", "purchase", "energy", "space", "maintenance", "operation", "total")
    table = table_of_figures(*columns, left={"box"}, title=f"USD over {span:g} years (calculated)")
    for box in (costs.candidate, costs.baseline):
        one = cost_of(box, costs.conditions)
        parts = (
            one.purchase_usd,
            one.energy_usd,
            one.space_usd,
            one.maintenance_usd,
            one.operation_usd,
            one.total_usd,
        )
        table.add_row(box.name, str(one.boxes), *(f"{usd:,.0f}" for usd in parts))
    print_whole(console, table)
    say(
        f"{costs.candidate.name} saves {saved:.1%} of the total of {costs.baseline.name}, and "
        f"{_purchase_saving(costs):.1%} of its purchase; published: {published:g} % of the total"
    )
    table = table_of_figures(
        "input", "given", "", "range", f"{published:g} % at", "saving over the range", left={"input", ""}
    )
    for each in found:
        at = ", ".join(f"{value:.4g}" for value in each.values) or "nowhere"
        source = "assumed" if each.input.is_assumed else "published"
        looked_at = f"{each.input.low:g} to {each.input.high:g}"
        table.add_row(each.name, f"{each.input.value:g}", source, looked_at, at, f"{each.least:.1%} to {each.most:.1%}")
    print_whole(console, table)


def _figure(costs: Costs, saved: float) -> Figure:
    from rackloop_models.economics import cost_of, region
    from rackloop_reports.plots import CostLines, SavingRegion, cost_sheet

    years = _years(costs)
    boxes = (costs.candidate, costs.baseline)
    ends = {box.name: cost_of(box, costs.conditions) for box in boxes}
    lines = CostLines(
        years,
        {box.name: [cost_of(box, costs.conditions, year).total_usd for year in years] for box in boxes},
        {
            name: {
                "purchase": end.purchase_usd,
                "energy": end.energy_usd,
                "space": end.space_usd,
                "maintenance": end.maintenance_usd,
            }
            for name, end in ends.items()
        },
    )
    given = dict(costs.inputs())
    regions = []
    for x_name, y_name in _REGIONS:
        one = region(costs, x_name, y_name)
        percent = [[100 * value for value in row] for row in one.saving]
        here = (given[x_name].value, given[y_name].value)
        regions.append(SavingRegion(_LABELS[x_name], _LABELS[y_name], one.x, one.y, percent, here))
    published = costs.published_saving_percent
    assumed = [name for name, one in given.items() if one.is_assumed]
    caption = (
        f"With the inputs as given {costs.candidate.name} saves {saved:.1%}. The line is the published "
        f"{published.value:g} %: {published.source}. Assumed: {', '.join(assumed)}."
    )
    return cost_sheet(lines, regions, published.value, caption)
