"""The cabling check: the view of every server against the description and the switch's map.

Nothing here asks the rack: inventories come from :mod:`rackloop.abilities.inventory`, the map from the switch.
"""

from rackloop.inspection.cabling._check import Disagreement, PortCheck, check_ports, disagreements

__all__ = ["Disagreement", "PortCheck", "check_ports", "disagreements"]
