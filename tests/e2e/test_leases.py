"""Several people on one rack: who has what, who waits, and what happens to whoever comes without asking."""

from __future__ import annotations

import json
import re
from typing import Any

from rackloop.data import data_path
from tests.e2e.command_line import CommandLine, Results, Running, wait_until
from tests.e2e.entries import ENDLESS, IDENTITY, PHY


def status(rackloop: CommandLine, *, up: bool = True) -> dict[str, Any]:
    """What ``lab status --json`` says."""
    ended = rackloop("lab", "status", "mock", "--json")
    assert ended.status == (0 if up else 3), ended
    found: dict[str, Any] = json.loads(ended.out)
    return found


def endless(rackloop: CommandLine, *arguments: str) -> Running:
    """A run that does not end by itself, having done something to its rack."""
    running = rackloop.start("run", rackloop.plan(ENDLESS, name="endless"), "--lab", "mock", "--out", "out", *arguments)
    Results(rackloop.directory / "out").wait_for("act.announced", 5)
    return running


def test_two_runs_work_on_parts_of_one_rack_at_the_same_time(rackloop: CommandLine) -> None:
    assert rackloop("lab", "up", "mock").status == 0
    running = endless(rackloop, "--servers", "srv1")

    small = rackloop.plan(IDENTITY, PHY)
    beside = rackloop("run", small, "--lab", "mock", "--servers", "srv2,srv3", "--out", "beside")
    assert beside.status == 0, beside
    assert set(Results(rackloop.directory / "beside").tests()) == {
        "fabric/identity::identity",
        "fabric/phy_drop::phy_drop",
    }
    by_hand = rackloop("fabric", "mock", "map", "srv4.p1=d04")
    assert by_hand.status == 0, by_hand

    assert running.process.poll() is None
    [lease] = status(rackloop)["leases"]
    assert (lease["purpose"], lease["slice"]["servers"]) == ("plan endless", ["srv1"])

    held = "srv1 held by"
    rackloop("fabric", "mock", "map", "srv4.p0=d02").refused(3, held)
    rackloop("power", "mock", "cycle", "srv1").refused(3, held)
    rackloop("heal", "mock").refused(3, held, "--steal")
    whole = rackloop("run", small, "--lab", "mock", "--out", "whole")
    assert whole.status == 3, whole
    assert "blocked" in whole.out
    assert held in Results(rackloop.directory / "whole").tests()["fabric/identity::identity"]["reason"]

    running.interrupt()
    assert running.end().status == 130
    left = status(rackloop)
    assert (left["leases"], left["queue"]) == ([], [])
    assert [(entry["run"], entry["ability"]) for entry in left["standing"]] == [("by hand", "fabric")]
    assert rackloop("heal", "mock").status == 0
    assert status(rackloop)["standing"] == []


def test_a_run_waits_for_the_rack_and_a_part_needs_a_rack_that_is_up(rackloop: CommandLine) -> None:
    taken = rackloop("lab", "lease", "mock", "--for", "2h", "--purpose", "a look by hand")
    assert taken.status == 0, taken
    [lease] = status(rackloop, up=False)["leases"]
    assert (lease["slice"]["whole"], lease["purpose"], lease["process"]) == (True, "a look by hand", None)

    waiting = rackloop.start("run", rackloop.plan(IDENTITY), "--lab", "mock", "--out", "out", "--wait", "300")
    wait_until(lambda: bool(status(rackloop, up=False)["queue"]), lambda: "it does not wait")
    assert rackloop("lab", "release", "mock", lease["id"]).status == 0
    ended = waiting.end()
    assert ended.status == 0, ended
    rackloop("lab", "release", "mock", lease["id"]).refused(2, "none is held")

    part = rackloop("run", rackloop.plan(IDENTITY), "--lab", "mock", "--servers", "srv1", "--out", "part")
    assert part.status == 3, part
    reason = Results(rackloop.directory / "part").tests()["fabric/identity::identity"]["reason"]
    assert "lab mock is not up: start it with `rackloop lab up mock`" in reason


def test_a_run_works_within_a_lease_and_nobody_else_does(rackloop: CommandLine) -> None:
    assert rackloop("lab", "up", "mock").status == 0
    assert rackloop("lab", "lease", "mock", "--for", "90 min", "--servers", "srv2").status == 0
    [lease] = status(rackloop)["leases"]
    plan = rackloop.plan(IDENTITY)
    at = ("--lab", "mock", "--servers", "srv2")
    assert rackloop("run", plan, *at, "--out", "refused", "--wait", "1ms").status == 3
    reason = Results(rackloop.directory / "refused").tests()["fabric/identity::identity"]["reason"]
    assert "is not free after 0.001 s" in reason
    assert "; wait longer (--wait), take it over (--steal), or see" in reason
    own = (f"(lease {lease['id']}), which is your own lease", f"rackloop lab release mock {lease['id']}")
    rackloop("fabric", "mock", "map", "srv2.p0=d05").refused(3, *own)
    rackloop("heal", "mock").refused(3, *own)
    ended = rackloop("run", plan, "--lab", "mock", "--lease", lease["id"], "--out", "out")
    assert ended.status == 0, ended
    assert [one["id"] for one in status(rackloop)["leases"]] == [lease["id"]]
    rackloop("run", plan, "--lab", "mock", "--lease", "gone", "--out", "lost").refused(2, "no lease 'gone' of lab mock")


def test_stealing_asks_leaves_a_record_and_ends_the_other(rackloop: CommandLine) -> None:
    assert rackloop("lab", "up", "mock").status == 0
    running = endless(rackloop)
    rackloop("heal", "mock", "--steal").refused(2, "blocked by: the whole rack held by", "add --yes")
    stolen = rackloop("heal", "mock", "--steal", "--yes")
    assert stolen.status == 0, stolen
    assert "stolen: the whole rack held by" in stolen.out

    ended = running.end()
    assert ended.status == 3, ended
    test = Results(rackloop.directory / "out").tests()["fabric/identity::identity"]
    assert "(taken for heal)" in test["reason"], test
    found = status(rackloop)
    assert (found["leases"], found["standing"]) == ([], [])
    [theft] = found["stolen"]
    assert (theft["why"], theft["slice"]["whole"]) == ("taken for heal", True)


def test_a_run_and_a_lease_choose_a_server_by_its_tag(rackloop: CommandLine) -> None:
    shipped = (data_path("labs") / "mock.yaml").read_text()
    tagged = re.sub(r"^  srv2:$", "  srv2:\n    tags: [spare]", shipped, flags=re.MULTILINE)
    tagged = re.sub(r"^  srv3: \{stack", "  srv3: {tags: [spare], stack", tagged, flags=re.MULTILINE)
    assert tagged.count("[spare]") == 2
    (rackloop.directory / "tagged.yaml").write_text(tagged)
    assert rackloop("lab", "up", "tagged.yaml").status == 0
    lease = rackloop("lab", "lease", "tagged.yaml", "--for", "2h", "--servers", "tag:spare")
    assert "of lab mock: srv2;" in lease.out, lease
    ended = rackloop("run", rackloop.plan(IDENTITY), "--lab", "tagged.yaml", "--servers", "tag:spare", "--out", "out")
    # srv2 is held: only srv3 can have been had.
    assert ended.status == 0, ended
    rackloop("run", "smoke", "--lab", "tagged.yaml", "--servers", "tag:spar").refused(2, "did you mean 'spare'?")
    shown = {row.split("\t")[0]: row.split("\t")[3] for row in rackloop("lab", "show", "tagged.yaml").out.splitlines()}
    assert (shown["srv1"], shown["srv2"]) == ("", "spare")
    assert rackloop("lab", "down", "tagged.yaml", "--steal", "--yes").status == 0


ROBBED = """
def test_it(rack, lease):
    rack.bench.host("srv1").run(("true",), rack.deadline(30))
    lease.leases.release(lease.lease, "eve wants it")

def test_next(rack):
    rack.bench.host("srv1").run(("true",), rack.deadline(30))
"""


def test_what_a_test_saw_of_a_rack_whose_lease_is_over_is_no_pass(rackloop: CommandLine) -> None:
    (rackloop.directory / "test_robbed.py").write_text(ROBBED)
    ended = rackloop("run", "test_robbed.py", "--out", "out")
    assert ended.status == 3, ended
    found = Results(rackloop.directory / "out").tests()
    it, after = found["robbed::it"], found["robbed::next"]
    assert (it["verdict"], it["cause"]) == ("unknown", "lab")
    assert "eve wants it" in it["reason"]
    assert after["verdict"] in {"blocked", "unknown"}, after
