"""Sweeps that look for the cause of a difference: readers beside writers by one parameter, the rest unchanged."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rackloop.clock import Deadline
from rackloop.errors import BadInput
from rackloop.lab import Profile
from rackloop_models.drives import PREPARATIONS, REST, Box, BoxResult, DriveSim, Hardware, Points, TenantLoad
from rackloop_models.tenancy._measure import STATES, Timing, measured
from rackloop_models.tenancy._scenarios import SCENARIOS, Scenario
from rackloop_models.tenancy._shares import shares_of

MakeSim = Callable[[Profile], DriveSim]

SLOTS = (8, 16, 32, 64, 128)
_BUFFERS = (0.25, 0.5, 1.0, 2.0, 4.0)
_COUNT = 16
_BUFFER = "write_buffer_kib"
_MIX = ("kinds-4k", "clean")


@dataclass(frozen=True)
class Sweep:
    """The mean f-Util of each kind of tenants by a parameter, of a scenario with so many tenants through Gimbal."""

    parameter: str
    scenario: Scenario
    count: int
    lines: Mapping[str, Points]


def sweeps(make: MakeSim, profile: Profile, timing: Timing, deadline: Deadline) -> tuple[Sweep, ...]:
    """Sixteen tenants of 4 KiB on a clean drive, by the drive's write buffer and by Gimbal's virtual slots.

    ``make`` gives the drives of a profile. Raises as DriveSim.run; a buffer that the drive model refuses is left out.
    """
    scenario = next(one for one in SCENARIOS if (one.name, one.condition) == _MIX)
    own_kib = int(profile.timing[_BUFFER])
    by_buffer = {}
    for factor in _BUFFERS:
        kib = int(own_kib * factor)
        try:
            by_buffer[kib] = _shares(make(profile.retimed({_BUFFER: kib})), scenario, [{}], timing, deadline)[0]
        except BadInput:
            if factor == 1.0:
                raise
    slots = [{"virtual_slots": number} for number in SLOTS]
    by_slots = dict(zip(SLOTS, _shares(make(profile), scenario, slots, timing, deadline), strict=True))
    return (
        _sweep("write buffer, MiB", scenario, {kib / 1024: shares for kib, shares in by_buffer.items()}),
        _sweep("virtual slots", scenario, {float(number): shares for number, shares in by_slots.items()}),
    )


def _sweep(parameter: str, scenario: Scenario, found: Mapping[float, Mapping[str, float]]) -> Sweep:
    kinds = [kind.name for kind in scenario.kinds]
    lines = {kind: tuple((value, shares[kind]) for value, shares in found.items()) for kind in kinds}
    return Sweep(parameter, scenario, _COUNT, lines)


def _shares(
    sim: DriveSim, scenario: Scenario, parameters: Sequence[Mapping[str, Any]], timing: Timing, deadline: Deadline
) -> list[dict[str, float]]:
    """The mean f-Util of each kind, for each choice of Gimbal's parameters."""
    schedulers = {str(number): {"kind": "gimbal", **one} for number, one in enumerate(parameters)}
    outcomes = measured({0: sim}, (scenario,), (_COUNT,), schedulers, timing, deadline, lambda *_: None)
    return [{kind: figure.value for kind, figure in one.kinds.items()} for one in outcomes]


@dataclass(frozen=True)
class BehindBox:
    """The mean f-Util of each kind of tenants by scheduler, of a scenario whose drive is behind cores and a link."""

    scenario: Scenario
    count: int
    shares: Mapping[str, Mapping[str, float]]


def behind_box(sim: DriveSim, hardware: Hardware, timing: Timing, deadline: Deadline) -> BehindBox:
    """The scenario of the sweeps with its drive behind a box's cores and link. Raises as DriveSim.run."""
    scenario = next(one for one in SCENARIOS if (one.name, one.condition) == _MIX)
    loads = scenario.tenants(_COUNT, sim.size_bytes)
    kinds = [scenario.kind_of(number).name for number in range(_COUNT)]
    alone = {
        kind: _box_rates(sim, hardware, [loads[kinds.index(kind)]], "none", timing, deadline)[0]
        for kind in dict.fromkeys(kinds)
    }
    found = {}
    for scheduler in ("none", "gimbal"):
        together = _box_rates(sim, hardware, loads, scheduler, timing, deadline)
        shares = shares_of(kinds, [[alone[kind] for kind in kinds]], [together], seed=0)
        found[scheduler] = {kind: figure.value for kind, figure in shares.kinds.items()}
    return BehindBox(scenario, _COUNT, found)


def _box_rates(
    sim: DriveSim,
    hardware: Hardware,
    loads: Sequence[TenantLoad],
    scheduler: str,
    timing: Timing,
    deadline: Deadline,
) -> list[float]:
    """The bandwidth of each tenant, on a clean drive that is as new."""
    act = Box(
        name=f"{len(loads)} tenants {scheduler} behind a box",
        hardware=hardware,
        tenants=tuple(loads),
        scheduler={"kind": scheduler},
        warm_up_s=timing.warm_up_s,
        seconds=timing.seconds,
    )
    found = sim.run([*PREPARATIONS[STATES["clean"]], REST, act], deadline)
    (result,) = (one for one in found if isinstance(one, BoxResult))
    return [tenant.total.bytes_per_s or 0.0 for tenant in result.tenants]
