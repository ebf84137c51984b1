"""The cabling check: what every server sees against what the description and the switch's map say it should.

Nothing here asks the rack: inventories come from :mod:`rackloop.abilities.inventory`, the map from the switch.
"""

from rackloop.inspection.cabling._check import Disagreement, PortCheck, check_ports, disagreements

__all__ = ["Disagreement", "PortCheck", "check_ports", "disagreements"]
