"""Parts in maintenance or quarantine, and the verdict of a retest on a part that failed."""

from rackloop.safety.maintenance._out_of_service import OutOfService as OutOfService
from rackloop.safety.maintenance._out_of_service import OutOfServiceStore as OutOfServiceStore
from rackloop.safety.maintenance._out_of_service import State as State
from rackloop.safety.maintenance._retest import Diagnosis as Diagnosis
from rackloop.safety.maintenance._retest import Finding as Finding
from rackloop.safety.maintenance._retest import Seen as Seen
from rackloop.safety.maintenance._retest import Trial as Trial
from rackloop.safety.maintenance._retest import diagnose as diagnose
from rackloop.safety.maintenance._rule import QuarantineRule as QuarantineRule
