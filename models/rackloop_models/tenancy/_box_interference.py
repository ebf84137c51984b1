"""A victim and a neighbour on different drives of one box, which share nothing but its cores and its link."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from rackloop.clock import Deadline
from rackloop_models.drives import (
    NEIGHBOUR,
    VICTIM,
    Box,
    BoxProfile,
    BoxResult,
    DriveSim,
    Hardware,
    TenantLoad,
    bandwidth_of,
    on_prepared,
    random_load,
)
from rackloop_models.tenancy._measure import STATES

KIB = 1024
_SCHEDULERS = ("none", "gimbal")
_SLOW_LINK_MB_S = 25e3 / 8
_WARM_UP_S, _MEASURED_S = 0.1, 0.3


@dataclass(frozen=True)
class BoxInterference:
    """The victim's bytes a second alone and beside the neighbour, and how busy what they share was then.

    ``case`` is what the neighbour's load is bound by; ``core_use`` is that of the busiest core.
    """

    box: str
    case: str
    scheduler: str
    alone: float
    beside: float
    neighbour: float
    core_use: float
    link_use: float

    @property
    def loss(self) -> float:
        """The share of its bandwidth that the neighbour costs the victim."""
        return 1 - self.beside / self.alone


def box_interference(sim: DriveSim, box: BoxProfile, deadline: Deadline) -> tuple[BoxInterference, ...]:
    """The victim, 4 KiB random reads at depth 32, on the first drive of ``sim``, the neighbour on the second.

    In turn each drive has a core, both have one, and both have a core and share a link of 25 Gb/s. Each case is run
    without a scheduler and through Gimbal, which a box has one of for each drive, on drives that no other has used.
    Raises as DriveSim.run, and ProtocolError where a tenant did nothing.
    """
    victim = _reads(VICTIM, 0, 4 * KIB, 32)
    small, large = _reads(NEIGHBOUR, 1, 4 * KIB, 128), _reads(NEIGHBOUR, 1, 128 * KIB, 32)
    each = box.hardware(cores=2, serve="drives")
    slow = replace(each, link=replace(each.link, mb_s=_SLOW_LINK_MB_S))
    cases: Mapping[str, tuple[Hardware, TenantLoad]] = {
        "its drive": (each, small),
        "a core": (box.hardware(cores=1, serve="drives"), small),
        "the link": (slow, large),
    }
    acts = [
        _act(f"{case} {scheduler} {len(loads)}", hardware, loads, scheduler)
        for case, (hardware, neighbour) in cases.items()
        for scheduler in _SCHEDULERS
        for loads in ((victim,), (victim, neighbour))
    ]
    results = iter([one for one in on_prepared(sim, STATES["clean"], acts, deadline) if isinstance(one, BoxResult)])
    return tuple(
        _of(box.name, case, scheduler, next(results), next(results)) for case in cases for scheduler in _SCHEDULERS
    )


def _reads(name: str, drive: int, block_bytes: int, depth: int) -> TenantLoad:
    return random_load(name, block_bytes, depth, 100.0, drive=drive)


def _act(name: str, hardware: Hardware, loads: tuple[TenantLoad, ...], scheduler: str) -> Box:
    return Box(
        name=name,
        hardware=hardware,
        tenants=loads,
        scheduler={"kind": scheduler},
        warm_up_s=_WARM_UP_S,
        seconds=_MEASURED_S,
    )


def _of(box: str, case: str, scheduler: str, alone: BoxResult, beside: BoxResult) -> BoxInterference:
    return BoxInterference(
        box,
        case,
        scheduler,
        bandwidth_of(alone, VICTIM),
        bandwidth_of(beside, VICTIM),
        bandwidth_of(beside, NEIGHBOUR),
        max(core.utilisation for core in beside.cores),
        beside.link.from_box.utilisation,
    )
