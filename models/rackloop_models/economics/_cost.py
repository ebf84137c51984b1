"""The cost of a box over years.

Purchase, at the beginning and again whenever the lifetime is over; energy, W * 8760 h * PUE * price; rack space; and
maintenance as a share of the purchase. A cost of year t counts 1 / (1 + discount)^t. After Patterson, Costello, Grimm
and Loeffler, "Data center TCO; a comparison of high-density and low-density spaces", THERMES 2007, whose building and
cooling are in the price of a rack unit and in the PUE here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from rackloop_models.economics._inputs import Box, Conditions, Costs

HOURS_PER_YEAR = 8760.0


@dataclass(frozen=True)
class Cost:
    """A cost in USD by what it is for, and the number of boxes it is of."""

    boxes: int
    purchase_usd: float
    energy_usd: float
    space_usd: float
    maintenance_usd: float

    @property
    def operation_usd(self) -> float:
        """The cost of everything but the purchase."""
        return self.energy_usd + self.space_usd + self.maintenance_usd

    @property
    def total_usd(self) -> float:
        """The cost of purchase and operation."""
        return self.purchase_usd + self.operation_usd


def cost_of(box: Box, conditions: Conditions, years: float | None = None) -> Cost:
    """The cost of as many boxes as the needed IOPS take, over the conditions' years or others.

    A last year that is not whole counts as that part of a year. A box is bought again at the end of its lifetime, but
    not at the end of the years.
    """
    span = conditions.years.value if years is None else years
    rate = 1 + conditions.discount_percent.value / 100
    boxes = max(1, math.ceil(conditions.needed_iops.value / box.iops.value))
    lifetime = box.lifetime_years.value
    # 2.1 years are three times 0.7, though the quotient is a little more in floating point.
    lifetimes = math.ceil(round(span / lifetime, 9))
    purchases = sum(rate ** -(number * lifetime) for number in range(max(1, lifetimes)))
    operated = sum(min(1.0, span - year) * rate**-year for year in range(math.ceil(span)))
    kwh_per_year = box.watts.value / 1000 * HOURS_PER_YEAR * conditions.pue.value
    price = boxes * box.purchase_usd.value
    return Cost(
        boxes=boxes,
        purchase_usd=purchases * price,
        energy_usd=operated * boxes * kwh_per_year * conditions.energy_usd_per_kwh.value,
        space_usd=operated * boxes * box.rack_units.value * conditions.rack_unit_usd_per_year.value,
        maintenance_usd=operated * price * box.maintenance_percent_per_year.value / 100,
    )


def saving(costs: Costs) -> float:
    """The part of the baseline's total that the candidate saves: 0.44 for 44 %, below 0 where it costs more."""
    candidate, baseline = (cost_of(box, costs.conditions).total_usd for box in (costs.candidate, costs.baseline))
    return 1 - candidate / baseline
