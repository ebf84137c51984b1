"""Hot plug of drives by commands: servers lose and find them again, and their content is unchanged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from rackloop.errors import NotSupported
from rackloop.lab import Lab
from rackloop.parameters import choice, size, whole
from rackloop_fixtures import AttachedDrives, Loss, Measure, Progress, Rack

_WAYS = ["hot_unplug", "link_disable"]
PARAMETERS = {
    "ways": choice(_WAYS, "how a drive goes, each in turn where its place allows it", among=_WAYS),
    "times": whole(1, "removals of each drive, in each way that its place allows", most=10_000),
    "checked": size(1 << 20, "range of each drive with identified sectors", least=4096, most=1 << 40, multiple=4096),
}
MEASURES = {"hotplug.still_seen": "1", "hotplug.return": "s", "hotplug.wrong": "1"}
HEADLINES = ("hotplug.return",)

pytestmark = pytest.mark.rackloop(
    purpose="have servers lose each drive and find it again, in every way its place allows, and read back its data",
    requires=["host.links", "probe"],
    destructive=True,
    time_class="minutes",
)


def check(lab: Lab, parameters: Mapping[str, Any]) -> None:
    """NotSupported where none of the ways is one of a scratch drive of the lab: no drive would be lost."""
    drives = [drive for drive, described in lab.drives.items() if described.scratch]
    if drives and not any(_kinds(lab, parameters, drive) for drive in drives):
        ways = ", ".join(parameters["ways"])
        raise NotSupported(f"{ways} is of NVMe drives, and no scratch drive of {lab.name} is one")


def drives_erased(lab: Lab, _parameters: Mapping[str, Any]) -> list[str]:
    """Those that a server port has to itself: they carry identified sectors."""
    return [drive for drive in lab.places if lab.drives[drive].scratch]


def faults(lab: Lab, parameters: Mapping[str, Any]) -> list[str]:
    """Every way of every drive that may be erased."""
    drives = [drive for drive, described in lab.drives.items() if described.scratch]
    return [f"{parameters['times']} {kind} of {drive}" for drive in drives for kind in _kinds(lab, parameters, drive)]


def estimate_s(lab: Lab, parameters: Mapping[str, Any]) -> float:
    """A few seconds for each."""
    each_s = 0.6 if lab.kind == "mock" else 3.0
    return each_s * len(faults(lab, parameters)) * float(parameters["times"])


def _kinds(lab: Lab, parameters: Mapping[str, Any], drive: str) -> list[str]:
    """The faults by which a drive goes and keeps its power; a link that is a PCIe port's is that of an NVMe drive."""
    is_nvme = lab.drives[drive].traits.protocol == "nvme"
    return [kind for kind in parameters["ways"] if is_nvme or kind != "link_disable"]


def test_hot_plug(rack: Rack, parameters: Mapping[str, Any], measure: Measure, progress: Progress) -> None:
    """Lose and find each drive in turn."""
    drives = AttachedDrives(rack, int(parameters["checked"]))
    if not drives.servers:
        raise NotSupported(f"no drive of {rack.lab.name} that a server is described to have is scratch: true")
    refused: list[str] = []
    for done, drive in enumerate(drives.servers):
        progress(done, len(drives.servers), drive)
        drives.identify(drive)
        for kind in _kinds(rack.lab, parameters, drive):
            losses: list[Loss] = []
            try:
                losses.extend(drives.lose(drive, kind) for _ in range(int(parameters["times"])))
            except NotSupported as error:
                # The other ways, and the other drives, are measured all the same.
                refused.append(f"{kind} of {drive}: {error}")
            # What was measured before a refusal is judged as well.
            if losses:
                measure("hotplug.still_seen", [int(loss.was_seen) for loss in losses], drive=drive, fault=kind)
                returns = [loss.returned for loss in losses]
                took_s, errors_s = [one.took_s for one in returns], [one.error_s for one in returns]
                measure("hotplug.return", took_s, errors=errors_s, drive=drive, fault=kind)
        if (wrong := drives.wrong_sectors(drive)) is not None:
            measure("hotplug.wrong", wrong, drive=drive)
    if refused:
        raise NotSupported("; ".join(refused))
