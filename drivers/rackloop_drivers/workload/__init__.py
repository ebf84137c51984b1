"""Programs that make I/O and measure it."""

from rackloop_drivers.workload._fio import Fio, RunningFio
from rackloop_drivers.workload._fio_job import FioJob, FioRun, ReadWrite
from rackloop_drivers.workload._fio_result import Direction, FioJobResult, FioResult, FioTransfer
from rackloop_drivers.workload._fio_series import Sample
from rackloop_drivers.workload._rackprobe import SECTOR_BYTES, RackProbe
from rackloop_drivers.workload._rackprobe_results import (
    Expected,
    GaveUp,
    Offender,
    SwapRead,
    SwapResult,
    Unreadable,
    Verification,
    VerifiedRead,
    WatchInterval,
    WatchResult,
    Written,
)
from rackloop_drivers.workload._rackprobe_sessions import ProbeTarget, RemapSession, SwapSession, Watch

__all__ = [
    "SECTOR_BYTES",
    "Direction",
    "Expected",
    "Fio",
    "FioJob",
    "FioJobResult",
    "FioResult",
    "FioRun",
    "FioTransfer",
    "GaveUp",
    "Offender",
    "ProbeTarget",
    "RackProbe",
    "ReadWrite",
    "RemapSession",
    "RunningFio",
    "Sample",
    "SwapRead",
    "SwapResult",
    "SwapSession",
    "Unreadable",
    "Verification",
    "VerifiedRead",
    "Watch",
    "WatchInterval",
    "WatchResult",
    "Written",
]
