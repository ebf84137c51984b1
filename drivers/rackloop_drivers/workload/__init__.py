"""Programs that make I/O and measure it."""

from rackloop_drivers.workload._fio import Fio, RunningFio
from rackloop_drivers.workload._fio_job import FioJob, FioRun, ReadWrite
from rackloop_drivers.workload._fio_result import Direction, FioJobResult, FioResult, FioTransfer
from rackloop_drivers.workload._fio_series import Sample

__all__ = [
    "Direction",
    "Fio",
    "FioJob",
    "FioJobResult",
    "FioResult",
    "FioRun",
    "FioTransfer",
    "ReadWrite",
    "RunningFio",
    "Sample",
]
