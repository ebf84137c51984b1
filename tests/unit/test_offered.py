"""What a rack can never do by its description, and what a lease of a part of it has no part in."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rackloop.clock import VirtualClock
from rackloop.errors import BadInput
from rackloop.faults import FaultSpec, kind_of_fault
from rackloop.faults.schedules import Bound, FaultChoice, RandomSchedule, left_out, on_lab
from rackloop.lab import Lab, load_lab
from rackloop.plan import load_plan
from rackloop.record import EventLog
from rackloop.safety.leases import reduced, slice_of
from rackloop.safety.maintenance import Gear
from rackloop_fixtures._run import Run
from rackloop_fixtures._schedules import foreseen_faults, schedule_of
from rackloop_labs.offered import lacking_in
from tests.unit.schedule_cases import schedule, step

CONTROL = FaultChoice("control_lost", ("switch",), (0.1, 0.2))
STORM = RandomSchedule("storm", (FaultChoice("hang", ("drives",), (0.1, 1)), CONTROL), every_s=1.0, duration_s=60.0)


@pytest.fixture(scope="module")
def rack() -> Lab:
    return load_lab("labs/mock.yaml")


@pytest.fixture(scope="module")
def leased(rack: Lab) -> Lab:
    return reduced(rack, slice_of(rack, ["srv2", "srv3"]))


def own(lab: Lab) -> tuple[FaultSpec, ...]:
    """Faults of what belongs to srv2."""
    (drive, *_) = lab.drives_of("srv2")
    return (
        FaultSpec("hang", drive),
        FaultSpec("power_loss", drive),
        FaultSpec("power_loss", "srv2"),
        FaultSpec("phy_drop", "srv2.p0"),
        FaultSpec("stuck_port", drive),
        FaultSpec("server_crash", "srv2"),
        FaultSpec("partition", "srv2"),
        FaultSpec("bmc_unreachable", "srv2"),
    )


OF_ALL = (
    FaultSpec("control_lost", "switch"),
    FaultSpec("control_garbled", "switch"),
    FaultSpec("switch_power_loss", "switch"),
    FaultSpec("miswire", "srv2.p0", {"with": "srv2.p1"}),
)


def test_a_lease_of_servers_has_their_faults_and_none_of_the_switch(rack: Lab, leased: Lab) -> None:
    lacking = lacking_in(rack, leased)
    assert [lacking(fault) for fault in own(rack)] == [None] * len(own(rack))
    for fault in OF_ALL:
        assert lacking_in(rack)(fault) is None
        assert "which the lease of srv2, srv3 has not" in str(lacking(fault)), fault


@pytest.mark.parametrize("kind", ["slot_power_loss", "hot_unplug", "phy_disable"])
def test_a_rack_with_a_switch_has_no_faults_of_slots(rack: Lab, kind: str) -> None:
    assert "nothing in the rack mock can break" in str(lacking_in(rack)(FaultSpec(kind, "srv1.p0")))


def test_a_rack_without_a_switch_has_no_faults_of_one_and_drops_links_of_the_whole() -> None:
    direct = load_lab("labs/direct-attached.yaml")
    server, described = next(iter(direct.servers.items()))
    place = f"{server}.{next(iter(described.ports))}"
    assert lacking_in(direct)(FaultSpec("stuck_port", place)) is not None
    assert lacking_in(direct)(FaultSpec("phy_drop", place)) is None
    part = reduced(direct, slice_of(direct, [server]))
    assert lacking_in(direct, part)(FaultSpec("phy_drop", place)) is not None
    assert lacking_in(direct, part)(FaultSpec("hot_unplug", place)) is None


def test_a_script_with_what_is_lacking_is_refused_before_its_first_fault(rack: Lab, leased: Lab) -> None:
    (drive, *_) = rack.drives_of("srv2")
    script = schedule(step(0, 1, drive), step(2, 1, "switch", "control_lost"), places=("s.yaml:3:5", "s.yaml:4:5"))
    assert on_lab(script, leased, 1, lacking=lacking_in(rack)) is script
    with pytest.raises(
        BadInput, match=r"s\.yaml:4:5: step 2 of schedule storm, .*which the lease of srv2, srv3 has not"
    ):
        on_lab(script, leased, 1, lacking=lacking_in(rack, leased))


def test_a_random_schedule_is_drawn_without_it(rack: Lab, leased: Lab) -> None:
    lacking = lacking_in(rack, leased)
    assert "control_lost" in {each.fault.kind for each in on_lab(STORM, leased, 1).steps}
    assert {each.fault.kind for each in on_lab(STORM, leased, 1, lacking=lacking).steps} == {"hang"}
    (said,) = left_out(STORM, leased, lacking)
    assert said.startswith("control_lost of switch: it needs control, which the lease of srv2, srv3 has not")
    assert left_out(STORM, rack, lacking_in(rack)) == []


def test_a_dry_run_says_what_is_never_drawn(rack: Lab, leased: Lab) -> None:
    drawn, never = foreseen_faults(STORM, leased, None, "t", rack)
    assert drawn.startswith("hang: one about every")
    assert never.startswith("never control_lost of switch: ")
    assert not any(said.startswith("never") for said in foreseen_faults(STORM, rack, 7, "t", rack))


def test_a_draw_with_nothing_left_is_refused(rack: Lab, leased: Lab) -> None:
    storm = RandomSchedule("storm", (CONTROL,), every_s=1.0, duration_s=60.0)
    with pytest.raises(BadInput, match="schedule storm can draw nothing here: control_lost of switch: it needs"):
        on_lab(storm, leased, 1, lacking=lacking_in(rack, leased))


def test_a_run_draws_nothing_that_reaches_what_is_out_of_service_when_it_begins(rack: Lab, tmp_path: Path) -> None:
    plan = load_plan("testplans/storm.yaml", Path("testplans"))
    (entry,) = plan.tests
    log = EventLog(tmp_path / "events.jsonl", VirtualClock())
    run = Run(plan, rack, Path("testplans"), tmp_path, 3, VirtualClock(), log)
    out = {Gear.server("srv1")}
    drawn = schedule_of(run, entry, "t", out)
    assert drawn.steps
    assert not any(kind_of_fault(each.fault).blast_radius(rack, each.fault).reaches(*out) for each in drawn.steps)
    script = replace(entry, schedule=schedule(step(0, 1, "srv1", "server_crash"), most=Bound(1, 4, 1)))
    assert schedule_of(run, script, "t") is script.schedule
    with pytest.raises(
        BadInput, match="server_crash of srv1 at 0 s: it would reach what is out of service: server srv1"
    ):
        schedule_of(run, script, "t", out)
    log.close()


def test_a_run_draws_what_its_dry_run_said(rack: Lab, leased: Lab, tmp_path: Path) -> None:
    plan = load_plan("testplans/storm.yaml", Path("testplans"))
    (entry,) = plan.tests
    assert entry.schedule is not None
    log = EventLog(tmp_path / "events.jsonl", VirtualClock())
    run = Run(plan, leased, Path("testplans"), tmp_path, 3, VirtualClock(), log, described=rack)
    drawn = schedule_of(run, entry, "t")
    assert "control_lost" not in {each.fault.kind for each in drawn.steps}
    foreseen = foreseen_faults(entry.schedule, leased, 3, "t", rack)
    assert foreseen[:-1] == [f"{each} for {each.lasts_s:g} s" for each in drawn.steps]
    log.close()
