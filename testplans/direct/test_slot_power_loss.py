"""Power loss of drives, by their slots; the content of drives is unchanged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from rackloop.errors import NotSupported
from rackloop.lab import Lab
from rackloop.parameters import size, whole
from rackloop_fixtures import AttachedDrives, Measure, Progress, Rack
from rackloop_labs.lacking import refusal

PARAMETERS = {
    "times": whole(1, "power losses of each drive", most=10_000),
    "checked": size(1 << 20, "range of each drive with identified sectors", least=4096, most=1 << 40, multiple=4096),
}
MEASURES = {
    "power.still_seen": "1",
    "power.return": "s",
    "power.wrong": "1",
}
HEADLINES = ("power.return",)

pytestmark = pytest.mark.rackloop(
    purpose="cut the power of each slot that can be switched, and find every drive and byte again",
    requires=["host.links", "probe"],
    destructive=True,
    time_class="minutes",
)


def check(lab: Lab, _parameters: Mapping[str, Any]) -> None:
    """NotSupported where the power of no slot of a scratch drive can be switched, by the lab's description."""
    reasons = {kind: refusal(lab, f"fault.{kind}") for kind in sorted(set(_kinds(lab).values()))}
    if all(reasons.values()):
        why = "; ".join(filter(None, reasons.values())) or "none is of NVMe, or in an expander"
        raise NotSupported(f"no scratch drive of {lab.name} is in a slot whose power can be switched: {why}")


def drives_erased(lab: Lab, _parameters: Mapping[str, Any]) -> list[str]:
    """Those that a server port has to itself: they carry identified sectors."""
    return [drive for drive in lab.places if lab.drives[drive].scratch]


def faults(lab: Lab, parameters: Mapping[str, Any]) -> list[str]:
    """The drives whose slots can be switched."""
    return [f"{parameters['times']} {kind} of {drive}" for drive, kind in _kinds(lab).items()]


def estimate_s(lab: Lab, parameters: Mapping[str, Any]) -> float:
    """A disk spins up in ten seconds; a simulated one is faster."""
    each_s = 1.0 if lab.kind == "mock" else 15.0
    return each_s * len(faults(lab, parameters)) * float(parameters["times"])


def _kinds(lab: Lab) -> dict[str, str]:
    """The fault that cuts the power of each scratch drive whose slot may have a switch."""
    return {
        drive: kind
        for drive, described in lab.drives.items()
        if described.scratch and (kind := _kind(lab, drive)) is not None
    }


def _kind(lab: Lab, drive: str) -> str | None:
    """The fault that cuts a drive's power by its slot; None where a slot has no switch."""
    if lab.drives[drive].expander is not None:
        return "device_off"
    return "slot_power_loss" if lab.drives[drive].traits.protocol == "nvme" else None


def test_slot_power_loss(rack: Rack, parameters: Mapping[str, Any], measure: Measure, progress: Progress) -> None:
    """Cut the power of each slot."""
    drives = AttachedDrives(rack, int(parameters["checked"]))
    kinds = _kinds(rack.lab)
    slots = [(drive, kinds[drive]) for drive in drives.servers if drive in kinds]
    for drive in drives.servers:
        drives.identify(drive)
    for done, (drive, kind) in enumerate(slots):
        progress(done, len(slots), f"{kind} of {drive}")
        losses = [drives.lose(drive, kind) for _ in range(int(parameters["times"]))]
        measure("power.still_seen", [int(loss.was_seen) for loss in losses], drive=drive, fault=kind)
        returns = [loss.returned for loss in losses]
        took_s, errors_s = [one.took_s for one in returns], [one.error_s for one in returns]
        measure("power.return", took_s, errors=errors_s, drive=drive, fault=kind)
    for drive in drives.servers:
        if (wrong := drives.wrong_sectors(drive)) is not None:
            measure("power.wrong", wrong, drive=drive)
