"""Parts in maintenance or quarantine, and the verdict of a retest on a part that failed."""

from rackloop.safety.maintenance._out_of_service import OutOfService, OutOfServiceStore, State
from rackloop.safety.maintenance._retest import Diagnosis, Finding, Seen, Trial, diagnose
from rackloop.safety.maintenance._rule import QuarantineRule

__all__ = [
    "Diagnosis",
    "Finding",
    "OutOfService",
    "OutOfServiceStore",
    "QuarantineRule",
    "Seen",
    "State",
    "Trial",
    "diagnose",
]
