"""The plan that judges fair shares, on the mock lab: what it measures, concludes and refuses."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.e2e.command_line import CommandLine, Results

# Whatever is measured counts as steady: a busy machine must not fail a test.
QUICK = {
    "active_range": "16 MiB",
    "seconds": "0.05",
    "rounds": "5",
    "most_rounds": "5",
    "excursion": "100",
    "slope": "100",
}


def settings(changes: dict[str, str]) -> list[str]:
    return [argument for key, value in changes.items() for argument in ("--set", f"{key}={value}")]


def measured_by(rackloop: CommandLine, test: str, changes: dict[str, str]) -> Results:
    """The results of one test of the plan with these parameters, whose verdict the machine may have left unknown."""
    arguments = ("-k", test, "--out", "out", "--seed", "7", *settings(QUICK | changes))
    ended = rackloop("run", "tenancy", "--lab", "mock", *arguments)
    assert ended.status in {0, 3}, ended
    return Results(rackloop.directory / "out")


def plots_of(results: Results) -> dict[str, list[str]]:
    """The names of the plots of each test."""
    found: dict[str, list[str]] = {}
    for path in (results.directory / "allure-results").glob("*-result.json"):
        result: dict[str, Any] = json.loads(path.read_text())
        test = next(label["value"] for label in result["labels"] if label["name"] == "rackloop_test")
        found[test] = [entry["name"] for entry in result.get("attachments", []) if "(simulated)" in entry["name"]]
    return found


def test_tenants_are_measured_and_shown(rackloop: CommandLine) -> None:
    rackloop.renders_reports = True
    ended = rackloop("run", "tenancy", "--lab", "mock", "--out", "out", "--seed", "7", *settings(QUICK))
    # On a machine whose cores were short meanwhile, nobody can tell whether it was the drive.
    assert ended.status in {0, 3}, ended
    results = Results(rackloop.directory / "out")
    tests = results.tests()
    assert {(test["verdict"], test.get("cause")) for test in tests.values()} <= {
        ("pass", None),
        ("unknown", "harness"),
        ("unknown", "test"),
    }
    assert {test["verdict"] for test in tests.values()} != {"pass"} or ended.status == 0

    shares = tests["tenancy/fair_share::fair_share"]["measurements"]
    f_utils = {one["labels"]["tenant"]: one for one in shares if one["name"] == "tenant.f_util"}
    assert f_utils.keys() == {"t1", "t2", "t3", "t4"}
    for one in f_utils.values():
        low, high = one["ci95"]
        assert 0 < low <= one["value"] <= high
        assert one["n"] == 5
    (jain,) = [one for one in shares if one["name"] == "fairness.jain"]
    assert 0.25 <= jain["value"] <= 1
    whens = {one["labels"]["when"] for one in shares if one["name"] == "tenant.bandwidth"}
    assert whens == {"alone", "together"}

    beside = tests["tenancy/isolation::isolation"]["measurements"]
    assert {one["labels"]["neighbours"] for one in beside if one["name"] == "isolation.kept"} == {
        f"128 KiB {mix} depth {depth}" for mix in ("100/0", "0/100") for depth in (1, 8)
    }
    plots = plots_of(results)
    assert "Shares of tenants: fair share (simulated)" in plots["tenancy/fair_share::fair_share"]
    assert "A tenant beside its neighbours: isolation (simulated)" in plots["tenancy/isolation::isolation"]
    rounds = [one for one in results.of_kind("rounds.measured") if one.name == "tenancy.total" and one.criteria]
    assert [one.labels["when"] for one in rounds] == ["together", "alone"]


def test_tenants_share_several_drives_through_the_storage_switch(rackloop: CommandLine) -> None:
    changes = {
        "drives": "d01,d02",
        "through": "gimbal",
        "tenants": "3",
        "blocks": "4 KiB,64 KiB",
        "block_mixes": ",,4 KiB/70+16 KiB/30",
        "read_percents": "100,0,0",
        "rates": "0,0,500",
        "pauses": "0,20 ms,0",
        "bursts": "20 ms",
        "weights": "2,1",
        "iodepths": "8",
        "patterns": "random",
    }
    results = measured_by(rackloop, "fair_share", changes)
    test = results.tests()["tenancy/fair_share::fair_share"]
    assert (test["verdict"], test.get("cause")) in {("pass", None), ("unknown", "harness"), ("unknown", "test")}, test
    measured = test["measurements"]
    assert {(one["labels"]["through"], one["labels"]["profile"]) for one in measured} == {("gimbal", "sata-ssd")}
    f_utils = [one for one in measured if one["name"] == "tenant.f_util"]
    assert {one["labels"]["tenant"]: one["labels"]["block"] for one in f_utils} == {
        "t1": "4 KiB",
        "t2": "64 KiB",
        "t3": "4 KiB/70+16 KiB/30",
    }
    assert [one["labels"].get("demand") for one in f_utils] == [None, "pauses", "rate"]
    # The rate of t3 is served nearly wholly, f-Util 3, and counts as no more than what the others have.
    (min_max,) = [one["value"] for one in measured if one["name"] == "fairness.min_max"]
    assert min_max > 1.2 * min(one["value"] for one in f_utils) / max(one["value"] for one in f_utils)
    assert min(one["value"] for one in measured if one["name"] == "tenant.bandwidth") > 0


def test_a_victim_is_measured_beside_neighbours_with_mixes_of_sizes(rackloop: CommandLine) -> None:
    mixes = {
        "neighbour_block_mixes": ",4 KiB/70+64 KiB/30",
        "neighbour_read_percents": "70",
        "neighbour_iodepths": "4",
        "neighbours": "2",
    }
    measured = measured_by(rackloop, "isolation", mixes).tests()["tenancy/isolation::isolation"]["measurements"]
    mixed = "2 x 4 KiB/70+64 KiB/30 70/30 depth 4"
    kept = {one["labels"]["neighbours"] for one in measured if one["name"] == "isolation.kept"}
    assert kept == {"2 x 128 KiB 70/30 depth 4", mixed}
    beside = [one for one in measured if one["name"] == "tenant.bandwidth" and one["labels"]["when"] == mixed]
    assert {one["labels"]["tenant"]: one["labels"]["block"] for one in beside} == {
        "victim": "64 KiB",
        "neighbour1": "4 KiB/70+64 KiB/30",
        "neighbour2": "4 KiB/70+64 KiB/30",
    }
    assert min(one["value"] for one in beside) > 0


def test_neighbours_read_in_one_case_and_write_in_another_through_the_switch(rackloop: CommandLine) -> None:
    cases = {"through": "gimbal", "neighbour_read_percents": "100,0", "neighbour_iodepths": "4"}
    measured = measured_by(rackloop, "isolation", cases).tests()["tenancy/isolation::isolation"]["measurements"]
    bandwidths = {
        one["labels"]["when"]: one["value"]
        for one in measured
        if one["name"] == "tenant.bandwidth" and one["labels"]["tenant"] == "neighbour1"
    }
    assert bandwidths.keys() == {"128 KiB 100/0 depth 4", "128 KiB 0/100 depth 4"}
    assert min(bandwidths.values()) > 0


def test_tenants_are_measured_while_the_rack_is_at_work(rackloop: CommandLine) -> None:
    # A drive for each tenant: a rebuild reads all of them.
    tenants = {"tenants": "2", "drives": "d01,d02", "blocks": "64 KiB", "iodepths": "4"}
    work = {"meanwhile": "remaps,rebuilds", "seconds": "0.3", **tenants}
    results = measured_by(rackloop, "fair_share", work)
    measured = results.tests()["tenancy/fair_share::fair_share"]["measurements"]
    for name in ("fairness.jain", "fairness.utilisation"):
        of_work = {one["labels"]["meanwhile"] for one in measured if one["name"] == name}
        assert of_work == {"nothing", "remaps", "rebuilds"}
    done = {one["labels"]["meanwhile"]: one["value"] for one in measured if one["name"] == "fairness.work"}
    assert done.keys() == {"remaps", "rebuilds"}
    assert min(done.values()) > 0
    whens = {one["labels"]["when"] for one in measured if one["name"] == "tenant.bandwidth"}
    assert whens == {"alone", "together", "together, remaps", "together, rebuilds"}
    maps = [act for act in results.of_kind("act.announced") if act.ability == "fabric"]
    assert len(maps) >= 5


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"tenants": "1"}, "expected a whole number from 2 to 64, found '1'"),
        ({"iodepths": "1,2,3,4,5"}, "iodepths has 5 entries and there are 4 tenants"),
        ({"drives": "d01,d02"}, "drives names 2 drives for 4 tenants"),
        ({"drives": "d99"}, "lab mock has no drive 'd99'"),
        ({"drives": "d01,d01,d02,d03"}, "drives names d01 more than once"),
        ({"active_range": "256 KiB"}, "256 KiB for 4 tenants have no room for a block of 64 KiB of t1"),
        ({"most_rounds": "6"}, "most_rounds is 6: rounds is 10, and so many must be steady"),
        ({"meanwhile": "rebuilds", "active_range": "4 GiB"}, "whose stripes lie behind 2 GiB of each drive"),
        ({"meanwhile": "repairs"}, "expected one of nothing, remaps, rebuilds, found 'repairs'"),
        ({"patterns": "randum"}, "expected one of random, sequential, found 'randum'"),
        ({"through": "gimbel"}, "found 'gimbel'; did you mean 'gimbal'?"),
        ({"through": "gimbal", "drives": "d01,d02,d03,d04"}, "a storage switch (gimbal) runs on one server"),
        ({"through": "gimbal", "scheduler_parameters": "virtual_slot=4"}, 'did you mean "virtual_slots"?'),
        ({"through": "gimbal", "scheduler_parameters": "beta=high"}, "'high', the value of beta, is not JSON"),
        ({"through": "none", "scheduler_parameters": "beta=1"}, "scheduler_parameters beta=1 are of no scheduler"),
        ({"through": "reflex", "rates": "20000", "objectives": "100 us"}, "CANTMEETSLO: tenant"),
        ({"rates": "0,150000"}, "tenant t2: 150,000 I/Os a second are due at random, and fio"),
        ({"rate": "2000000"}, "tenant victim: 2,000,000 I/Os a second are due at random, and fio"),
        ({"box": "acme.yaml"}, "set purge to false"),
        ({"box": "acme.yaml", "purge": "false"}, "there is no description of a box at acme.yaml"),
        ({"weights": "0"}, "expected a whole number from 1 to 1000000, found '0'"),
        ({"block_mixes": "4 KiB/70"}, "the shares of block_mix are 1 to 100 % and come to 100 %, not to 70 %"),
        ({"rates": "100", "pauses": "1 ms"}, "tenant t1 has a rate and pauses"),
        ({"neighbour_block_mixes": "4 KiB/70"}, "neighbour_block_mixes: the shares of block_mix are 1 to 100 %"),
        ({"neighbour_block_mixes": "4 KiB/70+16 MiB/30", "active_range": "16 MiB"}, "16 MiB of neighbour1"),
        ({"rate": "100", "read_percent": "70"}, "tenant victim has a rate and reads and writes"),
    ],
)
def test_what_cannot_be_measured_is_refused_before_anything_is_touched(
    rackloop: CommandLine, changes: dict[str, str], said: str
) -> None:
    rackloop("run", "tenancy", "--lab", "mock", "--out", "out", *settings(changes)).refused(2, said)
    assert not rackloop.processes()
