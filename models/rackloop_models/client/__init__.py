"""Key-value stores on a box of shared drives, through schedulers and with parts of the client switched off."""

from rackloop_models.client._cells import ABLATIONS as ABLATIONS
from rackloop_models.client._cells import SMARTNIC as SMARTNIC
from rackloop_models.client._cells import TREE as TREE
from rackloop_models.client._cells import Cell as Cell
from rackloop_models.client._cells import Setup as Setup
from rackloop_models.client._cells import cells as cells
from rackloop_models.client._claims import store_claims as store_claims
from rackloop_models.client._measure import StoreOutcome as StoreOutcome
from rackloop_models.client._measure import stores as stores
