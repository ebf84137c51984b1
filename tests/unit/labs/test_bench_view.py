"""A bench without what is out of service: what is not offered, and what of the switch is seen."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rackloop.abilities import LiveMap, stager
from rackloop.clock import Deadline, VirtualClock
from rackloop.errors import BadInput, LabError, NotSupported, StaleGeneration
from rackloop.lab import Lab, Part, load_lab, parts_for, parts_of
from rackloop.portmap import Full, Open, Partial, PortMap
from rackloop.safety import heal
from rackloop.safety.leases import leased
from rackloop.safety.store import open_store
from rackloop.safety.undo import ActRecorder, Equipment, Journal, journalled
from rackloop_labs.bench_view import BenchInService, LeasedBench, is_about_what_is_out, whole
from rackloop_labs.restart_notes import restart_notes
from tests.unit.harness.sim_rack import BASELINE, RestoringPhy, SimOutlet, SimPart, SimRack, described

D01, SRV2 = Part.drive("d01"), Part.server("srv2")


class SimBench:
    """As much of a bench as is reduced."""

    def __init__(self, lab: Lab, rack: SimRack) -> None:
        self.lab = lab
        self.rack = rack

        self.power = {f"server:{name}": SimOutlet() for name in lab.servers}
        self.clock = rack.switch.clock
        self.is_new = True

    def host(self, server: str) -> Any:
        raise NotSupported(f"{server} has no SSH")

    drive = host

    @property
    def equipment(self) -> Equipment:
        return replace(self.rack.equipment, power=self.power)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def rack(clock: VirtualClock) -> SimRack:
    return SimRack(clock)


@pytest.fixture
def bench(tmp_path: Path, rack: SimRack) -> BenchInService:
    return BenchInService(cast(Any, SimBench(described(tmp_path), rack)), {D01})


@pytest.fixture
def journal(tmp_path: Path, clock: VirtualClock) -> Iterator[Journal]:
    with closing(Journal(open_store(tmp_path / "store.sqlite", clock))) as journal:
        yield journal


def _soon(clock: VirtualClock) -> Deadline:
    return Deadline.after(clock, 10.0)


def test_what_is_out_is_neither_described_nor_offered(bench: BenchInService) -> None:
    assert "d01" not in bench.lab.drives
    assert not {name for name in (*bench.equipment.power, *bench.equipment.breakable) if name.endswith(":d01")}
    assert "switch_port:101" not in bench.equipment.breakable
    assert {"drive:d03", "server:srv1"} <= set(bench.equipment.breakable)
    bench.take_out({Part.server("srv1")})
    assert set(bench.lab.servers) == {"srv2"}
    assert set(bench.equipment.power) == {"server:srv2"}
    assert set(bench.equipment.breakable) == {"drive:d03", "cabling", "control"}
    bench.put_back({D01, Part.server("srv1")})
    assert bench.lab == whole(bench).lab
    assert bench.equipment == whole(bench).equipment


class Noted:
    """A register of these parts."""

    def __init__(self, *parts: str) -> None:
        self.parts = frozenset(parts)


def test_a_server_that_is_out_is_not_asked_for_its_notes(rack: SimRack, tmp_path: Path) -> None:
    """It may have no power, and heal would wait for it."""
    # Notes of a drive may be on any server that it was at.
    registers: Any = (Noted("slot:srv1/p0", "drive:d02"), Noted("slot:srv2/p0", "drive:d02"))
    whole = SimBench(described(tmp_path), rack)
    rack.equipment = replace(rack.equipment, server_registers=registers)
    bench = BenchInService(cast(Any, whole), {SRV2})
    assert bench.equipment.server_registers == registers[:1]
    bench.put_back({SRV2})
    assert bench.equipment.server_registers == registers


@pytest.mark.parametrize(
    ("out", "left"),
    [
        (Part.server("node2"), ["hdd1", "shelf1-0", "shelf1-1"]),
        (Part.port("node2", "p0"), ["shelf1-0", "shelf1-1"]),
        (Part.drive("hdd1"), ["hdd1"]),
    ],
    ids=str,
)
def test_a_drive_that_only_a_server_that_is_out_reaches_is_left_alone_with_it(out: Part, left: list[str]) -> None:
    """Without a switch: its faults are noted there, and its sectors written from there."""
    lab = load_lab("mock-direct")
    bench = BenchInService(cast(Any, SimpleNamespace(lab=lab)), {out})
    assert [name for name in (*lab.drives, "gone") if bench.leaves_alone(Part.drive(name))] == left


def test_the_switch_shows_the_circuits_of_what_is_in_service(bench: BenchInService, clock: VirtualClock) -> None:
    assert bench.equipment.fabric.live_map(_soon(clock)).pairs == bench.lab.baseline_map() == BASELINE.without({101})
    bench.take_out({SRV2})
    assert bench.equipment.fabric.live_map(_soon(clock)).pairs == bench.lab.baseline_map() == PortMap.of([(2, 102)])


def test_a_full_map_leaves_the_circuits_of_what_is_out(
    bench: BenchInService, rack: SimRack, clock: VirtualClock
) -> None:
    bench.equipment.fabric.apply(Full(PortMap.of([(2, 103)])), _soon(clock))
    assert rack.switch.live == PortMap.of([(1, 101), (2, 103)])
    bench.equipment.fabric.apply(Full(PortMap.of([(1, 103)])), _soon(clock))
    assert rack.switch.live == PortMap.of([(1, 103)])


def test_a_staged_map_leaves_the_circuits_of_what_is_out(
    bench: BenchInService, rack: SimRack, clock: VirtualClock
) -> None:
    fabric = stager(bench.equipment.fabric)
    staged = fabric.stage(Full(PortMap.of([(2, 103)])), _soon(clock))
    assert rack.switch.live == BASELINE
    fabric.trigger(staged, _soon(clock))
    assert rack.switch.live == PortMap.of([(1, 101), (2, 103)])
    with pytest.raises(BadInput, match="ports 101 belong to what is out of service"):
        fabric.stage(Partial(PortMap.of([(2, 101)])), _soon(clock))


@pytest.mark.parametrize(
    "change", [Full(PortMap.of([(2, 101)])), Partial(PortMap.of([(2, 101)])), Open(frozenset({101}))]
)
def test_nobody_joins_or_opens_what_is_out(
    bench: BenchInService, rack: SimRack, clock: VirtualClock, change: Any
) -> None:
    with pytest.raises(BadInput, match="ports 101 belong to what is out of service"):
        bench.equipment.fabric.apply(change, _soon(clock))
    assert rack.switch.live == BASELINE


def test_what_is_refused_for_what_is_out_leaves_nothing_to_undo(
    bench: BenchInService, clock: VirtualClock, journal: Journal
) -> None:
    acting = journalled(bench.equipment, ActRecorder(bench.lab, journal, "run-1"))
    with pytest.raises(BadInput, match="out of service"):
        acting.fabric.apply(Partial(PortMap.of([(2, 101)])), _soon(clock))
    assert journal.standing("bench") == []


def test_a_full_map_for_another_generation_is_refused(bench: BenchInService, clock: VirtualClock) -> None:
    with pytest.raises(StaleGeneration):
        bench.equipment.fabric.apply(Full(PortMap()), _soon(clock), on=LiveMap(99, BASELINE))


def test_a_rack_is_healed_around_what_is_out(
    bench: BenchInService, rack: SimRack, clock: VirtualClock, journal: Journal
) -> None:
    bench.put_back({D01})
    recorder = ActRecorder(bench.lab, journal, "by hand", disturbs=frozenset(bench.lab.drives))
    by_hand = journalled(whole(bench).equipment, recorder)
    by_hand.power["server:srv2"].turn_off(_soon(clock))
    by_hand.fabric.apply(Open(frozenset({2})), _soon(clock))
    bench.take_out({SRV2})
    rack.parts["drive:d01"].break_as("somebody", {"kind": "hang"}, _soon(clock))
    bench.take_out({D01})
    report = heal(bench.lab, journal, bench.equipment, clock, _soon(clock), leave=bench.leaves_alone)
    assert report.problems == ()
    assert rack.parts["drive:d01"].broken
    assert rack.switch.live == BASELINE
    assert not whole(bench).equipment.power["server:srv2"].is_on(_soon(clock))
    assert [entry.resource for entry in journal.standing("bench")] == ["server:srv2"]


@pytest.mark.parametrize("part", [D01, SRV2, Part.port("srv2", "p0")], ids=str)
def test_the_switch_keeps_its_power_while_a_part_is_out_and_is_given_it(
    bench: BenchInService, rack: SimRack, clock: VirtualClock, journal: Journal, part: Part
) -> None:
    """Its circuit would go with the switch's power."""
    bench.put_back({D01})
    cast(Any, bench.whole).power["switch"] = rack.outlets["switch"]
    recorder = ActRecorder(bench.lab, journal, "run-1", disturbs=frozenset(bench.lab.drives))
    bench.take_out({part})
    with pytest.raises(NotSupported, match=f"{part.said} is out of service"):
        journalled(bench.equipment, recorder).power["switch"].turn_off(_soon(clock))
    assert (rack.switch.live, journal.standing("bench")) == (BASELINE, [])
    journalled(whole(bench).equipment, recorder).power["switch"].turn_off(_soon(clock))
    report = heal(bench.lab, journal, bench.equipment, clock, _soon(clock), leave=bench.leaves_alone)
    assert (report.problems, rack.outlets["switch"].on, rack.switch.live) == ((), True, BASELINE)


def test_a_server_keeps_its_power_while_a_drive_of_it_is_out(bench: BenchInService, clock: VirtualClock) -> None:
    """Its firmware may be written from there."""
    power = bench.equipment.power
    with pytest.raises(NotSupported, match="drive d01 is out of service"):
        power["server:srv1"].turn_off(_soon(clock))
    power["server:srv2"].turn_off(_soon(clock))
    assert (power["server:srv1"].is_on(_soon(clock)), power["server:srv2"].is_on(_soon(clock))) == (True, False)


@pytest.mark.parametrize(("out", "is_kept"), [(D01, True), (SRV2, False)], ids=str)
def test_a_server_that_is_leased_without_its_drives_keeps_its_power_for_them(
    rack: SimRack, clock: VirtualClock, tmp_path: Path, out: Part, *, is_kept: bool
) -> None:
    """As a command by hand leases it."""
    rack.parts["slot:srv1/p0"] = SimPart("slot_power_off")
    whole = SimBench(described(tmp_path), rack)
    held = SimpleNamespace(parts=parts_for(whole.lab, Part.server("srv1")), leases=None)
    bench = BenchInService(LeasedBench(cast(Any, whole), cast(Any, held)), {out})
    assert ("slot:srv1/p0" in bench.equipment.breakable) is not is_kept
    with pytest.raises(NotSupported, match="d01 is out of service") if is_kept else nullcontext():
        bench.equipment.power["server:srv1"].turn_off(_soon(clock))
    assert whole.power["server:srv1"].on is is_kept


@pytest.mark.parametrize("place", ["slot:srv1/p0", "phy:srv1/p0"])
@pytest.mark.parametrize("part", [D01, Part.port("srv1", "p0"), Part.server("srv1")])
def test_what_a_killed_run_did_to_the_place_of_a_drive_that_is_out_waits(
    bench: BenchInService, rack: SimRack, clock: VirtualClock, journal: Journal, part: Part, place: str
) -> None:
    """A hand may be in that slot."""
    bench.put_back({D01})
    other = place.replace("p0", "p1")
    rack.parts |= {name: SimPart("slot_power_off", name=name) for name in (place, other)}
    rack.equipment = replace(rack.equipment, breakable=rack.parts)
    acting = journalled(whole(bench).equipment, ActRecorder(bench.lab, journal, "run-1"))
    for name in (place, other):
        acting.breakable[name].break_as("run-1/1", {"kind": "slot_power_off"}, _soon(clock))
    bench.take_out({part})
    assert (bench.leaves_alone(Part.of(place)), bench.leaves_alone(Part.of("slot:gone/p0"))) == (True, False)
    report = heal(bench.lab, journal, bench.equipment, clock, _soon(clock), leave=bench.leaves_alone)
    assert (report.problems, bool(rack.parts[place].broken)) == ((), True)
    assert bool(rack.parts[other].broken) is (part == Part.server("srv1"))
    bench.put_back({part})
    heal(bench.lab, journal, bench.equipment, clock, _soon(clock), leave=bench.leaves_alone)
    assert (rack.parts[place].broken, journal.standing("bench")) == ({}, [])


def test_a_signal_that_a_killed_run_took_from_what_is_out_waits(
    bench: BenchInService, rack: SimRack, clock: VirtualClock, journal: Journal
) -> None:
    """A hand may be in that slot, and its drive in no state to be waited for."""
    phy = RestoringPhy(rack.switch)
    rack.equipment = replace(rack.equipment, phy=phy)
    acting = journalled(whole(bench).equipment, ActRecorder(whole(bench).lab, journal, "run-1")).phy
    assert acting is not None
    for number, port in enumerate((101, 102)):
        acting.drop([port], 3600, _soon(clock), request_id=number)
    report = heal(bench.lab, journal, bench.equipment, clock, _soon(clock), leave=bench.leaves_alone)
    assert (report.problems, len(report.undone), phy.restored) == ((), 1, [(102,)])
    bench.put_back({D01})
    assert heal(bench.lab, journal, bench.equipment, clock, _soon(clock), leave=bench.leaves_alone).is_healed
    assert (phy.restored, journal.standing("bench")) == ([(102,), (101,)], [])


@pytest.mark.parametrize(
    ("out", "left"),
    [(Part.drive("hdd1"), [5]), (Part.drive("shelf1-1"), [4]), (Part.server("node1"), [1, 2, 3])],
    ids=str,
)
def test_without_a_switch_the_phys_of_what_is_out_are_left_alone(out: Part, left: list[int]) -> None:
    bench = BenchInService(cast(Any, SimpleNamespace(lab=load_lab("mock-direct"))), {out})
    assert [number for number in range(1, 9) if bench.leaves_alone(Part.switch_port(number))] == left


def _remapped_by_a_run_that_was_killed(bench: BenchInService, journal: Journal, clock: VirtualClock) -> None:
    """Both drives of srv1 changed places, another pair was opened, and it was all kept as the power-on map."""
    bench.put_back({D01})
    acting = journalled(whole(bench).equipment, ActRecorder(bench.lab, journal, "run-1"))
    acting.fabric.apply(Open(frozenset({6})), _soon(clock))
    acting.fabric.apply(Partial(PortMap.of([(1, 102), (2, 101)])), _soon(clock))
    acting.fabric.save_boot_map(_soon(clock))


@pytest.mark.parametrize("part", [D01, Part.server("srv1"), Part.port("srv1", "p0")])
def test_what_a_killed_run_did_to_circuits_of_what_is_out_now_waits_without_being_a_problem(
    bench: BenchInService, rack: SimRack, clock: VirtualClock, journal: Journal, part: Part
) -> None:
    _remapped_by_a_run_that_was_killed(bench, journal, clock)
    bench.take_out({part})
    for undone in (1, 0):
        report = heal(bench.lab, journal, bench.equipment, clock, _soon(clock), leave=bench.leaves_alone)
        assert report.problems == ()
        assert len(report.undone) == undone
        assert (6, 104) in rack.switch.live
        assert len(journal.standing("bench")) == 2
    bench.put_back({part})
    report = heal(bench.lab, journal, bench.equipment, clock, _soon(clock), leave=bench.leaves_alone)
    assert report.is_healed
    assert (rack.switch.live, rack.switch.saved) == (BASELINE, BASELINE)
    assert journal.standing("bench") == []


def test_nothing_of_what_is_out_is_remapped_by_heal(
    bench: BenchInService, rack: SimRack, clock: VirtualClock, journal: Journal
) -> None:
    bench.put_back({D01})
    acting = journalled(whole(bench).equipment, ActRecorder(bench.lab, journal, "run-1"))
    acting.fabric.apply(Partial(PortMap.of([(3, 101)])), _soon(clock))
    bench.take_out({D01})
    assert heal(bench.lab, journal, bench.equipment, clock, _soon(clock), leave=bench.leaves_alone).is_healed
    assert (3, 101) in rack.switch.live
    bench.put_back({D01})
    assert heal(bench.lab, journal, bench.equipment, clock, _soon(clock), leave=bench.leaves_alone).is_healed
    assert rack.switch.live == BASELINE


@pytest.mark.parametrize(("later_s", "waits_s"), [(29, 45), (31, 10)])
def test_a_server_that_a_killed_run_gave_a_new_start_has_its_time_to_boot(
    tmp_path: Path, rack: SimRack, clock: VirtualClock, journal: Journal, later_s: float, waits_s: float
) -> None:
    """Its panic is over in the journal, which says nothing of the boot."""
    given: list[float] = []

    class Booting(Noted):
        """The register of a server that answers once it has booted."""

        def standing(self, deadline: Deadline) -> dict[str, Any]:
            given.append(deadline.remaining_s())
            return {}

    rack.equipment = replace(rack.equipment, server_registers=cast(Any, (Booting("slot:srv1/p0"),)))
    bench = BenchInService(cast(Any, SimBench(described(tmp_path), rack)))
    restart_notes(journal, "bench", "server:srv1", None)("restart/on", {"kind": "restart"}).close()
    clock.advance(later_s)
    with leased(bench.lab, journal.store) as held:
        assert bench.heal(journal, held).problems == ()
    assert given == [waits_s]


@pytest.mark.parametrize(
    ("subject", "is_out"),
    [
        ("d01", True),
        ("d02", False),
        ("srv1", False),
        ("srv1 p0", True),
        ("srv1 p0 phy-0:0", True),
        ("srv1 p1", False),
        ("srv1 p0 p1", False),
        ("srv2", True),
        ("srv2 p0", True),
        ("srv1 serial OTHER", False),
    ],
)
def test_what_is_out_is_not_judged(bench: BenchInService, subject: str, is_out: bool) -> None:
    bench.take_out({SRV2})
    assert is_about_what_is_out(bench, subject) == is_out
    assert not is_about_what_is_out(whole(bench), subject)


def test_a_port_is_refused_for_what_of_it_is_out_and_why(bench: BenchInService) -> None:
    with pytest.raises(NotSupported, match="drive d01 is out of service"):
        bench.require("srv1", "p0")
    bench.require("srv1")
    bench.take_out([Part.server("srv1")])
    with pytest.raises(NotSupported, match="server srv1 is out of service"):
        bench.require("srv1", "p1")
    with pytest.raises(BadInput, match="'srv9'"):
        bench.require("srv9", "p0")


def test_the_owner_of_a_bench_says_what_becomes_of_a_test_that_needs_what_is_out(bench: BenchInService) -> None:
    refused = BenchInService(bench.whole, {D01}, refusal=lambda gear: LabError(f"{gear.said} is in quarantine"))
    with pytest.raises(LabError, match="drive d01 is in quarantine"):
        refused.require("srv1", "p0")
    assert refused.lab.missing == {"d01": "drive d01 is in quarantine"}


def test_a_fault_of_what_is_out_or_not_leased_is_not_supported_and_says_why(bench: BenchInService) -> None:
    with pytest.raises(NotSupported, match="drive d01 is out of service"):
        bench.lab.part("d01")
    lab = load_lab("mock")
    part = lab.restricted(parts_of(lab, ["srv1"]))
    for written in ("srv2", "srv2.p0", "srv2/p0"):
        with pytest.raises(NotSupported, match=r"^server srv2 is not in the lease, which has srv1"):
            part.part(written)
    bench.whole.lab = part  # type: ignore[misc]
    with pytest.raises(NotSupported, match="server srv2 is not in the lease"):
        BenchInService(bench.whole).require("srv2", "p0")
