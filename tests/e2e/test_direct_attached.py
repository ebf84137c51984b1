"""A rack without a switch, from its plan to its heal: what servers break of themselves comes back."""

from __future__ import annotations

from contextlib import closing

from rackloop.faults import KINDS
from rackloop.lab import LabState, load_lab
from rackloop.safety.store import open_store
from rackloop.safety.undo import Journal
from tests.deadlines import CLOCK
from tests.e2e.command_line import CommandLine, Results
from tests.e2e.entries import REMAP

LAB = "mock-direct"
BROKEN = {"device_off", "hot_unplug", "link_disable", "phy_disable", "phy_drop", "power_loss", "slot_power_loss"}


def test_the_plan_passes_on_the_simulated_twin(rackloop: CommandLine) -> None:
    ended = rackloop("run", "direct-attached", "--lab", LAB, "--out", "out", "--seed", "7")
    assert ended.status == 0, ended
    results = Results(rackloop.directory / "out")
    assert {test["verdict"] for test in results.tests().values()} == {"pass"}
    assert len(results.tests()) == 4

    returns = [one.labels for one in results.of_kind("measured") if one.name == "hotplug.return"]
    assert {labels["drive"] for labels in returns} == set(load_lab(LAB).drives)
    assert len({(labels["drive"], labels["fault"]) for labels in returns}) == len(returns)

    phases: dict[tuple[str, int], list[str]] = {}
    for phase in results.of_kind("fault.phase"):
        phases.setdefault((phase.test, phase.fault), []).append(phase.phase)
    assert all(seen[0] == "commanded" and seen[-1] == "healed" for seen in phases.values())
    assert {phase.fault_kind for phase in results.of_kind("fault.phase")} == BROKEN <= KINDS.keys()

    # What the tests did moved counters, and everything that moved is explained by it.
    changes = [change for compared in results.of_kind("health.compared") for change in compared.changes]
    assert {change.what for change in changes if change.judgement == "expected"}
    assert not [change for change in changes if change.judgement == "unexpected"]


def test_a_killed_run_is_healed_from_outside(rackloop: CommandLine) -> None:
    """The kernel of one server lost a drive, and whoever knew it is dead."""
    assert rackloop("lab", "up", LAB).status == 0
    running = rackloop.start(
        "run", rackloop.plan({"test": "direct/hot_plug", "with": {"times": 50}}), "--lab", LAB, "--out", "out"
    )
    Results(rackloop.directory / "out").wait_for("fault.phase", 2)
    running.kill()
    healed = rackloop("heal", LAB)
    assert (healed.status, "the baseline stands" in healed.out) == (0, True), healed
    with closing(Journal(open_store(LabState.of(LAB, root=rackloop.state_home).store, CLOCK))) as journal:
        assert journal.standing(LAB) == []
    cabling = rackloop("lab", "cabling", LAB)
    assert (cabling.status, "0 disagreements" in cabling.out) == (0, True), cabling
    assert rackloop("lab", "down", LAB).status == 0


def test_what_a_rack_cannot_do_is_blocked_with_its_reason(rackloop: CommandLine) -> None:
    remaps = rackloop("run", rackloop.plan(REMAP), "--lab", LAB, "--dry-run")
    assert f"it is blocked: the rack {LAB} has fixed cabling" in remaps.out, remaps
    slots = rackloop("run", "direct-attached", "--lab", "mock", "--dry-run")
    assert slots.out.count("it is blocked: the rack mock has a switch") == 4, slots
    assert "4 of them blocked: the run would end with status 3" in slots.out
    nightly = rackloop("run", "nightly", "--lab", LAB, "--dry-run")
    assert "it is skipped: the rack" in nightly.out
    assert "blocked" not in nightly.out


def test_what_would_be_done_to_a_real_rack_is_shown(rackloop: CommandLine) -> None:
    shown = rackloop("run", "direct-attached", "--lab", "direct-attached", "--dry-run")
    assert shown.status == 0, shown
    for said in ("1 hot_unplug of fast1", "1 device_off of shelf1-1", "1 power_loss of node2", "nothing was touched"):
        assert said in shown.out


def test_a_server_with_a_drive_that_is_kept_does_not_lose_its_power(rackloop: CommandLine) -> None:
    text = load_lab(LAB).source.read_text()
    kept = rackloop.directory / "kept.yaml"
    for server, place, losing in (
        ("node1", "node1/p0", "power_loss of node2"),
        ("node2", "node2/p1", "it is skipped: every server of"),
    ):
        text = text.replace(f"attached: {place}, scratch: true", f"attached: {place}, scratch: false")
        kept.write_text(text)
        shown = rackloop("run", "direct-attached", "--lab", kept, "--dry-run")
        assert losing in shown.out, shown
        assert f"power_loss of {server}" not in shown.out
