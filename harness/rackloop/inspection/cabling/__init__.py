"""The cabling check: the view of every server against the description and the switch's map.

Nothing here asks the rack: inventories come from :mod:`rackloop.abilities.inventory`, the map from the switch.
"""

from rackloop.inspection.cabling._check import Disagreement as Disagreement
from rackloop.inspection.cabling._check import PortCheck as PortCheck
from rackloop.inspection.cabling._check import check_ports as check_ports
