"""Faults on a rack without a switch: two of one drive, of which the one takes away what mends the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from rackloop.clock import Deadline, VirtualClock
from rackloop.errors import LabError
from rackloop.faults import FaultCutShort, Faults, FaultSpec
from rackloop.faults.schedules import ScheduleFailed, play
from rackloop.lab import Part, load_lab, phy_number, phy_part
from rackloop.portmap import PortMap
from rackloop.safety.store import open_store
from rackloop.safety.undo import ActRecorder, Equipment, Journal, LinkKept, UndoFailed
from tests.unit.harness.schedule_cases import schedule, step
from tests.unit.harness.sim_rack import SimPart, SimSwitch

TAKING = {
    "hot_unplug": "removed",
    "slot_power_loss": "slot_power_off",
    "device_off": "device_off",
    "link_disable": "link_disabled",
    "phy_disable": "disabled",
}
NODE1 = Part.server("node1")


class Slot(SimPart):
    """A slot that answers with ``trouble``, once, when it is asked what stands."""

    trouble: LabError | None = None

    def standing(self, deadline: Deadline) -> dict[str, Mapping[str, Any]]:
        trouble, self.trouble = self.trouble, None
        if trouble is not None:
            raise trouble
        return super().standing(deadline)


@dataclass
class DirectBench:
    """The drive ``ssd1`` of ``mock-direct``, its slot and its PHY: while one of these is broken, no drive is there."""

    clock: VirtualClock
    drive: SimPart
    slot: Slot
    faults: Faults


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[DirectBench]:
    clock, lab = VirtualClock(), load_lab("mock-direct")
    drive, slot, phy = SimPart("media_error", "slow", name="drive"), Slot(*TAKING.values()), SimPart("disabled")

    def require_drive() -> None:
        if slot.broken or phy.broken:
            raise LabError("the drive is not where it should be: plug it in there again")

    drive.mending = require_drive
    # The PHY has a signal; what its far end is, no fault of these asks.
    signals = SimSwitch(clock, PortMap.of([(phy_number(lab, lab.part("ssd1")), 160)]))
    parts = {"drive:ssd1": drive, "slot:node1/p0": slot, "phy:node1/p0": phy}
    with closing(Journal(open_store(tmp_path / "store.sqlite", clock))) as journal:
        recorder = ActRecorder(lab, journal, "run-1")
        yield DirectBench(clock, drive, slot, Faults(lab, Equipment(signals, breakable=parts), clock, recorder))


@pytest.mark.parametrize("kind", TAKING)
def test_a_fault_of_a_drive_that_another_takes_away_is_mended_with_the_end_of_that(
    bench: DirectBench, kind: str
) -> None:
    script = schedule(step(0, 2, "ssd1", "media_error"), step(1, 3, "ssd1", kind), step(6, 1, "ssd1", kind), most=2)
    played = play(script, bench.faults, bench.clock)
    assert [done.ended_ns for done in played.done] == [4_000_000_000, 4_000_000_000, 7_000_000_000]
    assert not bench.drive.broken


@pytest.mark.parametrize("out", [NODE1, Part.port("node1", "p0")], ids=str)
def test_a_port_is_dropped_by_its_number_in_the_whole_rack(tmp_path: Path, out: Part) -> None:
    """By one in what is left of it, a drop would take the link of what is in maintenance."""
    clock, whole = VirtualClock(), load_lab("mock-direct")
    lab = whole.without([out])
    number = phy_number(whole, Part.port("node2", "p1"))
    assert (number, phy_number(lab, Part.port("node2", "p1")), phy_part(lab, number).name) == (5, 5, "node2.p1")
    signals = SimSwitch(clock, PortMap.of([(at, 100 + at) for at in range(1, 6)]))
    with closing(Journal(open_store(tmp_path / "store.sqlite", clock))) as journal:
        faults = Faults(lab, Equipment(signals, signals), clock, ActRecorder(lab, journal, "run-1"))
        with faults.injected(FaultSpec("phy_drop", "hdd1", {"down_s": 1})):
            assert [ports for ports, _ in signals.drops] == [(5,)]


def test_a_drive_keeps_its_link_by_the_number_of_its_port_in_the_whole_rack() -> None:
    whole = load_lab("mock-direct")
    hdd1 = whole.drives["hdd1"].model_copy(update={"scratch": False})
    left = whole.model_copy(update={"drives": {**whole.drives, "hdd1": hdd1}}).without([NODE1])
    kept = ActRecorder(left, cast("Journal", None), "run-1").kept_links
    kept.require_signal([2], PortMap())
    with pytest.raises(LinkKept, match="hdd1"):
        kept.require_signal([5], PortMap())


def test_a_fault_that_takes_no_link_excuses_no_other_of_its_drive(bench: DirectBench) -> None:
    bench.faults.begin(FaultSpec("fail_slow", "ssd1"))
    media_error = bench.faults.begin(FaultSpec("media_error", "ssd1"))
    bench.drive.stays = True
    with pytest.raises(UndoFailed, match="drive:ssd1"):
        bench.faults.end(media_error)


def test_a_drive_that_came_back_before_its_fault_was_ended_was_not_away_long_enough(bench: DirectBench) -> None:
    with (
        pytest.raises(FaultCutShort, match="fault 1, hot_unplug of ssd1, stood no longer when it was ended"),
        bench.faults.injected(FaultSpec("hot_unplug", "ssd1")) as injection,
    ):
        bench.slot.broken.clear()
    assert not injection.stands


def test_a_schedule_says_which_of_its_faults_was_over_too_soon(bench: DirectBench) -> None:
    steps = step(0, 2, "ssd1", "media_error"), step(1, 3, "ssd1", "slot_power_loss")
    bench.drive.mending = bench.slot.broken.clear
    with pytest.raises(ScheduleFailed, match=r"with the end of slot_power_loss of ssd1: fault 2, .* stood no longer"):
        play(schedule(*steps, most=2), bench.faults, bench.clock)


def test_a_slot_that_cannot_be_asked_is_not_taken_for_mended(bench: DirectBench) -> None:
    with bench.faults.injected(FaultSpec("hot_unplug", "ssd1")):
        bench.slot.trouble = LabError("node1 does not answer")
    assert not bench.slot.broken
