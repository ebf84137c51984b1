"""An oracle for data recovery: whether any storage system with an adapter gives all data back, and the right data."""

from rackloop.recovery._block_system import BlockSystem, StateSource
from rackloop.recovery._campaign import Campaign
from rackloop.recovery._content import Content, Found
from rackloop.recovery._eraser import Eraser
from rackloop.recovery._history import Flush, History, Write
from rackloop.recovery._oracle import Reading, RecoveryOracle, Refusal
from rackloop.recovery._patterns import Case, Coverage, Damage, Mix, Patterns
from rackloop.recovery._plan import CampaignPlan, Progress
from rackloop.recovery._result import Cell, Column, Matrix, Phase, RecoveryResult, Row
from rackloop.recovery._sectors import SECTOR_BYTES, Identity
from rackloop.recovery._system import (
    BlocksMissing,
    BlocksUnreadable,
    Forgets,
    Health,
    Place,
    Placed,
    RecoveryState,
    Repairs,
    SelfDescription,
    SilentCorruption,
    Stripe,
    SystemUnderTest,
)
from rackloop.recovery._verdicts import Judged, Observation, Outcome, judged

__all__ = [
    "SECTOR_BYTES",
    "BlockSystem",
    "BlocksMissing",
    "BlocksUnreadable",
    "Campaign",
    "CampaignPlan",
    "Case",
    "Cell",
    "Column",
    "Content",
    "Coverage",
    "Damage",
    "Eraser",
    "Flush",
    "Forgets",
    "Found",
    "Health",
    "History",
    "Identity",
    "Judged",
    "Matrix",
    "Mix",
    "Observation",
    "Outcome",
    "Patterns",
    "Phase",
    "Place",
    "Placed",
    "Progress",
    "Reading",
    "RecoveryOracle",
    "RecoveryResult",
    "RecoveryState",
    "Refusal",
    "Repairs",
    "Row",
    "SelfDescription",
    "SilentCorruption",
    "StateSource",
    "Stripe",
    "SystemUnderTest",
    "Write",
    "judged",
]
