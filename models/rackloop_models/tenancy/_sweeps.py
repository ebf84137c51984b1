"""Sweeps that look for the cause of a difference: readers beside writers by one parameter, the rest unchanged."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rackloop.clock import Deadline
from rackloop.errors import BadInput
from rackloop.lab import Profile
from rackloop_models.drives import DriveSim
from rackloop_models.tenancy._measure import Timing, measured
from rackloop_models.tenancy._scenarios import SCENARIOS, Scenario
from rackloop_models.tenancy._series import Points

MakeSim = Callable[[Profile], DriveSim]

SLOTS = (8, 16, 32, 64, 128)
_BUFFERS = (0.25, 0.5, 1.0, 2.0, 4.0)
_COUNT = 16
_BUFFER = "write_buffer_kib"


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
    scenario = next(one for one in SCENARIOS if (one.name, one.condition) == ("kinds-4k", "clean"))
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
        _sweep("write buffer, KiB", scenario, by_buffer),
        _sweep("virtual slots", scenario, by_slots),
    )


def _sweep(parameter: str, scenario: Scenario, found: Mapping[int, Mapping[str, float]]) -> Sweep:
    kinds = [kind.name for kind in scenario.kinds]
    lines = {kind: tuple((float(value), shares[kind]) for value, shares in found.items()) for kind in kinds}
    return Sweep(parameter, scenario, _COUNT, lines)


def _shares(
    sim: DriveSim, scenario: Scenario, parameters: Sequence[Mapping[str, Any]], timing: Timing, deadline: Deadline
) -> list[dict[str, float]]:
    """The mean f-Util of each kind, for each choice of Gimbal's parameters."""
    schedulers = {str(number): {"kind": "gimbal", **one} for number, one in enumerate(parameters)}
    outcomes = measured({0: sim}, (scenario,), (_COUNT,), schedulers, timing, deadline, lambda *_: None)
    return [{kind: figure.value for kind, figure in one.kinds.items()} for one in outcomes]
