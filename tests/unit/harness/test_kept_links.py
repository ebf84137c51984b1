"""Drives that are not scratch keep their links, whatever is done to the rack, unless the plan names them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from rackloop.clock import VirtualClock
from rackloop.errors import FaultRefused, NotSupported
from rackloop.faults import Faults, FaultSpec
from rackloop.lab import Lab, load_lab
from rackloop.portmap import Full, Open, Partial, PortMap
from rackloop.safety.store import open_store
from rackloop.safety.undo import ActRecorder, Equipment, Journal, LinkKept, journalled, undo
from rackloop.seed import stream
from rackloop_fixtures import Moving
from tests.deadlines import soon
from tests.unit.harness.sim_rack import SimOutlet, SimRack, described

CLOCK = VirtualClock()
ARCHIVE = {"d03"}


class World:
    def __init__(self, folder: Path, journal: Journal) -> None:
        self.lab: Lab = described(folder)
        self.rack = SimRack(CLOCK)
        self.journal = journal

    def acting(self, disturbs: set[str] | None = None) -> Equipment:
        recorder = ActRecorder(self.lab, self.journal, "run-1", disturbs=frozenset(disturbs or ()))
        return journalled(self.rack.equipment, recorder)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with ExitStack() as stack:
        store = open_store(tmp_path / "store.sqlite", CLOCK)
        stack.callback(store.close)
        yield World(tmp_path, Journal(store))


def dealt_anew(world: World) -> Partial:
    """Every circuit of the baseline in another's place."""
    pairs = list(world.lab.baseline_map())
    highs = [high for _, high in pairs]
    return Partial(PortMap.of(zip((low for low, _ in pairs), highs[1:] + highs[:1], strict=True)))


@pytest.mark.parametrize(
    "act",
    [
        lambda world, acting: acting.fabric.apply(dealt_anew(world), soon(clock=CLOCK)),
        lambda world, acting: acting.fabric.apply(Full(PortMap()), soon(clock=CLOCK)),
        lambda world, acting: acting.fabric.apply(Open(frozenset({103})), soon(clock=CLOCK)),
        lambda world, acting: acting.fabric.stage(Open(frozenset({103})), soon(clock=CLOCK)),
        lambda world, acting: acting.phy.drop([103], 0.01, soon(clock=CLOCK), request_id=1),
        lambda world, acting: acting.phy.flap([103], 0.01, 0.01, 2, soon(clock=CLOCK), request_id=1),
    ],
    ids=["shuffled", "opened all", "opened", "staged", "dropped", "flapped"],
)
def test_a_drive_that_is_not_scratch_keeps_its_link(world: World, act: Callable[[World, Equipment], object]) -> None:
    before = world.rack.equipment.fabric.live_map(soon(clock=CLOCK))
    with pytest.raises(LinkKept, match=r"d03 would lose the link.*disturbs: \[d03\]") as raised:
        act(world, world.acting())
    assert (raised.value.drives, raised.value.exit_code) == (("d03",), 2)
    assert world.rack.equipment.fabric.live_map(soon(clock=CLOCK)) == before
    assert world.journal.since(0) == []
    act(world, world.acting(ARCHIVE))


def test_a_port_at_the_other_end_is_no_way_around_it(world: World) -> None:
    peer = next(low for low, high in world.lab.baseline_map() if high == 103)
    phy = world.acting().phy
    assert phy is not None
    with pytest.raises(LinkKept, match="d03"):
        phy.drop([peer], 0.01, soon(clock=CLOCK), request_id=1)


def test_the_baseline_can_always_be_given_back(world: World) -> None:
    world.rack.equipment.fabric.apply(dealt_anew(world), soon(clock=CLOCK))
    world.acting().fabric.apply(Full(world.lab.baseline_map()), soon(clock=CLOCK))
    assert world.rack.equipment.fabric.live_map(soon(clock=CLOCK)).pairs == world.lab.baseline_map()


def test_what_a_plan_disturbed_is_undone(world: World) -> None:
    world.acting(ARCHIVE).fabric.apply(Open(frozenset({103})), soon(clock=CLOCK))
    standing = world.journal.standing(world.lab.name)
    assert undo(standing, world.rack.equipment, world.journal, soon(clock=CLOCK)).problems == ()
    assert world.rack.equipment.fabric.live_map(soon(clock=CLOCK)).pairs == world.lab.baseline_map()


@pytest.mark.parametrize("part", ["switch", "server:srv2", "drive:d03"])
def test_the_power_that_a_link_takes_stays_on(world: World, part: str) -> None:
    port = SimOutlet()
    world.rack.equipment = replace(world.rack.equipment, power={part: port, "server:srv1": SimOutlet()})
    with pytest.raises(LinkKept, match=r"d03 would lose the link"):
        world.acting().power[part].turn_off(soon(clock=CLOCK))
    assert port.told == []
    assert world.journal.since(0) == []
    world.acting().power["server:srv1"].turn_off(soon(clock=CLOCK))
    world.acting(ARCHIVE).power[part].turn_off(soon(clock=CLOCK))
    assert port.told == [False]


def test_a_drive_that_is_at_no_server_has_no_link_to_lose(world: World) -> None:
    baseline = {
        server: {port: at for port, at in ports.items() if at != "d03"} for server, ports in world.lab.baseline.items()
    }
    world.lab = world.lab.model_copy(update={"baseline": baseline})
    acting = world.acting()
    acting.power["switch"].turn_off(soon(clock=CLOCK))
    assert not world.rack.equipment.power["switch"].is_on(soon(clock=CLOCK))


@pytest.mark.parametrize(
    "spec", [FaultSpec("phy_drop", "d03", {"down_s": 0.01}), FaultSpec("phy_flap", "srv2.p0")], ids=str
)
def test_no_fault_takes_the_link_of_a_drive_that_is_not_scratch(world: World, spec: FaultSpec) -> None:
    def faults(disturbs: frozenset[str]) -> Faults:
        recorder = ActRecorder(world.lab, world.journal, "run-1", disturbs=disturbs)
        return Faults(world.lab, world.rack.equipment, CLOCK, recorder)

    with pytest.raises(FaultRefused, match="drive d03 is not marked scratch: true"):
        faults(frozenset()).begin(spec)
    with faults(frozenset(ARCHIVE)) as guard, guard.injected(spec):
        pass


def test_only_scratch_drives_are_moved_beside_a_test(tmp_path: Path) -> None:
    rack = load_lab("mock")
    archive = rack.drives["d09"].model_copy(update={"scratch": False})
    lab = rack.model_copy(update={"drives": {**rack.drives, "d09": archive}})
    moving = Moving.beside(lab, [("srv1", "p0")])
    assert not {"d01", "d09"} & set(moving.drives)
    assert "d02" in str(moving)
    chance = stream(1, "moving")
    for _ in range(20):
        whole = PortMap.of((*moving.rest, *moving.dealt(chance)))
        kept = {drive: lab.places[drive] for drive in ("d01", "d09")}
        assert {(lab.switch_port(*at), lab.where_is(drive)) for drive, at in kept.items()} <= set(whole)
    with pytest.raises(NotSupported, match="fewer than two scratch drives"):
        Moving.beside(lab, [at for drive, at in lab.places.items() if drive != "d02"])
