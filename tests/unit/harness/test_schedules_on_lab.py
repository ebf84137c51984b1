"""Schedules on the mock lab's description: whom a fault takes, which targets there are, what is refused."""

from __future__ import annotations

import re

import pytest

from rackloop.errors import BadInput
from rackloop.faults import FaultSpec
from rackloop.faults.schedules import (
    Bound,
    FaultChoice,
    RandomSchedule,
    Schedule,
    bound_problems,
    left_out,
    on_lab,
    taking_of,
    unsupported_out_of_service,
)
from rackloop.lab import Lab, Part, load_lab
from tests.unit.harness.schedule_cases import schedule, step

STORM = RandomSchedule("storm", (FaultChoice("hang", ("drives",), (0.1, 1)),), every_s=1.0, duration_s=300.0)


@pytest.fixture(scope="module")
def lab() -> Lab:
    return load_lab("labs/mock.yaml")


def test_a_fault_takes_what_it_may_touch(lab: Lab) -> None:
    taking = taking_of(lab)
    hung = taking(FaultSpec("hang", "d01"))
    assert hung.drives == {"d01"}
    assert not hung.servers
    assert taking(FaultSpec("phy_drop", "srv1.p2")).drives == {"d09"}
    crashed = taking(FaultSpec("server_crash", "srv3"))
    assert crashed.drives == {"d05", "d06", "d11", "d15"}
    assert crashed.servers == {"srv3"}
    assert not taking(FaultSpec("bmc_unreachable", "srv1"))


def test_a_script_that_the_lab_can_have_is_played_as_it_is(lab: Lab) -> None:
    script = schedule(step(0, 1), step(2, 1, "srv3", "server_crash"), most=Bound(1, 4, 1))
    assert on_lab(script, lab, 1) is script


def test_every_fault_that_the_lab_cannot_have_is_told(lab: Lab) -> None:
    script = schedule(
        step(0, 1, "d99"),
        step(2, 1, "srv1"),
        places=("s.yaml:3:5", "s.yaml:4:5"),
    )
    with pytest.raises(BadInput) as caught:
        on_lab(script, lab, 1)
    first, second = str(caught.value).splitlines()
    assert first.startswith("s.yaml:3:5: schedule storm: hang of d99: the rack mock has nothing called 'd99'")
    assert second == "s.yaml:4:5: schedule storm: hang of srv1: hang is of a drive, and srv1 is a server"


@pytest.mark.parametrize("kind", ["media_error", "corrupt"])
def test_sectors_that_a_drive_does_not_have_are_told(lab: Lab, kind: str) -> None:
    drive = lab.drives["d01"]
    last = drive.size // drive.traits.sector_bytes - 1
    on_lab(schedule(step(0, 1, "d01", kind, lba=last, sectors=1)), lab, 1)
    with pytest.raises(BadInput, match=f"lba {last} with sectors 2 is beyond d01, whose last sector is {last}"):
        on_lab(schedule(step(0, 1, "d01", kind, lba=last, sectors=2)), lab, 1)


def test_a_word_that_is_nearly_written_is_guessed(lab: Lab) -> None:
    storm = RandomSchedule("storm", (FaultChoice("phy_drop", ("prots",), (0.1, 1)),), every_s=1.0, duration_s=9.0)
    with pytest.raises(BadInput, match="did you mean 'ports'"):
        on_lab(storm, lab, 1)


def test_a_script_that_takes_more_drives_than_it_may_is_refused(lab: Lab) -> None:
    with pytest.raises(BadInput, match=r"4 drives \(d05, d06, d11, d15\) would be broken at once, .* allows 1"):
        on_lab(schedule(step(0, 1, "srv3", "server_crash")), lab, 1)


def test_words_stand_for_what_is_in_use_and_may_be_broken(lab: Lab) -> None:
    targets = {each.fault.target for each in on_lab(STORM, lab, 1).steps}
    assert targets <= set(lab.places)
    assert len(targets) > 12
    ports = RandomSchedule("storm", (FaultChoice("phy_drop", ("ports",), (0.1, 0.1)),), every_s=0.1, duration_s=60.0)
    assert {each.fault.target for each in on_lab(ports, lab, 1).steps} == {
        f"{name}.{port}" for name, server in lab.servers.items() for port in server.ports
    }


SICK = unsupported_out_of_service(load_lab("labs/mock.yaml"), {Part.drive("d01"), Part.port("srv2", "p0")})


def test_what_is_out_of_service_is_not_drawn(lab: Lab) -> None:
    kinds = (
        FaultChoice("hang", ("d01", "d02"), (0.1, 1)),
        FaultChoice("phy_drop", ("srv1.p0", "srv2.p0", "srv2.p1"), (0.1, 1)),
        FaultChoice("server_crash", ("srv2", "srv3"), (0.1, 1)),
        FaultChoice("switch_power_loss", ("switch",), (0.1, 1)),
    )
    storm = RandomSchedule("storm", kinds, every_s=0.5, duration_s=300.0, most=Bound(1, 16, 4))
    steps = on_lab(storm, lab, 1, unsupported=SICK).steps
    assert {step.fault.target for step in steps} == {"d02", "srv2.p1", "srv3"}
    assert left_out(storm, lab, SICK) == [
        "hang of d01: it would reach what is out of service: drive d01",
        "phy_drop of srv1.p0: it would reach what is out of service: drive d01",
        "phy_drop of srv2.p0: it would reach what is out of service: port srv2.p0",
        "server_crash of srv2: it would reach what is out of service: port srv2.p0",
        "switch_power_loss of switch: it would reach what is out of service: drive d01 and port srv2.p0",
    ]


def test_a_script_that_reaches_what_is_out_of_service_is_refused_before_it_begins(lab: Lab) -> None:
    script = schedule(step(0, 1, "d02"), step(2, 1, "d01"), places=("s.yaml:3:5", "s.yaml:4:5"))
    with pytest.raises(BadInput) as caught:
        on_lab(script, lab, 1, unsupported=SICK)
    assert str(caught.value) == (
        "s.yaml:4:5: step 2 of schedule storm, hang of d01 at 2 s: it would reach what is out of service: drive d01"
    )
    assert left_out(script, lab, SICK) == ["hang of d01: it would reach what is out of service: drive d01"]
    assert on_lab(script, lab, 1, unsupported=unsupported_out_of_service(lab, ())) is script


def test_the_runs_seed_draws_unless_the_schedule_has_its_own(lab: Lab) -> None:
    assert on_lab(STORM, lab, 1, "test").steps != on_lab(STORM, lab, 2, "test").steps
    assert on_lab(STORM, lab, 1, "test").steps != on_lab(STORM, lab, 1, "other").steps
    seeded = RandomSchedule(STORM.name, STORM.choices, STORM.every_s, STORM.duration_s, seed=7)
    assert on_lab(seeded, lab, 1) == on_lab(seeded, lab, 2)
    assert list(bound_problems(on_lab(seeded, lab, 1), taking_of(lab))) == []


DARK = RandomSchedule(
    "dark",
    (
        FaultChoice("phy_drop", ("srv1.p0", "srv1.p1"), (0.5, 2)),
        FaultChoice("phy_flap", ("srv1.p0", "d01"), (1, 1)),
        FaultChoice("power_loss", ("srv1", "srv2"), (0.5, 2)),
    ),
    every_s=0.1,
    duration_s=300.0,
    most=Bound(faults=3, drives=24, servers=4),
)


def test_no_signal_is_taken_that_another_fault_has_taken(lab: Lab) -> None:
    taking = taking_of(lab)
    steps = on_lab(DARK, lab, 7).steps
    together = [
        (before, step)
        for index, step in enumerate(steps)
        for before in steps[:index]
        if before.ends_s > step.at_s + 1e-6 and taking(before.fault).overlaps(taking(step.fault))
    ]
    # A server without power may have lost a link before; no link is taken from one without power.
    assert together
    assert {step.fault.kind for _, step in together} == {"power_loss"}


def test_a_script_that_takes_a_signal_twice_is_told_when_it_is_back(lab: Lab) -> None:
    def script(server: str) -> Schedule:
        cut, dropped = step(0, 2, server, "power_loss"), step(1, 2, "srv1.p2", "phy_drop")
        return schedule(cut, dropped, most=Bound(faults=2, drives=24, servers=4))

    with pytest.raises(BadInput, match=r"power_loss of srv1 has taken the signal of srv1\.p2; begin it at 2 s"):
        on_lab(script("srv1"), lab, 0)
    assert len(on_lab(script("srv2"), lab, 0).steps) == 2


@pytest.mark.parametrize("kind", ["hot_unplug", "slot_power_loss", "device_off", "link_disable"])
def test_a_slot_without_its_drive_has_no_signal_to_take(kind: str) -> None:
    direct = load_lab("labs/mock-direct.yaml")
    port = ".".join(next(iter(direct.places.values())))
    steps = step(0, 2, port, kind), step(1, 2, port, "phy_disable")
    with pytest.raises(BadInput, match=re.escape(f"{kind} of {port} has taken the signal of {port}; begin it at 2 s")):
        on_lab(schedule(*steps, most=Bound(faults=2, drives=24, servers=4)), direct, 0)
