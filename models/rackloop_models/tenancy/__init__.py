"""Tenants that share a simulated drive through five schedulers: the papers' figures in virtual time."""

from rackloop_models.tenancy._claims import Claim as Claim
from rackloop_models.tenancy._claims import claims as claims
from rackloop_models.tenancy._measure import STATES as STATES
from rackloop_models.tenancy._measure import Outcome as Outcome
from rackloop_models.tenancy._measure import TenantOutcome as TenantOutcome
from rackloop_models.tenancy._measure import Timing as Timing
from rackloop_models.tenancy._measure import measured as measured
from rackloop_models.tenancy._scenario_file import load_scenarios as load_scenarios
from rackloop_models.tenancy._scenarios import CONDITIONS as CONDITIONS
from rackloop_models.tenancy._scenarios import SCENARIOS as SCENARIOS
from rackloop_models.tenancy._scenarios import Condition as Condition
from rackloop_models.tenancy._scenarios import Scenario as Scenario
from rackloop_models.tenancy._scenarios import TenantKind as TenantKind
from rackloop_models.tenancy._series import DEPTHS as DEPTHS
from rackloop_models.tenancy._series import Interference as Interference
from rackloop_models.tenancy._series import TimeLine as TimeLine
from rackloop_models.tenancy._series import interference as interference
from rackloop_models.tenancy._series import time_line as time_line
