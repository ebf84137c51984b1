"""Programs that make I/O and measure it. Each name is imported when asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rackloop.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from rackloop_drivers.workload._fio import Fio, RunningFio
    from rackloop_drivers.workload._fio_fleet import FioFleet, FleetResult, RunningFleet
    from rackloop_drivers.workload._fio_job import FioJob, FioRun, ReadWrite, SteadyMetric, UntilSteady
    from rackloop_drivers.workload._fio_result import Direction, FioJobResult, FioResult, FioSteady, FioTransfer
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
    from rackloop_drivers.workload._replay import FioReplay, ReplayResult, RunningReplay
    from rackloop_drivers.workload._replay_requests import Planned, Stretch, plan_requests

__all__ = [
    "SECTOR_BYTES",
    "Direction",
    "Expected",
    "Fio",
    "FioFleet",
    "FioJob",
    "FioJobResult",
    "FioReplay",
    "FioResult",
    "FioRun",
    "FioSteady",
    "FioTransfer",
    "FleetResult",
    "GaveUp",
    "Offender",
    "Planned",
    "ProbeTarget",
    "RackProbe",
    "ReadWrite",
    "RemapSession",
    "ReplayResult",
    "RunningFio",
    "RunningFleet",
    "RunningReplay",
    "Sample",
    "SteadyMetric",
    "Stretch",
    "SwapRead",
    "SwapResult",
    "SwapSession",
    "Unreadable",
    "UntilSteady",
    "Verification",
    "VerifiedRead",
    "Watch",
    "WatchInterval",
    "WatchResult",
    "Written",
    "plan_requests",
]

__getattr__ = lazy_getattr(__name__)
