"""A process that is killed at any step of breaking a rack: another one heals it, and nothing is left.

The killed one breaks a mock rack through the same guard, journal and drivers as a run does; what is left is asked of
the simulated rack itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from rackloop.clock import Deadline
from rackloop.faults import KINDS, FaultSpec
from rackloop.heal import HealReport, heal
from rackloop.journal import Journal
from rackloop.lab import Lab
from rackloop.seed import stream
from rackloop.store import open_store
from rackloop_drivers.rackd import RackdControl
from rackloop_labs import MockLab
from tests.fault_victim import Nursery, nursery
from tests.mock_rack import CLOCK, MockRack, running_mock_rack, soon

SWITCHED = {
    "phy_drop": [FaultSpec("phy_drop", "srv1.p0")],
    "phy_flap": [FaultSpec("phy_flap", "d02", {"count": 1000})],
    "slow_training": [FaultSpec("slow_training", "d03")],
    "stuck_port": [FaultSpec("stuck_port", "port 9")],
    "miswire": [FaultSpec("miswire", "srv1.p0", {"with": "srv2.p1"})],
    "fail_stop": [FaultSpec("fail_stop", "d01")],
    "fail_slow": [FaultSpec("fail_slow", "d01")],
    "hang": [FaultSpec("hang", "d01")],
    "media_error": [FaultSpec("media_error", "d01")],
    "corrupt": [FaultSpec("corrupt", "d01")],
    "crash_on_remap": [FaultSpec("crash_on_remap", "d01")],
    "server_crash": [FaultSpec("server_crash", "srv2")],
    "server_hang": [FaultSpec("server_hang", "srv3")],
    "power_loss": [FaultSpec("power_loss", "srv1")],
    "power_loss of a drive": [FaultSpec("power_loss", "d04")],
    "partition": [FaultSpec("partition", "srv4")],
    "switch_power_loss": [FaultSpec("switch_power_loss", "switch")],
    "control_lost": [FaultSpec("control_lost", "switch")],
    "control_garbled": [FaultSpec("control_garbled", "switch")],
    "bmc_unreachable": [FaultSpec("bmc_unreachable", "srv1")],
    "a firmware crash": [FaultSpec("crash_on_remap", "d01"), FaultSpec("phy_drop", "d01", {"down_s": 0.01})],
    "no way in": [FaultSpec("power_loss", "srv1"), FaultSpec("bmc_unreachable", "srv1")],
    "all dark": [
        FaultSpec("stuck_port", "d05"),
        FaultSpec("switch_power_loss", "switch"),
        FaultSpec("server_crash", "srv2"),
        FaultSpec("control_lost", "switch"),
    ],
}
# Of each a step drawn by chance; the nightly tests make all.
SAMPLE = ("phy_drop", "miswire", "hang", "server_crash", "switch_power_loss", "no way in", "all dark")


class Rack:
    """A mock rack that is up, what it is like in truth, and how it is healed."""

    def __init__(self, rack: MockRack, journal: Journal) -> None:
        self.mock = rack
        self.journal = journal
        self.root = rack.state.directory.parent.parent
        self.lab: Lab = rack.lab

    def truth(self) -> dict[str, Any]:
        """What the simulated rack itself says that it is like."""
        with self.mock.rackd() as rackd:
            return {
                "map": sorted(map(tuple, rackd.request("get_map", soon())["pairs"])),
                "faults": rackd.request("faults", soon())["faults"],
                "disturbances": _of_interest(rackd.request("disturbances", soon())),
                "power": {target: _is_on(rackd, target) for target in self._targets()},
                "servers": self.mock.control.states(soon()),
                "parts": self.mock.control.all_standing(soon()),
            }

    def heal(self) -> HealReport:
        """Heal it as a new run does."""
        with closing(MockLab(self.lab, CLOCK, self.mock.state).open(1)) as bench:
            deadline = Deadline.after(CLOCK, 30)
            return heal(self.lab, self.journal, bench.equipment, CLOCK, deadline, look_at=bench)

    def _targets(self) -> list[str]:
        switch = ["switch"] if self.lab.has_switch else []
        return [*switch, *(f"server:{name}" for name in self.lab.servers), *(f"drive:{n}" for n in self.lab.drives)]


def _of_interest(answer: dict[str, Any]) -> dict[str, Any]:
    return {name: answer[name] for name in ("stuck", "miswired", "training", "dropped")}


def _is_on(rackd: RackdControl, target: str) -> bool:
    return bool(rackd.request("power", soon(), target=target)["on"])


@pytest.fixture(scope="module")
def victims() -> Iterator[Nursery]:
    with nursery() as ready:
        yield ready


@pytest.fixture(scope="module")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rack]:
    yield from _rack(tmp_path_factory.mktemp("killed"), "mock")


def _rack(root: Path, name: str) -> Iterator[Rack]:
    with running_mock_rack(root, name) as mock:
        journal = Journal(open_store(mock.state.store, CLOCK))
        try:
            yield Rack(mock, journal)
        finally:
            journal.close()


def kill_and_heal(rack: Rack, victims: Nursery, specs: list[FaultSpec], step: int) -> None:
    before = rack.truth()
    victims.kill_at(rack.lab.name, rack.root, specs, step)
    report = rack.heal()
    assert report.problems == ()
    assert report.mended == ()
    assert rack.truth() == before
    assert rack.journal.standing(rack.lab.name) == []


def test_every_fault_of_a_rack_with_a_switch_is_killed_in() -> None:
    made = {spec.kind for specs in SWITCHED.values() for spec in specs}
    only_without_a_switch = {"hot_unplug", "slot_power_loss", "device_off", "link_disable", "phy_disable"}
    assert made | only_without_a_switch == set(KINDS)


@pytest.mark.parametrize("name", SAMPLE)
def test_a_process_killed_at_some_step_of_a_fault_leaves_nothing(rack: Rack, victims: Nursery, name: str) -> None:
    steps = victims.steps(rack.lab.name, rack.root, SWITCHED[name])
    kill_and_heal(rack, victims, SWITCHED[name], stream(20261122, name).randint(2, steps))


@pytest.mark.nightly
@pytest.mark.parametrize("name", SWITCHED)
def test_a_process_killed_at_any_step_of_a_fault_leaves_nothing(rack: Rack, victims: Nursery, name: str) -> None:
    for step in range(1, victims.steps(rack.lab.name, rack.root, SWITCHED[name]) + 1):
        kill_and_heal(rack, victims, SWITCHED[name], step)
