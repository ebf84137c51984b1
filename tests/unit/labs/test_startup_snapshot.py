"""One reading at the start of a run: who it serves, and when it says nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from rackloop.abilities import LiveMap
from rackloop.clock import Deadline
from rackloop.errors import NotConnected
from rackloop.portmap import PortMap
from rackloop_labs.startup_snapshot import StartupSnapshot
from tests.unit.fixtures.test_health_watch import SimBench
from tests.unit.harness.cabled_rack import SWITCHED, CabledRack, described


@dataclass
class SwitchedBench(SimBench):
    """The simulated servers with a switch whose map is told from ``live``."""

    live: LiveMap = field(default_factory=lambda: LiveMap(1, PortMap.of([])))
    is_switch_gone: bool = False

    @property
    def equipment(self) -> Any:
        return SimpleNamespace(fabric=self)

    def live_map(self, _deadline: Deadline) -> LiveMap:
        if self.is_switch_gone:
            raise NotConnected("the switch does not answer")
        return self.live


@pytest.fixture
def bench(tmp_path: Any) -> Any:
    lab = described(SWITCHED, tmp_path)
    return SwitchedBench(CabledRack.of(lab), live=LiveMap(1, lab.baseline_map()))


def look_at(bench: Any) -> StartupSnapshot:
    return StartupSnapshot(bench, Deadline.after(bench.clock, 30), lambda server: ("echo", server))


def test_a_rack_in_order_is_read_once_for_all_who_ask(bench: Any) -> None:
    with look_at(bench) as look:
        assert look.answering() == {"srv1", "srv2", "srv3"}
        assert look.besides() == {name: f"echo {name}\n" for name in ("srv1", "srv2", "srv3")}
        found = look.as_described()
    assert found is not None
    assert set(found.servers) == {"srv1", "srv2", "srv3"}
    assert {"d01", "d04", "d06"} <= found.drives.keys()
    assert bench.since == [None] * 3


def test_swapped_cables_are_left_to_the_cabling_check(bench: Any) -> None:
    sockets = bench.rack.sockets
    sockets[21], sockets[24] = sockets[24], sockets[21]
    with look_at(bench) as look:
        assert look.answering() == {"srv1", "srv2", "srv3"}
        assert look.as_described() is None


def test_a_server_that_does_not_answer_is_not_among_those_that_do(bench: Any) -> None:
    bench.silent = {"srv2"}
    with look_at(bench) as look:
        assert look.answering() == look.besides().keys() == {"srv1", "srv3"}
        assert look.as_described() is None


def test_a_map_that_changed_meanwhile_makes_the_reading_worthless(bench: Any) -> None:
    with look_at(bench) as look:
        look.answering()
        bench.live = LiveMap(2, bench.live.pairs)
        assert look.as_described() is None


def test_ports_that_others_remap_meanwhile_leave_the_reading_its_worth(bench: Any) -> None:
    pairs = bench.live.pairs
    bench.live = LiveMap(1, pairs, whole=pairs)
    with look_at(bench) as look:
        look.answering()
        bench.live = LiveMap(2, pairs, whole=pairs)
        assert look.as_described() is not None


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_switch_that_does_not_answer_is_left_to_whoever_needs_it(when: str, bench: Any) -> None:
    bench.is_switch_gone = when == "before"
    with look_at(bench) as look:
        assert bool(look.answering()) is (when == "after")
        bench.is_switch_gone = True
        assert look.as_described() is None


def test_servers_that_nobody_can_reach_are_known_nothing_of(bench: Any) -> None:
    bench.has_hosts = False
    with look_at(bench) as look:
        assert look.answering() == frozenset()
        assert look.as_described() is None


def test_a_look_that_is_forgotten_says_nothing(bench: Any) -> None:
    with look_at(bench) as look:
        look.answering()
        look.forget()
        assert look.answering() == frozenset()
        assert look.besides() == {}
        assert look.as_described() is None
