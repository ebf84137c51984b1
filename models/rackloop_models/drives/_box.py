"""Box experiments of drivesim, key for key: tenants of several drives behind cores and a link."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from rackloop_models.drives._measured import Figures
from rackloop_models.drives._tenants import SchedulerState, TenantLoad, TenantResult

Serve = Literal["drives", "connections"]


@dataclass(frozen=True, kw_only=True)
class Cores:
    """Alike cores, each of which does one thing after the other; times are of one request.

    Requests go to them by their drive or by their tenant, in turns. Submission is from the command capsule to the
    drive, completion from the drive to the response; ``notice_us`` passes before either and occupies nothing.
    """

    count: int
    submission_us: float
    completion_us: float
    submission_us_per_kib: float = 0.0
    completion_us_per_kib: float = 0.0
    notice_us: float = 0.0
    serve: Serve = "drives"


@dataclass(frozen=True, kw_only=True)
class Link:
    """A link of ``mb_s`` (10^6 bytes a second) in each direction, with its capsules.

    Writes up to ``inline_kib`` come in the command capsule; the data of others is fetched.
    """

    mb_s: float
    propagation_us: float = 0.0
    command_bytes: int = 64
    completion_bytes: int = 16
    inline_kib: int = 0


@dataclass(frozen=True)
class Hardware:
    """The parts of a box besides its drives; without ``memory_mb_s`` the path to its memory takes no time."""

    cores: Cores
    link: Link
    memory_mb_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class Box:
    """Tenants that share the drives of a box, each drive through a ``scheduler`` of its own."""

    name: str
    hardware: Hardware
    tenants: tuple[TenantLoad, ...]
    seconds: float
    scheduler: Mapping[str, Any] = field(default_factory=lambda: {"kind": "none"}, hash=False)
    warm_up_s: float = 0.0
    interval_s: float | None = None
    histograms: bool = False
    kind: Literal["box"] = "box"


@dataclass(frozen=True)
class PhaseTimes:
    """Mean times of the phases of requests in ns; their sum is the mean latency."""

    command: float
    submission: float
    fetch: float
    scheduler: float
    drive: float
    completion: float
    data_return: float
    response: float

    @property
    def total(self) -> float:
        """The mean time of a request."""
        before = self.command + self.submission + self.fetch + self.scheduler
        return before + self.drive + self.completion + self.data_return + self.response


@dataclass(frozen=True, kw_only=True)
class BoxTenantResult(TenantResult):
    """A tenant's figures, and the phases of its reads and of its writes."""

    drive: int
    read_phases_ns: PhaseTimes | None
    write_phases_ns: PhaseTimes | None


@dataclass(frozen=True)
class BoxDriveResult:
    """The scheduler of a drive: its states at the ends of intervals, its ``snapshot`` at the end."""

    states: tuple[SchedulerState, ...] | None
    snapshot: dict[str, Any]


@dataclass(frozen=True)
class CoreUse:
    """The share of the measured time in which a core worked."""

    utilisation: float


@dataclass(frozen=True)
class PathUse:
    """The share of the measured time in which a path was busy, and the bytes it was given a second."""

    utilisation: float
    bytes_per_s: float


@dataclass(frozen=True)
class LinkUse:
    """The two directions of a link."""

    to_box: PathUse
    from_box: PathUse


@dataclass(frozen=True)
class BoxResult:
    """The figures of all tenants and of each over ``seconds`` of virtual time, and how busy the box was."""

    kind: Literal["box"]
    name: str
    scheduler: str
    start_s: float
    seconds: float
    total: Figures
    tenants: tuple[BoxTenantResult, ...]
    drives: tuple[BoxDriveResult, ...]
    cores: tuple[CoreUse, ...]
    link: LinkUse
    memory: PathUse | None

    def of(self, name: str) -> BoxTenantResult:
        """The figures of the tenant of that name; raises KeyError where there is none."""
        found = {one.name: one for one in self.tenants}
        return found[name]
