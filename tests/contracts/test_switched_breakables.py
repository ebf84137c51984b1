"""What servers of a rack with a switch break of their own links and slots: of the drive that the map joins there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rackloop.abilities import PortState
from rackloop.contracts import breakable
from rackloop.errors import FaultRefused, GuardRefused, LabError
from rackloop.faults import Faults, FaultSpec
from rackloop.lab import once_online
from rackloop.portmap import Full, Open, Partial, PortMap
from rackloop.safety.store import open_store
from rackloop.safety.undo import ActRecorder, Journal
from rackloop_drivers.host_tools import HostFaults
from rackloop_labs.mock import MockBench
from tests.deadlines import CLOCK, soon
from tests.mock_rack import running_mock_bench

WHOLE = [("slot:srv1/p0", "removed"), ("slot:srv1/p2", "slot_power_off"), ("phy:srv1/p0", "disabled")]
IN_SHORT = [("slot:srv2/p2", "removed"), ("slot:srv2/p2", "link_disabled"), ("phy:srv4/p3", "disabled")]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MockBench]:
    with running_mock_bench(tmp_path_factory.mktemp("rack")) as bench:
        yield bench


@contextmanager
def mapped(bench: MockBench, pairs: PortMap) -> Iterator[None]:
    """The baseline with these circuits instead, while the block runs."""
    fabric, baseline = bench.equipment.fabric, bench.lab.baseline_map()
    taken = pairs.ports()
    fabric.apply(Open(frozenset(taken & fabric.live_map(soon()).pairs.ports())), soon())
    fabric.apply(Partial(pairs), soon())
    try:
        yield
    finally:
        fabric.apply(Full(baseline), soon())
        for name, (server, port) in bench.lab.places.items():
            if bench.lab.where_is(name) in taken or bench.lab.switch_port(server, port) in taken:
                once_online(bench.drive(server, port), soon())
                assert_seen(bench, server, name)


def is_seen(bench: MockBench, server: str, drive: str) -> bool:
    listed = bench.host(server).run(["lsblk", "-dno", "SERIAL"], soon()).stdout.split()
    return bench.lab.drives[drive].serial in listed


def assert_seen(bench: MockBench, server: str, drive: str) -> None:
    assert soon().poll(lambda: is_seen(bench, server, drive), every_s=1e-2)


def part_of(bench: MockBench, name: str) -> HostFaults:
    part = bench.equipment.breakable[name]
    assert isinstance(part, HostFaults)
    return part


def arm_of(bench: MockBench, name: str, kind: str) -> breakable.BreakableArm:
    server, _, port = name.partition(":")[2].partition("/")
    drive = bench.lab.baseline[server][port]
    part = part_of(bench, name)
    return breakable.BreakableArm(lambda: part, {"kind": kind}, lambda: not is_seen(bench, server, drive))


@pytest.mark.parametrize("way", WHOLE, ids="-".join)
@pytest.mark.parametrize("clause", breakable.CONTRACT, ids=lambda clause: clause.__name__)
def test_a_mock_server(
    clause: Callable[[breakable.BreakableArm], None], way: tuple[str, str], bench: MockBench
) -> None:
    clause(arm_of(bench, *way))


@pytest.mark.parametrize("way", IN_SHORT, ids="-".join)
def test_a_mock_server_in_short(way: tuple[str, str], bench: MockBench) -> None:
    breakable.is_broken_and_mended(arm_of(bench, *way))


def test_a_drive_behind_the_switch_keeps_its_power_when_the_slot_of_a_server_loses_it(bench: MockBench) -> None:
    slot = part_of(bench, "slot:srv1/p2")
    slot.break_as("test/1", {"kind": "slot_power_off"}, soon())
    assert bench.rackd.request("power", soon(), target="drive:d09")["on"] is True
    port = bench.lab.switch_port("srv1", "p2")
    assert bench.equipment.fabric.port_states([port], soon()) == {port: PortState.DOWN}
    slot.mend("test/1", soon())
    assert_seen(bench, "srv1", "d09")


def circuit(bench: MockBench, drive: str) -> PortMap:
    """The drive at the first port of srv1."""
    return PortMap.of([(bench.lab.switch_port("srv1", "p0"), bench.lab.where_is(drive))])


def test_the_drive_that_the_map_joins_now_is_taken_away(bench: MockBench) -> None:
    slot = part_of(bench, "slot:srv1/p0")
    with mapped(bench, circuit(bench, "d19")):
        once_online(bench.drive("srv1", "p0"), soon())
        assert_seen(bench, "srv1", "d19")
        slot.break_as("test/2", {"kind": "removed"}, soon())
        assert not is_seen(bench, "srv1", "d19")
        slot.mend("test/2", soon())
        assert_seen(bench, "srv1", "d19")


@pytest.mark.parametrize(("name", "kind"), [("slot:srv1/p0", "removed"), ("phy:srv1/p0", "disabled")])
def test_a_drive_worth_keeping_is_not_taken_from_where_the_map_has_it_now(
    bench: MockBench, name: str, kind: str
) -> None:
    with mapped(bench, circuit(bench, "d20")):
        once_online(bench.drive("srv1", "p0"), soon())
        with pytest.raises(GuardRefused, match=r"d20 .*it is at srv1\.p0 now and not marked scratch: true"):
            part_of(bench, name).break_as("test/3", {"kind": kind}, soon())
        assert_seen(bench, "srv1", "d20")


def test_a_port_that_is_joined_to_nothing_has_nothing_to_take_away(bench: MockBench) -> None:
    fabric = bench.equipment.fabric
    fabric.apply(Open(frozenset({bench.lab.switch_port("srv1", "p0")})), soon())
    with pytest.raises(LabError, match=r"the switch joins srv1\.p0 to nothing now"):
        part_of(bench, "slot:srv1/p0").break_as("test/4", {"kind": "removed"}, soon())
    fabric.apply(Full(bench.lab.baseline_map()), soon())
    assert_seen(bench, "srv1", "d01")


def test_what_the_map_took_away_meanwhile_is_not_waited_for(bench: MockBench) -> None:
    slot, fabric = part_of(bench, "slot:srv1/p0"), bench.equipment.fabric
    slot.break_as("test/5", {"kind": "removed"}, soon())
    fabric.apply(Open(frozenset({bench.lab.switch_port("srv1", "p0")})), soon())
    slot.mend("test/5", soon())
    assert slot.standing(soon()) == {}
    fabric.apply(Full(bench.lab.baseline_map()), soon())
    assert_seen(bench, "srv1", "d01")


def test_a_fault_of_a_drive_that_is_elsewhere_now_is_refused(bench: MockBench, tmp_path: Path) -> None:
    store = open_store(tmp_path / "store.sqlite", CLOCK)
    faults = Faults(bench.lab, bench.equipment, CLOCK, ActRecorder(bench.lab, Journal(store), "run"))
    with (
        mapped(bench, circuit(bench, "d19")),
        faults,
        pytest.raises(FaultRefused, match=r"d01 is not at srv1\.p0 now, its place at the baseline; name the port"),
    ):
        faults.begin(FaultSpec("hot_unplug", "d01"))
    store.close()
