"""Recovery of all data, and of the right data: the recovery oracle on the stores of a rack."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest

from rackloop.lab import Lab
from rackloop.parameters import erasure_code, number, part, size, whole
from rackloop_fixtures import (
    DriveEraser,
    ErasureRack,
    Labels,
    Measure,
    Progress,
    Rack,
    SectorEraser,
    StorageParts,
    code_of,
    drive_places,
    reached_drive,
    require_recovery,
)
from rackloop_models.disaggregation import Shape
from rackloop_models.local_erasure import SECTOR_BYTES, Layout, LocalStore, format_drive
from rackloop_models.rack_erasure import RecoveryController, ServerLoss, StripeCode
from rackloop_models.under_test import LocalStoreUnderTest, StripedStoreUnderTest
from rackloop_oracles.recovery import CampaignPlan, Eraser, SystemUnderTest

# Of small codes every pattern is tried, as far as ``erasures`` goes; of long ones as many by chance.
PARAMETERS = {
    "drives": part([""], "drives that carry a store, each in turn; a hard disk of the lab where empty", of="drive"),
    "codes": erasure_code(["6+2", "246+9"], "user sectors and redundancy of each code of the local store"),
    "groups": whole(8, "codewords of its file", most=100_000),
    "k": whole(4, "data units of a stripe", most=254),
    "m": whole(2, "redundancy units of a stripe", most=254),
    "unit_bytes": size(16384, "a unit", least=4096, most=16 << 20, multiple=4096),
    "objects": whole(24, "objects in stripes, at most as many as fit", most=1_000_000),
    "spares": whole(2, "drives kept for those that fail", least=0, most=1000),
    "erasures": whole(60, "patterns of erased sectors that a code corrects", least=0, most=1_000_000),
    "drive_erasures": whole(12, "patterns of drives that stop answering", least=0, most=1_000_000),
    "beyond": whole(8, "patterns that no code corrects", least=0, most=1_000_000),
    "corruptions": whole(8, "patterns of sectors that are silently wrong", least=0, most=1_000_000),
    "together": whole(8, "stripes damaged at a time", most=100_000),
    "within_s": number(600, "deadline for the whole campaign", least=1, most=604_800, unit="s"),
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
    purpose="lose sectors and drives in every way, up to what the codes allow and beyond, and verify every byte",
    requires=["fabric.remap", "probe", "remap.announce", "blocks.harness", "fault.media_error", "fault.fail_stop"],
    destructive=True,
    time_class="minutes",
)


def drives_erased(lab: Lab, parameters: Mapping[str, Any]) -> list[str]:
    """The drive of the local store, and those of the stripes."""
    shape = _shape(lab, parameters)
    return sorted({*(place[0] for place in drive_places(lab, parameters)), *shape.drives, *shape.spares})


def faults(_lab: Lab, parameters: Mapping[str, Any]) -> list[str]:
    """The faults, with their approximate number."""
    erased = parameters["erasures"] + parameters["beyond"]
    return [
        f"{len(parameters['codes']) + 1} times {erased} patterns of sectors by media_error",
        f"{parameters['drive_erasures']} patterns of drives by fail_stop",
    ]


def check(_lab: Lab, parameters: Mapping[str, Any]) -> None:
    """Raise BadInput for codes that cannot be."""
    for code in parameters["codes"]:
        Layout(*code_of(code))
    StripeCode(parameters["k"], parameters["m"], parameters["unit_bytes"])


def estimate_local_s(lab: Lab, parameters: Mapping[str, Any]) -> float:
    """Every pattern is read and repaired, for each code on each drive."""
    stores = len(parameters["codes"]) * len(drive_places(lab, parameters))
    return 5 + 0.2 * stores * _patterns(parameters)


def estimate_stripes_s(_lab: Lab, parameters: Mapping[str, Any]) -> float:
    """Every pattern is read and repaired, on several servers side by side."""
    return 2 + 0.1 * _patterns(parameters)


def estimate_drives_s(_lab: Lab, parameters: Mapping[str, Any]) -> float:
    """A drive that stops answering is replaced, and what it had rebuilt."""
    return 5 + 2.1 * float(parameters["drive_erasures"])


def _patterns(parameters: Mapping[str, Any]) -> int:
    return int(parameters["erasures"] + parameters["beyond"] + parameters["corruptions"])


def _shape(lab: Lab, parameters: Mapping[str, Any]) -> Shape:
    return StorageParts.of(lab).failure(parameters["spares"])


def test_local(rack: Rack, labels: Labels, parameters: Mapping[str, Any], measure: Measure, progress: Progress) -> None:
    """Per drive and code: a file of some groups, the last of them shortened."""
    for place in drive_places(rack.lab, parameters):
        for code in parameters["codes"]:
            k, m = code_of(code)
            blocks = parameters["groups"] * k - k // 2
            size_bytes = (parameters["groups"] + 4) * (k + m) * SECTOR_BYTES + (16 << 20)
            with reached_drive(rack, labels, place, size_bytes) as reached:
                format_drive(reached, Layout(k, m), files=16)
                eraser = SectorEraser(rack, {place[0]: reached})
                with LocalStoreUnderTest(
                    partial(LocalStore, reached, rack.clock),
                    blocks=blocks,
                    name=f"local {code}",
                    drive=place[0],
                ) as system:
                    _judge(rack, system, eraser, parameters, measure, progress)


def test_stripes(
    rack: Rack, labels: Labels, parameters: Mapping[str, Any], measure: Measure, progress: Progress
) -> None:
    """Objects in stripes over the drives of several servers: units are lost."""
    with _striped(rack, labels, parameters).open() as storage:
        system = _stripes_of(storage, parameters)
        eraser = SectorEraser(rack, storage.regions)
        _judge(rack, system, eraser, parameters, measure, progress)


def test_drives(
    rack: Rack, labels: Labels, parameters: Mapping[str, Any], measure: Measure, progress: Progress
) -> None:
    """The same, and whole drives stop answering."""
    with _striped(rack, labels, parameters).open() as storage:
        system = _stripes_of(storage, parameters)
        fewer = {**parameters, "erasures": parameters["drive_erasures"], "beyond": 2}
        _judge(rack, system, DriveEraser(rack), fewer, measure, progress)


def _striped(rack: Rack, labels: Labels, parameters: Mapping[str, Any]) -> ErasureRack:
    controller = RecoveryController(_shape(rack.lab, parameters), ServerLoss.MOVE)
    code = StripeCode(parameters["k"], parameters["m"], parameters["unit_bytes"])
    return ErasureRack(rack, labels, controller, code)


def _stripes_of(storage: ErasureRack, parameters: Mapping[str, Any]) -> StripedStoreUnderTest:
    name = f"rack {parameters['k']}+{parameters['m']}"
    objects = min(parameters["objects"], storage.store.objects)
    return StripedStoreUnderTest(storage.store, storage.regions, blocks=objects, name=name)


def _judge(
    rack: Rack,
    system: SystemUnderTest,
    eraser: Eraser,
    parameters: Mapping[str, Any],
    measure: Measure,
    progress: Progress,
) -> None:
    plan = CampaignPlan(
        rack.seed,
        erasures=parameters["erasures"],
        beyond=parameters["beyond"],
        corruptions=parameters["corruptions"],
        together=parameters["together"],
    )

    require_recovery(rack, system, eraser, plan, parameters["within_s"], measure, progress)
