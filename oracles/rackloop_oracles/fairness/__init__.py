"""An oracle for fairness: what share of a box each of its tenants got, of what it could have had."""

from rackloop_oracles.fairness._agreement import TOLERANCE as TOLERANCE
from rackloop_oracles.fairness._agreement import Agreement as Agreement
from rackloop_oracles.fairness._agreement import Lateness as Lateness
from rackloop_oracles.fairness._agreement import RealRun as RealRun
from rackloop_oracles.fairness._agreement import agreement as agreement
from rackloop_oracles.fairness._bootstrap import LEAST_ROUNDS as LEAST_ROUNDS
from rackloop_oracles.fairness._bootstrap import RoundRatio as RoundRatio
from rackloop_oracles.fairness._bootstrap import Rounds as Rounds
from rackloop_oracles.fairness._box import TenantBox as TenantBox
from rackloop_oracles.fairness._box import TenantExport as TenantExport
from rackloop_oracles.fairness._measures import Measure as Measure
from rackloop_oracles.fairness._measures import f_util as f_util
from rackloop_oracles.fairness._measures import jain_index as jain_index
from rackloop_oracles.fairness._measures import min_max_share as min_max_share
from rackloop_oracles.fairness._measures import ratio as ratio
from rackloop_oracles.fairness._measures import standalone_maximum as standalone_maximum
from rackloop_oracles.fairness._measures import utilisation as utilisation
from rackloop_oracles.fairness._measures import within_objective as within_objective
from rackloop_oracles.fairness._reservation import USED_SHARE as USED_SHARE
from rackloop_oracles.fairness._shares import TenantShares as TenantShares
from rackloop_oracles.fairness._terms import Terms as Terms
from rackloop_oracles.fairness._terms import compared_shares as compared_shares
