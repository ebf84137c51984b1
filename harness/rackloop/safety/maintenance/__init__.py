"""The upkeep of a bench: what is in maintenance or quarantine, and a retest's verdict on what failed."""

from rackloop.safety.maintenance._gear import Gear, GearKind, gear_behind, gear_named, lab_without
from rackloop.safety.maintenance._retest import Diagnosis, Finding, Seen, Trial, diagnose
from rackloop.safety.maintenance._rule import GearFailure, QuarantineRule
from rackloop.safety.maintenance._upkeep import OutOfService, State, Upkeep

__all__ = [
    "Diagnosis",
    "Finding",
    "Gear",
    "GearFailure",
    "GearKind",
    "OutOfService",
    "QuarantineRule",
    "Seen",
    "State",
    "Trial",
    "Upkeep",
    "diagnose",
    "gear_behind",
    "gear_named",
    "lab_without",
]
