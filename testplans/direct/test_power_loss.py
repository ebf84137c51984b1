"""Power that goes and comes back: of a server by what feeds it, of a drive by its slot; no drive has changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from rackloop.faults import FaultSpec
from rackloop.lab import Lab
from rackloop.parameters import size, whole
from rackloop_fixtures import AttachedDrives, Measure, Progress, Rack

PARAMETERS = {
    "times": whole(1, "how many times each server and each drive loses its power", most=10_000),
    "checked": size(
        1 << 20, "how much of each drive carries identified sectors", least=4096, most=1 << 40, multiple=4096
    ),
}
MEASURES = {
    "power.still_answers": "1",
    "power.still_seen": "1",
    "power.boot": "s",
    "power.return": "s",
    "power.wrong": "1",
}

pytestmark = pytest.mark.rackloop(
    purpose="cut the power of each server and of each slot that can be switched, and find every drive and byte again",
    requires=["host.links", "probe"],
    destructive=True,
    time_class="minutes",
)


def drives_erased(lab: Lab, _parameters: Mapping[str, Any]) -> list[str]:
    """Those that a server port has to itself: they carry identified sectors."""
    return [drive for drive in lab.places if lab.drives[drive].scratch]


def faults(lab: Lab, parameters: Mapping[str, Any]) -> list[str]:
    """The servers, then the drives whose slots can be switched."""
    slots = {drive: kind for drive, its in lab.drives.items() if its.scratch and (kind := _kind(lab, drive))}
    lost = [*(f"power_loss of {server}" for server in lab.servers), *(f"{kind} of {at}" for at, kind in slots.items())]
    return [f"{parameters['times']} {each}" for each in lost]


def estimate_s(lab: Lab, parameters: Mapping[str, Any]) -> float:
    """A server boots in a minute, a disk spins up in ten seconds; a simulated one is faster."""
    each_s = 4.0 if lab.kind == "mock" else 60.0
    return each_s * len(faults(lab, parameters)) * float(parameters["times"])


def _kind(lab: Lab, drive: str) -> str | None:
    """The fault that cuts a drive's power by its slot; None where a slot has no switch."""
    if lab.drives[drive].expander is not None:
        return "device_off"
    return "slot_power_loss" if lab.drives[drive].traits.protocol == "nvme" else None


def test_power_loss(rack: Rack, parameters: Mapping[str, Any], measure: Measure, progress: Progress) -> None:
    """Cut the power of each server, then of each slot."""
    drives = AttachedDrives(rack, int(parameters["checked"]))
    for drive in drives.servers:
        drives.identify(drive)
    servers = list(rack.lab.servers) * int(parameters["times"])
    for done, server in enumerate(servers):
        progress(done, len(servers), f"power_loss of {server}")
        with rack.faults.injected(FaultSpec("power_loss", server)):
            measure("power.still_answers", int(drives.answers(server)))
        measure("power.boot", drives.await_server(server))
    slots = [(drive, kind) for drive in drives.servers if (kind := _kind(rack.lab, drive)) is not None]
    slots *= int(parameters["times"])
    for done, (drive, kind) in enumerate(slots):
        progress(done, len(slots), f"{kind} of {drive}")
        with rack.faults.injected(FaultSpec(kind, drive)):
            measure("power.still_seen", int(drives.is_seen(drive)), fault=kind)
        measure("power.return", drives.await_return(drive), fault=kind)
    for drive in drives.servers:
        if (wrong := drives.wrong_sectors(drive)) is not None:
            measure("power.wrong", wrong)
