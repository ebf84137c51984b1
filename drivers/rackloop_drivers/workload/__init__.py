"""Programs that make I/O and measure it. Each name is imported when asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rackloop.door import opening

if TYPE_CHECKING:
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

__getattr__ = opening(
    __name__,
    {
        "Direction": "_fio_result",
        "Expected": "_rackprobe_results",
        "Fio": "_fio",
        "FioJob": "_fio_job",
        "FioJobResult": "_fio_result",
        "FioResult": "_fio_result",
        "FioRun": "_fio_job",
        "FioTransfer": "_fio_result",
        "GaveUp": "_rackprobe_results",
        "Offender": "_rackprobe_results",
        "ProbeTarget": "_rackprobe_sessions",
        "RackProbe": "_rackprobe",
        "ReadWrite": "_fio_job",
        "RemapSession": "_rackprobe_sessions",
        "RunningFio": "_fio",
        "SECTOR_BYTES": "_rackprobe",
        "Sample": "_fio_series",
        "SwapRead": "_rackprobe_results",
        "SwapResult": "_rackprobe_results",
        "SwapSession": "_rackprobe_sessions",
        "Unreadable": "_rackprobe_results",
        "Verification": "_rackprobe_results",
        "VerifiedRead": "_rackprobe_results",
        "Watch": "_rackprobe_sessions",
        "WatchInterval": "_rackprobe_results",
        "WatchResult": "_rackprobe_results",
        "Written": "_rackprobe_results",
    },
)
