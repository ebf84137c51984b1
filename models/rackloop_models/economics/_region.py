"""The values of inputs at which the published saving comes out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from rackloop_models.economics._cost import saving
from rackloop_models.economics._inputs import Costs, Input

_STEPS = 200


@dataclass(frozen=True)
class Breakeven:
    """The ``values`` of one input, the others unchanged, at which the published saving comes out; none: nowhere.

    ``least`` and ``most`` are the smallest and the largest saving over the input's range.
    """

    name: str
    input: Input
    values: tuple[float, ...]
    least: float
    most: float


@dataclass(frozen=True)
class Region:
    """The saving over two inputs: ``saving[row][column]`` is that at ``y[row]`` and ``x[column]``."""

    x_name: str
    y_name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    saving: tuple[tuple[float, ...], ...]


def breakevens(costs: Costs) -> tuple[Breakeven, ...]:
    """The values of each input by itself, within its range, at which the published saving comes out."""
    return tuple(_breakeven(costs, name, one) for name, one in costs.inputs())


def _breakeven(costs: Costs, name: str, one: Input) -> Breakeven:
    def missing(value: float) -> float:
        return saving(costs.with_value(name, value)) - costs.published_saving_percent.value / 100

    grid = np.linspace(one.low, one.high, _STEPS + 1)
    found = [missing(float(value)) for value in grid]
    values = []
    for low, high, at_low, at_high in zip(grid, grid[1:], found, found[1:], strict=False):
        if at_low == 0:
            values.append(float(low))
        elif at_low * at_high < 0:
            value = float(brentq(missing, low, high))
            # Where a number of boxes or of purchases changes, the saving may leap over what was published.
            if abs(missing(value)) < 1e-6:
                values.append(value)
    if found[-1] == 0:
        values.append(float(grid[-1]))
    published = costs.published_saving_percent.value / 100
    return Breakeven(name, one, tuple(values), min(found) + published, max(found) + published)


def region(costs: Costs, x_name: str, y_name: str, *, steps: int = 60) -> Region:
    """The saving over the ranges of two inputs. Raises KeyError for a name that no input has."""
    inputs = dict(costs.inputs())
    x, y = (
        tuple(float(value) for value in np.linspace(inputs[name].low, inputs[name].high, steps + 1))
        for name in (x_name, y_name)
    )
    found = tuple(tuple(saving(costs.with_value(x_name, at_x).with_value(y_name, at_y)) for at_x in x) for at_y in y)
    return Region(x_name, y_name, x, y, found)
