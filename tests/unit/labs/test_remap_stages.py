"""What of a remap's time is the rack's, and what the machine may have added."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from rackloop.abilities import Applied
from rackloop.errors import LabError
from rackloop.record import RemapSeen, Stage
from rackloop_drivers.workload import VerifiedRead
from rackloop_labs.remap_stages import remap_stages

US = 1_000
MS = 1_000_000
APPLIED = Applied(7, commanded_ns=0, acknowledged_ns=900 * US, written_ns=30 * US)


def read(t_ns: int, submit_ns: int, *, waited_ns: int | None = None, idle_ns: int | None = None) -> VerifiedRead:
    return VerifiedRead(1, 0, t_ns, submit_ns, submit_ns, 2, 1, 0, {"right": 1}, None, None, None, waited_ns, idle_ns)


def logged(*, late_ns: int = 0, answered_late_ns: int = 20 * US) -> list[Stage]:
    """A rack that had its trigger at 50 us and acted at 400; its model asks 1 ms until online, 100 us for a read."""
    online_ns = 400 * US + MS + late_ns
    return [
        Stage("received", 50 * US, "switch", 0),
        Stage("executed", 400 * US, "rackd", 350 * US),
        Stage("phy_up", 900 * US, "rackd", 5 * MS),
        Stage("online", online_ns, "rackd", late_ns),
        Stage("answered", online_ns + 100 * US + answered_late_ns, "rackd", answered_late_ns),
    ]


def timeline(stages: Sequence[Stage]) -> RemapSeen:
    return RemapSeen("t", "comreset", "srv4", "p0", "d16", 7, tuple(stages))


@pytest.mark.parametrize("late_ns", [0, 7 * MS])
@pytest.mark.parametrize("woken_late_ns", [10 * US, 40 * MS])
def test_of_a_simulated_rack_the_models_time_alone_is_left(late_ns: int, woken_late_ns: int) -> None:
    log = logged(late_ns=late_ns)
    seen = timeline(remap_stages(APPLIED, log, read(log[-1].at_ns + woken_late_ns, 300 * US)))
    assert seen.latency_s - seen.latency_error_s == pytest.approx(1.1e-3)
    assert seen.attach_s - seen.attach_error_s == pytest.approx(1.1e-3)
    assert seen.switch_s == seen.switch_error_s == pytest.approx(400e-6)
    assert seen.law_s == pytest.approx(1e-3)
    assert {stage.name: stage.error_ns for stage in seen.stages if stage.name != "phy_up"} == {
        "commanded": 30 * US,
        "received": 20 * US,
        "executed": 350 * US,
        "online": late_ns,
        "answered": 20 * US,
        "verified": woken_late_ns,
    }


def test_what_is_mounted_comes_behind_the_read_and_costs_it_nothing() -> None:
    mounted = replace(read(5 * MS, 4 * MS), mounted_ns=55 * MS, mount_waited_ns=2 * MS, clock_error_ns=US)
    plain = timeline(remap_stages(APPLIED, [], replace(mounted, mounted_ns=None)))
    seen = timeline(remap_stages(APPLIED, [], mounted))
    assert seen.stages[-1] == Stage("mounted", 55 * MS + US, "rackprobe", 2 * MS)
    assert seen.stages[:-1] == plain.stages
    assert (seen.latency_s, seen.latency_error_s) == (plain.latency_s, plain.latency_error_s)
    # A host's clock may be off, and the two stamps are off by the same.
    assert seen.at_ns("mounted") - seen.at_ns("verified") == 50 * MS


def test_a_switch_that_does_not_say_when_it_heard_has_all_until_it_acted() -> None:
    log = [stage for stage in logged() if stage.name != "received"]
    seen = timeline(remap_stages(APPLIED, log, read(2 * MS, 300 * US)))
    assert seen.switch_s == seen.switch_error_s == pytest.approx(400e-6)


def test_a_trigger_that_came_before_its_write_returned_counts_once() -> None:
    late = Applied(7, commanded_ns=0, acknowledged_ns=900 * US, written_ns=300 * US)
    seen = timeline(remap_stages(late, logged(), read(2 * MS, 300 * US)))
    assert seen.switch_error_s == pytest.approx(400e-6)


def test_a_reader_may_have_its_answer_before_rackd_has_stamped_it() -> None:
    log = logged(answered_late_ns=500 * US)
    seen = timeline(remap_stages(APPLIED, log, read(log[-1].at_ns - 460 * US, 300 * US)))
    assert seen.latency_s - seen.latency_error_s == pytest.approx(1.1e-3)
    assert seen.at_ns("answered") == seen.at_ns("verified")


def test_the_answer_to_an_earlier_read_says_nothing_of_this_one() -> None:
    log = logged()
    sent_ns = log[-1].at_ns + 10 * US
    seen = timeline(remap_stages(APPLIED, log, read(sent_ns + 9 * MS, sent_ns, waited_ns=3 * US, idle_ns=200 * US)))
    assert seen.stages[-1] == Stage("verified", sent_ns + 9 * MS, "rackprobe", 203 * US)
    assert "answered" not in {stage.name for stage in seen.stages}


def test_of_a_real_rack_only_harness_and_probe_can_be_held_to_be_late() -> None:
    seen = timeline(remap_stages(APPLIED, [], read(5 * MS, 4 * MS, waited_ns=700 * US, idle_ns=100 * US)))
    assert seen.latency_error_s == pytest.approx(830e-6)
    assert seen.law_s is None
    with pytest.raises(LabError, match="the stage executed of generation 7 was not seen"):
        assert seen.attach_s


def test_a_driver_and_a_kernel_that_say_nothing_leave_nothing_to_correct() -> None:
    stages = remap_stages(Applied(7, 0, 900 * US), [], read(5 * MS, 4 * MS))
    assert timeline(stages).latency_error_s == 0


@pytest.mark.parametrize("off_ns", [-MS, 0, MS])
def test_what_is_not_known_of_a_servers_clock_is_in_its_stage(off_ns: int) -> None:
    true_ns = 5 * MS
    seen = replace(read(true_ns + off_ns, 4 * MS + off_ns, waited_ns=US, idle_ns=0), clock_error_ns=MS)
    stage = remap_stages(APPLIED, [], seen)[-1]
    assert stage.at_ns - stage.error_ns <= true_ns <= stage.at_ns
    assert stage.error_ns == 2 * MS + US


def test_an_answer_that_the_servers_clock_may_have_been_seen_before_is_that_to_its_read() -> None:
    log = logged()
    early = replace(read(log[-1].at_ns - 2 * MS, 300 * US), clock_error_ns=3 * MS)
    stages = remap_stages(APPLIED, log, early)
    assert [stage.name for stage in stages][-2:] == ["answered", "verified"]
    assert stages[-1].at_ns - stages[-1].error_ns == stages[-2].at_ns


def test_a_kernel_tells_no_stage_behind_the_read_that_it_led_to() -> None:
    log = [
        Stage("link", 2 * MS, "kernel", MS),
        Stage("online", 6 * MS, "kernel", 2 * MS),
        Stage("named", 9 * MS, "kernel", MS),
    ]
    seen = timeline(remap_stages(APPLIED, log, read(5 * MS, 4 * MS)))
    assert seen.stages[1:] == (
        Stage("link", 2 * MS, "kernel", MS),
        Stage("online", 5 * MS, "kernel", MS),
        Stage("verified", 5 * MS, "rackprobe", 0),
    )
    # What is not known of when they were takes nothing from what the remap took.
    assert seen.latency_error_s == pytest.approx(30e-6)
