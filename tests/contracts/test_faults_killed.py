"""A process that is killed at any step of breaking a rack: another one heals it, and nothing is left.

The killed one breaks a mock rack through the same guard, journal and drivers as a run does; what is left is asked of
the simulated rack itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import pytest

from rackloop.faults import KINDS, FaultSpec
from rackloop.seed import stream
from tests.fault_process import FaultProcesses, fault_processes
from tests.faulty_rack import FaultyRack, faulty_rack

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
    "server_nmi": [FaultSpec("server_nmi", "srv2")],
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
DIRECT = {
    "hot_unplug": [FaultSpec("hot_unplug", "ssd1")],
    "slot_power_loss": [FaultSpec("slot_power_loss", "fast1")],
    "link_disable": [FaultSpec("link_disable", "fast1")],
    "device_off": [FaultSpec("device_off", "shelf1-0")],
    "phy_disable": [FaultSpec("phy_disable", "node2.p1")],
    "phy_drop without a switch": [FaultSpec("phy_drop", "node1.p2")],
    "a server alone": [FaultSpec("hot_unplug", "sas1"), FaultSpec("power_loss", "node2")],
}
BY_LAB = {"mock": SWITCHED, "mock-direct": DIRECT}
# Of each a step drawn by chance; the nightly tests make all.
SAMPLE = {
    "mock": ("phy_drop", "miswire", "hang", "server_crash", "switch_power_loss", "no way in", "all dark"),
    "mock-direct": ("hot_unplug",),
}


@pytest.fixture(scope="module")
def processes() -> Iterator[FaultProcesses]:
    with fault_processes() as ready:
        yield ready


@pytest.fixture(scope="module")
def rack(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultyRack]:
    with faulty_rack(tmp_path_factory.mktemp("killed"), request.param) as ready:
        yield ready


def on_their_racks(names: Mapping[str, Iterable[str]]) -> pytest.MarkDecorator:
    """A test for each of BY_LAB that is named, on a rack of its lab."""
    pairs = [(lab, name) for lab, of_lab in names.items() for name in of_lab]
    return pytest.mark.parametrize(("rack", "name"), pairs, indirect=["rack"])


def kill_and_heal(rack: FaultyRack, processes: FaultProcesses, specs: list[FaultSpec], step: int) -> None:
    before = rack.truth()
    processes.kill_at(rack.lab.name, rack.root, specs, step)
    report = rack.heal()
    assert report.problems == ()
    assert report.mended == ()
    assert rack.truth() == before
    assert rack.journal.standing(rack.lab.name) == []


def test_every_kind_of_fault_is_killed_in() -> None:
    assert {spec.kind for specs in (*SWITCHED.values(), *DIRECT.values()) for spec in specs} == set(KINDS)


@on_their_racks(SAMPLE)
def test_a_process_killed_at_some_step_of_a_fault_leaves_nothing(
    rack: FaultyRack, processes: FaultProcesses, name: str
) -> None:
    specs = BY_LAB[rack.lab.name][name]
    steps = processes.steps(rack.lab.name, rack.root, specs)
    kill_and_heal(rack, processes, specs, stream(20261122, name).randint(2, steps))


@pytest.mark.nightly
@on_their_racks(BY_LAB)
def test_a_process_killed_at_any_step_of_a_fault_leaves_nothing(
    rack: FaultyRack, processes: FaultProcesses, name: str
) -> None:
    specs = BY_LAB[rack.lab.name][name]
    for step in range(1, processes.steps(rack.lab.name, rack.root, specs) + 1):
        kill_and_heal(rack, processes, specs, step)
