"""Example: the subject of this file, in one sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from rackloop.lab import Lab
from rackloop.parameters import whole
from rackloop_fixtures import Measure, Progress, Rack

PARAMETERS = {"rounds": whole(10, "random maps to execute", most=1_000_000)}
MEASURES = {"example.reads": "1", "example.wrong": "1"}

pytestmark = pytest.mark.rackloop(
    purpose="complete the sentence: this test will ...",
    requires=["fabric.remap", "probe"],
    destructive=True,
    time_class="seconds",
)


def drives_erased(lab: Lab, _parameters: Mapping[str, Any]) -> list[str]:
    """The drives that are written, for the dry run and for the guard."""
    return [drive for server in lab.servers for drive in lab.drives_of(server)]


def estimate_s(_lab: Lab, parameters: Mapping[str, Any]) -> float:
    """The duration with these parameters."""
    return 1 + 0.2 * float(parameters["rounds"])


def test_example(rack: Rack, parameters: Mapping[str, Any], measure: Measure, progress: Progress) -> None:
    """Say what is done; a measurement says how it went, and a plan's limits judge it."""
    with rack.remapping(rack.lab.servers) as remapping:
        for done in range(1, parameters["rounds"] + 1):
            remapping.deal(rack.chance)
            remapping.check_all()
            progress(done, parameters["rounds"], "rounds")
    measure("example.reads", remapping.reads)
    measure("example.wrong", remapping.wrong)
