"""The cost of storage boxes over years: purchase and operation apart, and where a published saving comes out."""

from rackloop_models.economics._cost import Cost as Cost
from rackloop_models.economics._cost import cost_of as cost_of
from rackloop_models.economics._cost import saving as saving
from rackloop_models.economics._input_file import WrittenCosts as WrittenCosts
from rackloop_models.economics._input_file import load_costs as load_costs
from rackloop_models.economics._inputs import Box as Box
from rackloop_models.economics._inputs import Conditions as Conditions
from rackloop_models.economics._inputs import Costs as Costs
from rackloop_models.economics._inputs import Input as Input
from rackloop_models.economics._region import Breakeven as Breakeven
from rackloop_models.economics._region import Region as Region
from rackloop_models.economics._region import breakevens as breakevens
from rackloop_models.economics._region import region as region
