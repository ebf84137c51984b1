"""A box under load: IOPS by cores, the tail by load, what it adds to a request, and its bandwidth."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rackloop.clock import Deadline
from rackloop_models.drives import Depth, DriveSim, Hardware, Rate, iops, mean_latency_s
from rackloop_models.remote_flash._hardware import CoreKind
from rackloop_models.remote_flash._runs import BoxLoad, quantile_s, run_loads

CLIENTS = 16
_DEPTH = 96
_LARGE_BYTES = 128 << 10
_LOADS = (0.1, 0.25, 0.4, 0.55, 0.7, 0.8, 0.9, 0.95)


@dataclass(frozen=True)
class Scaled:
    """A box with some ``cores``: its IOPS, and how busy its busiest core and its link were, 1 being always."""

    kind: CoreKind
    cores: int
    iops: float
    core_use: float
    link_use: float

    @property
    def bound(self) -> str:
        """The part that holds it back: the cores, the link, or else the drives."""
        if self.core_use > 0.97:
            return "cores"
        return "link" if self.link_use > 0.97 else "drives"


@dataclass(frozen=True)
class Loaded:
    """A load that was offered to a box, and what came of it."""

    offered_iops: float
    iops: float
    p95_s: float


def scaling(sim: DriveSim, kind: CoreKind, drives: int, deadline: Deadline) -> tuple[Scaled, ...]:
    """4 KiB random reads in closed loops, for each number of cores. Raises as DriveSim.run."""
    counts = range(1, kind.most_cores + 1)
    loads = [_saturating(kind.hardware(cores), drives) for cores in counts]
    found = []
    for cores, result in zip(counts, run_loads(sim, loads, deadline), strict=True):
        use = max(core.utilisation for core in result.cores)
        found.append(Scaled(kind, cores, iops(result), use, result.link.from_box.utilisation))
    return tuple(found)


def large_reads_bytes_per_s(sim: DriveSim, hardware: Hardware, drives: int, deadline: Deadline) -> float:
    """The bandwidth of 128 KiB random reads of all drives together. Raises as DriveSim.run."""
    load = replace(_saturating(hardware, drives), block_bytes=_LARGE_BYTES, arrivals=Depth(16))
    (result,) = run_loads(sim, [load], deadline)
    return iops(result) * _LARGE_BYTES


def added_s(sim: DriveSim, kind: CoreKind, drives: int, deadline: Deadline) -> float:
    """The mean time that the box adds to single 4 KiB reads beside the drive's own. Raises as DriveSim.run."""
    one = BoxLoad(hardware=kind.hardware(1), drives=drives, clients=1, arrivals=Depth(1))
    (result,) = run_loads(sim, [one], deadline)
    phases = result.tenants[0].read_phases_ns
    own_s = 0.0 if phases is None else phases.drive / 1e9
    return mean_latency_s(result) - own_s


def load_sweep(
    sim: DriveSim, kind: CoreKind, cores: int, drives: int, offered: tuple[float, ...], deadline: Deadline
) -> tuple[Loaded, ...]:
    """The 95th percentile of 4 KiB random reads in open loops, by the IOPS offered. Raises as DriveSim.run."""
    loads = [
        BoxLoad(
            hardware=kind.hardware(cores), drives=drives, clients=CLIENTS, arrivals=Rate(rate / CLIENTS), seconds=0.1
        )
        for rate in offered
    ]
    results = run_loads(sim, loads, deadline)
    return tuple(
        Loaded(rate, iops(result), quantile_s(result, 0.95)) for rate, result in zip(offered, results, strict=True)
    )


def offered_up_to(most_iops: float) -> tuple[float, ...]:
    """Loads from a tenth of the most that a box serves to nearly all of it."""
    return tuple(share * most_iops for share in _LOADS)


def _saturating(hardware: Hardware, drives: int) -> BoxLoad:
    return BoxLoad(hardware=hardware, drives=drives, clients=CLIENTS, arrivals=Depth(_DEPTH))
