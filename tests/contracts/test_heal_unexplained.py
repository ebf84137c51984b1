"""What nobody's journal explains in a mock rack: heal mends it, cables apart, says so, and reads back the truth."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from rackloop.faults import Faults, FaultSpec
from rackloop.safety.undo import ActRecorder
from rackloop_labs import MockLab
from tests.deadlines import CLOCK, soon
from tests.faulty_rack import FaultyRack, faulty_rack


@pytest.fixture(scope="module")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultyRack]:
    with faulty_rack(tmp_path_factory.mktemp("healed")) as ready:
        yield ready


@pytest.fixture(scope="module")
def direct(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultyRack]:
    with faulty_rack(tmp_path_factory.mktemp("direct"), "mock-direct") as ready:
        yield ready


def ask_rackd(rack: FaultyRack, op: str, **fields: object) -> None:
    with rack.mock.rackd() as rackd:
        rackd.request(op, soon(), **fields)


BY_HAND: dict[str, tuple[Callable[[FaultyRack], object], str]] = {
    "crash": (lambda rack: rack.mock.control.crash("srv2", soon()), "crash of server:srv2"),
    "hang": (lambda rack: rack.mock.control.hang("srv3", soon()), "hang of server:srv3"),
    "drive": (lambda rack: ask_rackd(rack, "fault", drive="d01", fault={"kind": "hang"}), "hang of drive:d01"),
    "stuck": (lambda rack: ask_rackd(rack, "stick", port=9, stuck=True), "stuck of switch_port:9"),
    "slow": (lambda rack: ask_rackd(rack, "training", ports=[3], factor=9), "slow_training of switch_port:3"),
}


@pytest.mark.parametrize("name", BY_HAND)
def test_what_was_broken_by_hand_is_mended_and_told(rack: FaultyRack, name: str) -> None:
    before = rack.truth()
    break_it, told = BY_HAND[name]
    break_it(rack)
    assert rack.truth() != before
    report = rack.heal()
    assert report.problems == ()
    assert report.mended == (told,)
    assert rack.truth() == before


def test_cables_that_were_swapped_by_hand_are_left_for_the_cabling_check_to_find(rack: FaultyRack) -> None:
    before = rack.truth()
    ask_rackd(rack, "miswire", ports=[1, 5])
    swapped = rack.truth()
    try:
        assert swapped != before
        assert rack.heal().mended == ()
        assert rack.truth() == swapped
    finally:
        ask_rackd(rack, "miswire", ports=[1, 5])
    assert rack.heal().problems == ()
    assert rack.truth() == before


@pytest.mark.parametrize(("part", "kind"), [("slot:node1/p1", "slot_power_off"), ("phy:node1/p2", "disabled")])
def test_what_a_server_remembers_is_mended_and_told(direct: FaultyRack, part: str, kind: str) -> None:
    before = direct.truth()
    with closing(MockLab(direct.lab, CLOCK, direct.mock.state).open(None)) as bench:
        bench.equipment.breakable[part].break_as("other/1", {"kind": kind}, soon())
    report = direct.heal()
    assert (report.problems, report.mended) == ((), (f"{kind} of {part}",))
    assert direct.truth() == before


def test_a_server_that_crashed_is_asked_once_it_is_there_again(direct: FaultyRack) -> None:
    before = direct.truth()
    with closing(MockLab(direct.lab, CLOCK, direct.mock.state).open(None)) as bench:
        faults = Faults(direct.lab, bench.equipment, CLOCK, ActRecorder(direct.lab, direct.journal, "lost"))
        bench.equipment.breakable["slot:node1/p1"].break_as("other/1", {"kind": "slot_power_off"}, soon())
        faults.begin(FaultSpec("server_crash", "node1"))
    report = direct.heal()
    assert report.problems == ()
    assert direct.truth() == before


def test_a_rack_whose_control_link_was_lost_by_hand_can_be_taken_over(rack: FaultyRack) -> None:
    before = rack.truth()
    rack.mock.control.break_as("control", "by-hand", {"kind": "lost"}, soon())
    report = rack.heal()
    assert report.problems == ()
    assert rack.truth() == before


def test_a_drop_is_ended_with_its_fault_and_the_drive_is_back(rack: FaultyRack) -> None:
    with closing(MockLab(rack.lab, CLOCK, rack.mock.state).open(None)) as bench:
        faults = Faults(rack.lab, bench.equipment, CLOCK, ActRecorder(rack.lab, rack.journal, "drop"))
        with faults.injected(FaultSpec("phy_drop", "srv1.p0")):
            with rack.mock.rackd() as rackd:
                dropped = rackd.request("disturbances", soon())["dropped"]
            assert set(dropped) & {1, 101}
        assert rack.truth()["disturbances"]["dropped"] == []
        assert rack.heal().problems == ()


def test_a_switch_that_lost_its_power_has_the_map_again_that_it_had(rack: FaultyRack) -> None:
    with closing(MockLab(rack.lab, CLOCK, rack.mock.state).open(None)) as bench:
        faults = Faults(rack.lab, bench.equipment, CLOCK, ActRecorder(rack.lab, rack.journal, "power"))
        ask_rackd(rack, "map", pairs=[[1, 119], [2, 118]], full=False)
        changed = rack.truth()["map"]
        with faults.injected(FaultSpec("switch_power_loss", "switch")):
            assert not rack.truth()["power"]["switch"]
        assert rack.truth()["map"] == changed
    assert rack.heal().restored_ports == (1, 2, 101, 102, 118, 119)
