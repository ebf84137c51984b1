"""Power loss of servers, by controller or outlet; the content of drives is unchanged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from rackloop.errors import NotSupported
from rackloop.faults import FaultSpec
from rackloop.lab import Lab
from rackloop.parameters import size, whole
from rackloop_fixtures import AttachedDrives, Measure, Progress, Rack

PARAMETERS = {
    "times": whole(1, "power losses of each server and each drive", most=10_000),
    "checked": size(1 << 20, "range of each drive with identified sectors", least=4096, most=1 << 40, multiple=4096),
}
MEASURES = {
    "power.still_answers": "1",
    "power.boot": "s",
    "power.wrong": "1",
}
HEADLINES = ("power.boot",)

pytestmark = pytest.mark.rackloop(
    purpose="cut the power of each server, and find every drive and byte again",
    requires=["host.links", "probe"],
    destructive=True,
    time_class="minutes",
)


def drives_erased(lab: Lab, _parameters: Mapping[str, Any]) -> list[str]:
    """Those that a server port has to itself: they carry identified sectors."""
    return [drive for drive in lab.places if lab.drives[drive].scratch]


def faults(lab: Lab, parameters: Mapping[str, Any]) -> list[str]:
    """Every server whose drives may all be taken away. Raises NotSupported where each has one that may not."""
    return [f"{parameters['times']} power_loss of {server}" for server in _may_lose_power(lab)]


def estimate_s(lab: Lab, parameters: Mapping[str, Any]) -> float:
    """A server boots in a minute; a simulated one is faster."""
    each_s = 1.2 if lab.kind == "mock" else 60.0
    return each_s * len(faults(lab, parameters)) * float(parameters["times"])


def _may_lose_power(lab: Lab) -> list[str]:
    kept = {
        server: [drive for drive in lab.drives_of(server) if not lab.drives[drive].scratch] for server in lab.servers
    }
    servers = [server for server, drives in kept.items() if not drives]
    if not servers:
        raise NotSupported(
            f"every server of {lab.name} has a drive that is not scratch: true, and no fault takes those away: "
            + ", ".join(drive for drives in kept.values() for drive in drives)
        )
    return servers


def test_power_loss(rack: Rack, parameters: Mapping[str, Any], measure: Measure, progress: Progress) -> None:
    """Cut the power of each server."""
    drives = AttachedDrives(rack, int(parameters["checked"]))
    if not drives.servers:
        raise NotSupported(f"no drive of {rack.lab.name} that a server is described to have is scratch: true")
    for drive in drives.servers:
        drives.identify(drive)
    times = range(int(parameters["times"]))
    servers = _may_lose_power(rack.lab)
    for done, server in enumerate(servers):
        progress(done, len(servers), f"power_loss of {server}")
        answers, boots = [], []
        for _ in times:
            with rack.faults.injected(FaultSpec("power_loss", server)):
                answers.append(int(drives.answers(server)))
            boots.append(drives.await_server(server))
        measure("power.still_answers", answers, server=server)
        took_s, errors_s = [one.took_s for one in boots], [one.error_s for one in boots]
        measure("power.boot", took_s, errors=errors_s, server=server)
    for drive in drives.servers:
        if (wrong := drives.wrong_sectors(drive)) is not None:
            measure("power.wrong", wrong, drive=drive)
