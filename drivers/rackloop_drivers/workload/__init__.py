"""Programs that make I/O and measure it. Each name is imported when asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rackloop.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from rackloop_drivers.workload._fio import Fio as Fio
    from rackloop_drivers.workload._fio import RunningFio as RunningFio
    from rackloop_drivers.workload._fio_fleet import FioFleet as FioFleet
    from rackloop_drivers.workload._fio_fleet import FleetResult as FleetResult
    from rackloop_drivers.workload._fio_fleet import RunningFleet as RunningFleet
    from rackloop_drivers.workload._fio_job import FioJob as FioJob
    from rackloop_drivers.workload._fio_job import FioRun as FioRun
    from rackloop_drivers.workload._fio_job import ReadWrite as ReadWrite
    from rackloop_drivers.workload._fio_job import SteadyMetric as SteadyMetric
    from rackloop_drivers.workload._fio_job import UntilSteady as UntilSteady
    from rackloop_drivers.workload._fio_load import Arrivals as Arrivals
    from rackloop_drivers.workload._fio_load import BlockShare as BlockShare
    from rackloop_drivers.workload._fio_load import Bursts as Bursts
    from rackloop_drivers.workload._fio_load import block_mix_problems as block_mix_problems
    from rackloop_drivers.workload._fio_load import poisson_kept_iops as poisson_kept_iops
    from rackloop_drivers.workload._fio_load import poisson_problems as poisson_problems
    from rackloop_drivers.workload._fio_records import recording_fio as recording_fio
    from rackloop_drivers.workload._fio_result import Direction as Direction
    from rackloop_drivers.workload._fio_result import FioJobResult as FioJobResult
    from rackloop_drivers.workload._fio_result import FioResult as FioResult
    from rackloop_drivers.workload._fio_result import FioSteady as FioSteady
    from rackloop_drivers.workload._fio_result import FioTransfer as FioTransfer
    from rackloop_drivers.workload._fio_series import Sample as Sample
    from rackloop_drivers.workload._mountable import FILE_SYSTEM as FILE_SYSTEM
    from rackloop_drivers.workload._mountable import SECTOR_BEHIND as SECTOR_BEHIND
    from rackloop_drivers.workload._mountable import find_mkfs as find_mkfs
    from rackloop_drivers.workload._mountable import require_mountable as require_mountable
    from rackloop_drivers.workload._rackprobe import SECTOR_BYTES as SECTOR_BYTES
    from rackloop_drivers.workload._rackprobe import RackProbe as RackProbe
    from rackloop_drivers.workload._rackprobe_results import Expected as Expected
    from rackloop_drivers.workload._rackprobe_results import GaveUp as GaveUp
    from rackloop_drivers.workload._rackprobe_results import Offender as Offender
    from rackloop_drivers.workload._rackprobe_results import SwapRead as SwapRead
    from rackloop_drivers.workload._rackprobe_results import SwapResult as SwapResult
    from rackloop_drivers.workload._rackprobe_results import Unreadable as Unreadable
    from rackloop_drivers.workload._rackprobe_results import Verification as Verification
    from rackloop_drivers.workload._rackprobe_results import VerifiedRead as VerifiedRead
    from rackloop_drivers.workload._rackprobe_results import WatchInterval as WatchInterval
    from rackloop_drivers.workload._rackprobe_results import WatchResult as WatchResult
    from rackloop_drivers.workload._rackprobe_results import Written as Written
    from rackloop_drivers.workload._rackprobe_sessions import ProbeTarget as ProbeTarget
    from rackloop_drivers.workload._rackprobe_sessions import RemapSession as RemapSession
    from rackloop_drivers.workload._rackprobe_sessions import SwapSession as SwapSession
    from rackloop_drivers.workload._rackprobe_uevents import DeviceEvent as DeviceEvent
    from rackloop_drivers.workload._rackprobe_uevents import DeviceEvents as DeviceEvents
    from rackloop_drivers.workload._rackprobe_watch import Watch as Watch
    from rackloop_drivers.workload._replay import FioReplay as FioReplay
    from rackloop_drivers.workload._replay import ReplayResult as ReplayResult
    from rackloop_drivers.workload._replay import RunningReplay as RunningReplay
    from rackloop_drivers.workload._replay_requests import Planned as Planned
    from rackloop_drivers.workload._replay_requests import Stretch as Stretch
    from rackloop_drivers.workload._replay_requests import plan_requests as plan_requests
    from rackloop_drivers.workload._shown_clock import ShowsClock as ShowsClock

__getattr__ = lazy_getattr(__name__)
