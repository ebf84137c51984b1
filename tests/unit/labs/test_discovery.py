"""Asking all servers of a bench at once, and holding what they see against the switch's map as it is then."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from rackloop.abilities import Host, LiveMap
from rackloop.abilities.inventory import HostInventory
from rackloop.clock import Deadline, VirtualClock
from rackloop.errors import LabError, NotConnected, NotSupported
from rackloop.lab import Lab, Part
from rackloop.portmap import PortMap
from rackloop_fixtures.rack.start import require_cabling
from rackloop_labs.bench_view import BenchInService
from rackloop_labs.discovery import at_rest, check_cabling, inventories, with_paths
from tests.unit.harness.answering_server import AnsweringServer
from tests.unit.harness.cabled_rack import SWITCHED, CabledRack, described


@dataclass
class SimFabric:
    """A switch that only tells its map; ``after_reading`` is called after each time it did.

    Where it shows the ports of a lease alone, ``others`` is the whole map.
    """

    live: PortMap
    others: PortMap | None = None
    generation: int = 1
    after_reading: Callable[[], None] = lambda: None

    def live_map(self, deadline: Deadline) -> LiveMap:
        told = LiveMap(self.generation, self.live, self.others)
        self.after_reading()
        return told


@dataclass
class SimBench:
    """As much of a bench as discovery asks for: its servers see what ``rack`` has, once they are asked."""

    rack: CabledRack
    clock: VirtualClock = field(default_factory=VirtualClock)
    fabric: SimFabric = field(init=False)
    asked: list[str] = field(default_factory=list)
    silent: tuple[str, ...] = ()
    has_servers: bool = True

    def __post_init__(self) -> None:
        self.fabric = SimFabric(self.rack.live)

    @property
    def lab(self) -> Lab:
        return self.rack.lab

    @property
    def equipment(self) -> SimBench:
        return self

    def host(self, server: str) -> Host:
        if not self.has_servers:
            raise NotSupported(f"{server}: this lab has no servers")
        return AnsweringServer(server, look=lambda _: self.seen(server))

    def seen(self, server: str) -> HostInventory:
        self.asked.append(server)
        if server in self.silent:
            raise NotConnected(f"{server} does not answer")
        return self.rack.inventories()[server]


@pytest.fixture
def bench(tmp_path: Path) -> SimBench:
    return SimBench(CabledRack.of(described(SWITCHED, tmp_path)))


def soon(bench: SimBench) -> Deadline:
    return Deadline.after(bench.clock, 30)


def test_every_server_is_asked_and_those_that_fail_are_all_named(bench: Any) -> None:
    assert set(inventories(bench, soon(bench))) == {"srv1", "srv2", "srv3"}
    bench.silent = ("srv1", "srv3")
    with pytest.raises(NotConnected) as caught:
        inventories(bench, soon(bench))
    assert set(caught.value.children) == {"srv1", "srv3"}


def test_a_right_rack_is_looked_at_once(bench: Any) -> None:
    assert check_cabling(bench, soon(bench)) == []
    assert sorted(bench.asked) == ["srv1", "srv2", "srv3"]
    require_cabling(bench)


def test_a_swapped_cable_is_told_before_anything_is_written(bench: Any) -> None:
    bench.rack.swap(21, 23)
    with pytest.raises(LabError, match="not cabled as it is described, so nothing was written") as caught:
        require_cabling(bench)
    assert "the cables of d01 and d03 are swapped (switch ports 21 and 23)" in str(caught.value)


def test_a_drive_that_is_out_of_service_is_not_missed_in_its_expander(bench: Any) -> None:
    bench.rack.slots["exp1"].pop(0)
    (missing,) = check_cabling(bench, soon(bench))
    assert missing.drive == "d06"
    in_service = BenchInService(bench, [Part.drive("d06")])
    assert check_cabling(in_service, soon(bench)) == []
    bench.rack.slots["exp1"].pop(5)
    assert [found.drive for found in check_cabling(in_service, soon(bench))] == ["d08"]
    bench.rack.slots["exp1"].clear()
    (nothing,) = check_cabling(in_service, soon(bench))
    assert (nothing.port, nothing.expected, nothing.found) == ("p1", "exp1", "nothing")
    assert not in_service.leaves_alone(Part.switch_port(30))
    assert in_service.lab.baseline["srv2"]["p1"] == "exp1"
    in_service.take_out([Part.drive("d07"), Part.drive("d08")])
    assert check_cabling(in_service, soon(bench)) == []
    # Its circuit is now that of what is out alone, and stays as it is.
    assert in_service.leaves_alone(Part.switch_port(30))
    assert in_service.lab.baseline["srv2"] == {"p0": "d03"}


def test_a_drive_that_comes_while_it_is_looked_for_is_no_disagreement(bench: Any) -> None:
    late = bench.rack.sockets.pop(21)

    def come() -> None:
        if len(bench.asked) >= 9:
            bench.rack.sockets[21] = late

    bench.fabric.after_reading = come
    assert check_cabling(bench, soon(bench)) == []
    assert len(bench.asked) > 9


def test_what_is_wrong_for_five_seconds_is_wrong(bench: Any) -> None:
    del bench.rack.sockets[21]
    before_ns = bench.clock.now_ns()
    (found,) = check_cabling(bench, soon(bench))
    assert found.port == "p0"
    assert 5.0 <= (bench.clock.now_ns() - before_ns) / 1e9 < 6.0


def test_a_map_that_changes_while_hosts_are_asked_is_looked_at_again(bench: Any) -> None:
    def remap() -> None:
        if bench.fabric.generation == 1:
            bench.fabric.generation = 2
            bench.rack.live = bench.fabric.live = PortMap.of([(1, 22), (2, 21)])

    bench.fabric.after_reading = remap
    assert check_cabling(bench, soon(bench)) == []
    assert len(bench.asked) == 6


def test_what_servers_see_is_of_the_map_that_it_is_described_by(bench: Any) -> None:
    def remap() -> None:
        if bench.fabric.generation == 1:
            bench.fabric.generation = 2
            bench.rack.live = bench.fabric.live = PortMap.of([(1, 22), (2, 21)])

    bench.fabric.after_reading = remap
    live, seen = at_rest(bench, soon(bench))
    assert (live.generation, live.pairs.peer_of(1)) == (2, 22)
    assert [drive.identity.serial for drive in seen["srv1"].drives] == ["002", "S1"]
    assert len(bench.asked) == 6


def test_a_map_that_never_rests_is_not_described(bench: Any) -> None:
    def remap() -> None:
        bench.fabric.generation += 1

    bench.fabric.after_reading = remap
    with pytest.raises(LabError, match="changed whenever its servers were asked"):
        at_rest(bench, soon(bench))


def test_ports_that_others_remap_all_the_time_are_not_looked_at_again(bench: Any) -> None:
    def remap() -> None:
        bench.fabric.generation += 1

    bench.fabric.after_reading = remap
    with pytest.raises(
        LabError, match="changed whenever its servers were asked: see with `rackloop lab status cabled`"
    ):
        check_cabling(bench, soon(bench))
    bench.asked.clear()
    bench.fabric.others = bench.fabric.live
    assert check_cabling(bench, soon(bench)) == []
    assert len(bench.asked) == 3


def test_a_port_that_does_not_follow_the_baseline_is_told(bench: Any) -> None:
    stuck = bench.rack.live.without([1])
    bench.rack.live = bench.fabric.live = stuck
    assert check_cabling(bench, soon(bench)) == []
    with pytest.raises(LabError) as caught:
        require_cabling(bench)
    assert "switch port 1: joined to nothing, at the baseline to 21; it is stuck, or another" in str(caught.value)
    assert "switch port 21: joined to nothing, at the baseline to 1" in str(caught.value)


def test_a_lab_without_servers_to_ask_says_so(bench: Any) -> None:
    bench.has_servers = False
    with pytest.raises(NotSupported, match="no servers"):
        require_cabling(bench)


def test_a_mock_lab_knows_where_its_ports_are(tmp_path: Path) -> None:
    lab = described(SWITCHED, tmp_path)
    servers = {
        name: server.model_copy(update={"paths": {"p1": "pci-0000:99:00.0"} if name == "srv2" else {}})
        for name, server in lab.servers.items()
    }
    filled = with_paths(lab.model_copy(update={"servers": servers}))
    assert filled.servers["srv1"].paths == {"p0": "pci-0000:10:00.0", "p1": "pci-0000:11:00.0"}
    assert filled.servers["srv2"].paths == {"p0": "pci-0000:10:00.0", "p1": "pci-0000:99:00.0"}
    physical = lab.model_copy(update={"servers": servers, "kind": "physical"})
    assert with_paths(physical).servers["srv1"].paths == {}
