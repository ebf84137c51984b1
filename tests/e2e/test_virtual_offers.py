"""Plans on racks of guests, before there is one: nothing is blocked, and the drive that has to stay is left alone."""

from __future__ import annotations

import json

import pytest

from tests.e2e.command_line import CommandLine

# The tests that the description rules out, as docs/how-to/virtual-rack.md has them; the others are run.
SKIPPED = {
    ("smoke", "virtual"): {"fabric/switched_throughput::switched_throughput"},
    ("disaggregation", "virtual"): {"disaggregation/configuration::configuration"},
    ("erasure", "virtual"): {"erasure/tail_latency::tail_latency"},
    ("storm", "virtual"): set[str](),
    ("direct-attached", "virtual-direct"): {"direct/phy_reset::phy_reset", "direct/slot_power_loss::slot_power_loss"},
}
# d06 at srv3.p1 of the lab virtual is not scratch.
KEPT, ITS_SERVER = "d06", "srv3"


@pytest.mark.parametrize(("plan", "lab"), SKIPPED, ids=lambda word: word)
def test_what_a_plan_does_on_guests_is_known_beforehand(rackloop: CommandLine, plan: str, lab: str) -> None:
    ended = rackloop("run", plan, "--lab", lab, "--dry-run", "--json")
    assert ended.status == 0, ended
    tests = json.loads(ended.out)["tests"]
    assert {test["test"]: test["blocked"] for test in tests if test["blocked"]} == {}
    assert {test["test"] for test in tests if test["skipped"]} == SKIPPED[plan, lab]
    for test in tests:
        assert KEPT not in test["erases"]
        assert not [fault for fault in test["faults"] if "power_loss" in fault and ITS_SERVER in fault], test
