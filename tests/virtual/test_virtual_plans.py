"""Shipped plans on guests, to their end: the verdict of each test, and what the record says of it.

How long anything took is judged by the limits of the plans alone.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from rackloop.lab import load_lab
from rackloop.measurement import Verdict
from tests.e2e.command_line import CommandLine, Results
from tests.meta.tree import ROOT
from tests.virtual.guests import baseline_comes

pytestmark = pytest.mark.nightly

IDENTITY = ROOT / "testplans" / "fabric" / "test_identity.py"
PASS, SKIP = Verdict.PASS, Verdict.SKIPPED
# As docs/how-to/virtual-rack.md has them: what a rack of guests does not have is skipped, and nothing else is.
VERDICTS = {
    "smoke": {
        "provisioning": PASS,
        "fabric/remap_latency::remap_latency": PASS,
        "fabric/switched_throughput::switched_throughput": SKIP,
        "fabric/undisturbed_io::undisturbed_io": PASS,
        "fabric/phy_drop::phy_drop": PASS,
        "fabric/identity::identity": PASS,
        "workload/trace_replay::trace_replay": PASS,
        "disaggregation/failure::failure": PASS,
    },
    "disaggregation": {
        "disaggregation/complete::complete": PASS,
        "disaggregation/elastic::elastic": PASS,
        "disaggregation/failure::failure": PASS,
        "disaggregation/configuration::configuration": SKIP,
    },
    "erasure": {
        "erasure/codec::codec": PASS,
        "erasure/recovery::local": PASS,
        "erasure/recovery::stripes": PASS,
        "erasure/recovery::drives": PASS,
        "erasure/software_raid::software_raid": PASS,
        "erasure/update::update": PASS,
        "erasure/rebuild::server_loss": PASS,
        "erasure/rebuild::throttle": PASS,
        "erasure/tail_latency::tail_latency": SKIP,
    },
    "storm": {"faults/storm::storm": PASS},
    "direct-attached": {
        "direct/hot_plug::hot_plug": PASS,
        "direct/phy_reset::phy_reset": SKIP,
        "direct/power_loss::power_loss": PASS,
        "direct/slot_power_loss::slot_power_loss": SKIP,
    },
}


def verdicts(rackloop: CommandLine, plan: str | Path, lab: str, out: Path, *words: str) -> dict[str, str]:
    """The verdict of each test of a plan, run to its end."""
    ended = rackloop("run", plan, "--lab", lab, "--seed", "7", "--out", out, *words)
    assert ended.status == 0, ended
    return {name: test["verdict"] for name, test in Results(out).tests().items()}


def questions_for_packages(out: Path) -> Counter[str]:
    """How often the playbook asked each server which packages it has: seconds each time, in software."""
    ran = Results(out).of_kind("task.ran")
    return Counter(
        task.server for task in ran if task.task == "Find out which packages are installed" and task.status == "ok"
    )


@pytest.mark.parametrize("plan", ["smoke", "disaggregation", "erasure", "storm"])
def test_a_plan_is_green_and_the_rack_is_given_back_whole(up: CommandLine, tmp_path: Path, plan: str) -> None:
    baseline_comes(up)
    assert verdicts(up, plan, "virtual", tmp_path / "out") == VERDICTS[plan]
    if plan == "smoke":
        assert questions_for_packages(tmp_path / "out") == dict.fromkeys(load_lab("virtual").servers, 1)
    baseline_comes(up)


def test_a_storm_on_the_rehearsal_is_green(up: CommandLine, rehearsal: str, tmp_path: Path) -> None:
    baseline_comes(up)
    assert verdicts(up, "storm", rehearsal, tmp_path / "out") == VERDICTS["storm"]
    baseline_comes(up)


# How long guests in software take is beyond the limit that a real rack's remaps have.
def test_the_smoke_of_a_real_rack_but_for_its_latency_is_green_on_the_rehearsal(
    up: CommandLine, rehearsal: str, tmp_path: Path
) -> None:
    baseline_comes(up)
    asked = ("--set", "remaps=12", "-k", "not switched_throughput and not failure and not remap_latency")
    asked_of = ("provisioning", "fabric/undisturbed_io", "fabric/phy_drop", "fabric/identity", "workload/trace_replay")
    expected = {name: verdict for name, verdict in VERDICTS["smoke"].items() if name.startswith(asked_of)}
    assert verdicts(up, "smoke", rehearsal, tmp_path / "out", *asked) == expected
    baseline_comes(up)


def test_a_remap_is_timed_stage_by_stage_on_the_rehearsal(up: CommandLine, rehearsal: str, tmp_path: Path) -> None:
    baseline_comes(up)
    remaps = {"test": "fabric/remap_latency", "with": {"remaps": 4}}
    plan = up.write("remaps.yaml", {"plan": "remaps", "purpose": "Drives come, each in its time.", "tests": [remaps]})
    assert verdicts(up, plan, rehearsal, tmp_path / "out") == {"fabric/remap_latency::remap_latency": PASS}
    seen = Results(tmp_path / "out").of_kind("remap.seen")
    assert len(seen) == 4 * len(load_lab("virtual").servers)
    for remap in seen:
        assert {"commanded", "link", "device", "online", "verified"} <= {stage.name for stage in remap.stages}
    baseline_comes(up)


def test_the_plan_of_racks_without_a_switch_is_green(direct: CommandLine, tmp_path: Path) -> None:
    assert verdicts(direct, "direct-attached", "virtual-direct", tmp_path / "out") == VERDICTS["direct-attached"]


def test_every_port_is_read_after_drives_of_both_kinds_were_dealt_at_once(up: CommandLine, tmp_path: Path) -> None:
    baseline_comes(up)
    found = verdicts(up, IDENTITY, "virtual", tmp_path / "out", "--set", "remaps=12")
    assert found == {"identity::identity": PASS}
    measured = {event.name: event.value for event in Results(tmp_path / "out").of_kind("measured")}
    assert measured == {
        "identity.remaps": 12,
        "identity.reads": 8,
        "identity.wrong": 0,
        "identity.unread": 0,
        "identity.map_wrong": 0,
    }
    # The rack is given back whole, whatever was ejected meanwhile.
    baseline_comes(up)
