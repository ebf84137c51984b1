"""Recovery by a kernel's own RAID (Linux md): the recovery oracle on an array of a server's drives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from rackloop.lab import Lab
from rackloop.parameters import choice, number, size, whole
from rackloop_fixtures import (
    ArrayEraser,
    ArrayShape,
    Labels,
    Measure,
    Progress,
    Rack,
    ServerArray,
    require_recovery,
)
from rackloop_labs.lacking import require
from rackloop_models.under_test import MdSystem
from rackloop_oracles.recovery import CampaignPlan

PARAMETERS = {
    "k": whole(2, "data units of a stripe", least=2, most=14),
    "m": whole(2, "parity units of a stripe: 1 is RAID 5, 2 is RAID 6", most=2),
    "spares": whole(2, "drives kept for those that fail, as far as the server can have them", least=0, most=14),
    "chunk_bytes": size(16384, "a unit", least=4096, most=1 << 20, multiple=4096),
    "member_bytes": size(16 << 20, "what the array takes of each drive", least=6 << 20, most=1 << 40, multiple=1 << 20),
    "stripes": whole(24, "stripes of the array that are used", most=1_000_000),
    "failing": choice(
        "fail_stop", "a drive answers no more, or the kernel is told that it failed", among=["fail_stop", "told"]
    ),
    "erasures": whole(10, "patterns of up to m drives that fail", most=1_000_000),
    "beyond": whole(2, "patterns of one drive more", least=0, most=1_000_000),
    "rebuild_kib_per_s": whole(4096, "the speed at which it is rebuilt at most", most=1 << 20),
    "within_s": number(1800, "deadline for the whole campaign", least=1, most=604_800, unit="s"),
}
MEASURES = {
    "recovery.tried": "1",
    "recovery.right": "1",
    "recovery.degraded_right": "1",
    "recovery.loud": "1",
    "recovery.wrong": "1",
    "recovery.unknown": "1",
    "recovery.covered": "1",
    "recovery.not_covered": "1",
    "recovery.corruption_found": "1",
}

pytestmark = pytest.mark.rackloop(
    purpose="have drives of a kernel's RAID fail in every way it promises to survive, and more, and verify every byte",
    requires=["host.raid", "blocks.harness"],
    destructive=True,
    time_class="minutes",
)


def drives_erased(lab: Lab, parameters: Mapping[str, Any]) -> list[str]:
    """The drives of the array, and its spares."""
    return sorted(_shape(parameters).places(lab, parameters["spares"]))


def faults(_lab: Lab, parameters: Mapping[str, Any]) -> list[str]:
    """The faults, with their approximate number."""
    how = "by fail_stop" if parameters["failing"] == "fail_stop" else "as the kernel is told"
    return [f"{parameters['erasures'] + parameters['beyond']} patterns of drives, {how}"]


def check(lab: Lab, parameters: Mapping[str, Any]) -> None:
    """NotSupported where nothing makes drives of the lab fail in that way."""
    if parameters["failing"] == "fail_stop":
        require(lab, "fault.fail_stop")


def estimate_s(lab: Lab, parameters: Mapping[str, Any]) -> float:
    """The array is made, and with each pattern rebuilt twice: by its spares, and with the drives that come back."""
    written_s = parameters["member_bytes"] / (parameters["rebuild_kib_per_s"] << 10)
    patterns = parameters["erasures"] + parameters["beyond"]
    return float(lab.time_s("act") + patterns * 2 * written_s)


def test_software_raid(
    rack: Rack, labels: Labels, parameters: Mapping[str, Any], measure: Measure, progress: Progress
) -> None:
    """Have drives fail, and read what is there without them, while it is rebuilt, and when they are back."""
    shape = _shape(parameters)
    plan = CampaignPlan(rack.seed, erasures=parameters["erasures"], beyond=parameters["beyond"], corruptions=0)

    with ServerArray(rack, labels, shape.places(rack.lab, parameters["spares"]), shape).made() as array:
        system = MdSystem(
            array,
            array.control,
            rack.clock,
            rebuild_s=parameters["within_s"],
            rebuild_kib_per_s=parameters["rebuild_kib_per_s"],
            size_bytes=min(array.size_bytes, parameters["stripes"] * shape.k * shape.chunk_bytes),
            drives=array.drives,
        )
        eraser = ArrayEraser(rack, array, is_told=parameters["failing"] == "told")
        require_recovery(rack, system, eraser, plan, parameters["within_s"], measure, progress)


def _shape(parameters: Mapping[str, Any]) -> ArrayShape:
    return ArrayShape(parameters["k"], parameters["m"], parameters["chunk_bytes"], parameters["member_bytes"])
