"""The health of a rack before and after a test: the changes, their rules, and what the test itself disturbed.

Names of a drive's counters are those of the NVMe SMART / Health Information log (NVM Express Base Specification 2.0,
Figure 207) where it has the counter, else what ATA's SMART attributes are commonly called (smartmontools' drive
database). Counters of a SAS PHY have the names of Linux's SAS transport class.
"""

from rackloop.inspection.health._compare import compare
from rackloop.inspection.health._counters import CounterChange, health_changes
from rackloop.inspection.health._disturbance import Disturbed, disturbed
from rackloop.inspection.health._rules import (
    BOOT_ID,
    COUNTERS,
    KERNEL_MESSAGES,
    MISSING,
    UNREACHABLE,
    Excuse,
    Rule,
    rule_names,
)
from rackloop.inspection.health._snapshot import (
    HealthSnapshot,
    HostHealth,
    KernelLine,
    KernelPosition,
    ServerHealth,
    snapshot_of,
)

__all__ = [
    "BOOT_ID",
    "COUNTERS",
    "KERNEL_MESSAGES",
    "MISSING",
    "UNREACHABLE",
    "CounterChange",
    "Disturbed",
    "Excuse",
    "HealthSnapshot",
    "HostHealth",
    "KernelLine",
    "KernelPosition",
    "Rule",
    "ServerHealth",
    "compare",
    "disturbed",
    "health_changes",
    "rule_names",
    "snapshot_of",
]
