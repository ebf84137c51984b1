"""Files of inputs of the cost model, as they are written in YAML."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field

from rackloop.data import data_path
from rackloop.errors import BadInput
from rackloop.lab.yaml import Description, Name, Scalar, compose_file, examine, matching, text_of, wrong
from rackloop.names import kind_of
from rackloop.units import NUMBER
from rackloop_models.economics._inputs import Box, Conditions, Costs, Input

_LARGEST = 1e12


def _number(value: object, _info: object) -> float:
    text = text_of(value, "a number")
    if not NUMBER.fullmatch(text) or not 0 <= float(text) <= _LARGEST:
        raise wrong(f"expected a number of 0 or more, at most 1e12, found {kind_of(text)}")
    return float(text)


Number = Annotated[float, Scalar(_number, {"type": "number", "minimum": 0})]


class WrittenInput(Description):
    """A number with its source."""

    value: Number
    """The value."""
    low: Annotated[Number, Field(alias="from")]
    """The smallest value to look at."""
    high: Annotated[Number, Field(alias="to")]
    """The largest value to look at."""
    source: Annotated[str, matching(r"(?s)\S.{0,500}", "a sentence that says where the value is from, or 'assumed'")]
    """The publication or measurement of the value; begins with "assumed" where there is none."""


class WrittenBox(Description):
    """A storage box with its drives."""

    name: Name
    """Its name."""
    purchase_usd: WrittenInput
    """The price of one, with its drives."""
    watts: WrittenInput
    """The power it draws."""
    rack_units: WrittenInput
    """The space it takes."""
    lifetime_years: WrittenInput
    """The time after which it is bought again."""
    maintenance_percent_per_year: WrittenInput
    """Maintenance, of the purchase."""
    iops: WrittenInput
    """The load that one of it serves."""


class WrittenCosts(Description):
    """A box held against another."""

    years: WrittenInput
    """The span of time."""
    needed_iops: WrittenInput
    """The load that is to be served."""
    energy_usd_per_kwh: WrittenInput
    """The price of energy."""
    pue: WrittenInput
    """Power usage effectiveness: the energy of the building over that of the machines."""
    rack_unit_usd_per_year: WrittenInput
    """The price of space."""
    discount_percent: WrittenInput
    """The rate at which later costs are discounted, a year."""
    published_saving_percent: WrittenInput
    """The saving that was published."""
    candidate: WrittenBox
    """The box that is to save something."""
    baseline: WrittenBox
    """The box it is held against."""


# A division by them, or a count of years, has to be possible.
_ABOVE_ZERO = ("years", "needed_iops", "purchase_usd", "watts", "lifetime_years", "iops")
_LONGEST_YEARS = 1000.0


def load_costs(path: Path | None = None) -> Costs:
    """The inputs in a file; without one those that are shipped.

    Raises DescriptionError with its problems, BadInput where a value is outside of its own range or makes no sense.
    """
    file = path or data_path("labs") / "costs" / "smartnic-box.yaml"
    written = examine(compose_file(file), WrittenCosts).finish()
    costs = Costs(
        conditions=Conditions(**{name: _input(getattr(written, name)) for name in Conditions.__dataclass_fields__}),
        candidate=_box(written.candidate),
        baseline=_box(written.baseline),
        published_saving_percent=_input(written.published_saving_percent),
    )
    if costs.candidate.name == costs.baseline.name:
        raise BadInput(f"{file}: both boxes are called {costs.baseline.name}; rename one")
    for name, one in (*costs.inputs(), ("published_saving_percent", costs.published_saving_percent)):
        _check(file, name, one)
    return costs


def _box(written: WrittenBox) -> Box:
    names = [name for name in Box.__dataclass_fields__ if name != "name"]
    return Box(name=written.name, **{name: _input(getattr(written, name)) for name in names})


def _input(written: WrittenInput) -> Input:
    return Input(written.value, written.low, written.high, written.source)


def _check(file: Path, name: str, one: Input) -> None:
    if not one.low <= one.value <= one.high or one.low == one.high:
        raise BadInput(f"{file}: {name} is {one.value:g}, its range {one.low:g} to {one.high:g}; give one around it")
    last = name.rpartition(".")[2]
    if last in _ABOVE_ZERO and one.low <= 0:
        raise BadInput(f"{file}: {name} begins at {one.low:g}; give a range above 0")
    if last == "pue" and one.low < 1:
        raise BadInput(
            f"{file}: pue begins at {one.low:g}; a building takes no less than its machines, so give 1 or more"
        )
    if last in ("years", "lifetime_years") and (one.high > _LONGEST_YEARS or one.low < 0.1):
        raise BadInput(f"{file}: {name} is from {one.low:g} to {one.high:g}; give 0.1 to {_LONGEST_YEARS:g} years")
