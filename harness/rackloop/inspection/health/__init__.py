"""The health of a rack before and after a test: the changes, their rules, and what the test itself disturbed.

Names of a drive's counters are those of the NVMe SMART / Health Information log (NVM Express Base Specification 2.0,
Figure 207) where it has the counter, else what ATA's SMART attributes are commonly called (smartmontools' drive
database). Counters of a SAS PHY have the names of Linux's SAS transport class.
"""

from rackloop.inspection.health._compare import CounterChange as CounterChange
from rackloop.inspection.health._compare import compare as compare
from rackloop.inspection.health._compare import health_changes as health_changes
from rackloop.inspection.health._disturbance import Disturbed as Disturbed
from rackloop.inspection.health._disturbance import disturbed as disturbed
from rackloop.inspection.health._rules import BOOT_ID as BOOT_ID
from rackloop.inspection.health._rules import COUNTERS as COUNTERS
from rackloop.inspection.health._rules import KERNEL_MESSAGES as KERNEL_MESSAGES
from rackloop.inspection.health._rules import MISSING as MISSING
from rackloop.inspection.health._rules import UNREACHABLE as UNREACHABLE
from rackloop.inspection.health._rules import Excuse as Excuse
from rackloop.inspection.health._rules import Rule as Rule
from rackloop.inspection.health._rules import broken_rule as broken_rule
from rackloop.inspection.health._rules import rule_names as rule_names
from rackloop.inspection.health._snapshot import HealthSnapshot as HealthSnapshot
from rackloop.inspection.health._snapshot import HostHealth as HostHealth
from rackloop.inspection.health._snapshot import KernelLine as KernelLine
from rackloop.inspection.health._snapshot import KernelPosition as KernelPosition
from rackloop.inspection.health._snapshot import ServerHealth as ServerHealth
from rackloop.inspection.health._snapshot import snapshot_of as snapshot_of
