"""Four designs for disaggregating a rack's storage: placement of drives, and the rules that must hold.

Everything here is told the time and does no I/O: the same controllers run in virtual time and on a rack.
"""

from rackloop_models.disaggregation._configuration import Configuration, Wipe, changes, with_servers
from rackloop_models.disaggregation._elastic import (
    Damping,
    ElasticController,
    Savings,
    balanced,
    savings,
    servers_needed,
    simulate,
)
from rackloop_models.disaggregation._failures import CapacityGone, FailureController, Heartbeats, Redistribution
from rackloop_models.disaggregation._history import (
    Active,
    Announced,
    Chosen,
    DriveFailed,
    Event,
    History,
    Io,
    Located,
    Mapped,
    Need,
    PowerCycled,
    Reconfiguring,
    ServerBack,
    ServerFailed,
    Stay,
    Unmapped,
    Wiped,
)
from rackloop_models.disaggregation._judging import Findings, Judgement, Rule, judged
from rackloop_models.disaggregation._load import Load, another_day, diurnal, of_requests, stretched
from rackloop_models.disaggregation._per_io import (
    POLICIES,
    AllBusy,
    Assignment,
    LeastRecentlyUsed,
    LeastWork,
    PerIoController,
    Policy,
    Slot,
)
from rackloop_models.disaggregation._placement import Move, Placement, dealt
from rackloop_models.disaggregation._rebuild import HDFS_WINDOW_S, Rebuild
from rackloop_models.disaggregation._rules_configuration import configuration_rules
from rackloop_models.disaggregation._rules_elastic import complete_rules, elastic_rules
from rackloop_models.disaggregation._rules_failure import failure_rules
from rackloop_models.disaggregation._services import InTransition, MappingService, NameService
from rackloop_models.disaggregation._shape import Place, Shape, complete, configuration, elastic, failure

__all__ = [
    "HDFS_WINDOW_S",
    "POLICIES",
    "Active",
    "AllBusy",
    "Announced",
    "Assignment",
    "CapacityGone",
    "Chosen",
    "Configuration",
    "Damping",
    "DriveFailed",
    "ElasticController",
    "Event",
    "FailureController",
    "Findings",
    "Heartbeats",
    "History",
    "InTransition",
    "Io",
    "Judgement",
    "LeastRecentlyUsed",
    "LeastWork",
    "Load",
    "Located",
    "Mapped",
    "MappingService",
    "Move",
    "NameService",
    "Need",
    "PerIoController",
    "Place",
    "Placement",
    "Policy",
    "PowerCycled",
    "Rebuild",
    "Reconfiguring",
    "Redistribution",
    "Rule",
    "Savings",
    "ServerBack",
    "ServerFailed",
    "Shape",
    "Slot",
    "Stay",
    "Unmapped",
    "Wipe",
    "Wiped",
    "another_day",
    "balanced",
    "changes",
    "complete",
    "complete_rules",
    "configuration",
    "configuration_rules",
    "dealt",
    "diurnal",
    "elastic",
    "elastic_rules",
    "failure",
    "failure_rules",
    "judged",
    "of_requests",
    "savings",
    "servers_needed",
    "simulate",
    "stretched",
    "with_servers",
]
