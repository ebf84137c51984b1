"""The switch in front of a simulated rack: what rackd does shows at the switch, and the other way round."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from rackloop.abilities import LiveMap, PortState
from rackloop.errors import FabricError, NotConnected
from rackloop.portmap import Full, Open, Partial, PortMap
from rackloop_drivers.fabric.flexfabric import (
    FlexFabric,
    FlexFabricPhy,
    LineFault,
    LineFaultRule,
    RackdMatrix,
    SwitchPeer,
    SwitchThread,
    open_flexfabric,
)
from tests.deadlines import CLOCK, soon
from tests.rackd_process import RunningRackd, running_rackd
from tests.switch_in_memory import tcp

CABLED = PortMap.of([(1, 101), (2, 102)])


@contextmanager
def rack(directory: Path) -> Iterator[tuple[RunningRackd, SwitchThread, FlexFabric]]:
    with running_rackd(directory) as rackd:
        matrices: list[RackdMatrix] = []

        async def make() -> SwitchPeer:
            matrices.append(await RackdMatrix.connect(rackd.control))
            return SwitchPeer(matrices[0])

        with SwitchThread(make) as thread:
            fabric = FlexFabric(open_flexfabric(tcp(thread), CLOCK, soon(), answer_within_s=5))
            try:
                yield rackd, thread, fabric
            finally:
                fabric.close()
                thread.call(lambda _peer: matrices[0].close())


def test_a_change_at_the_switch_moves_drives(tmp_path: Path) -> None:
    with rack(tmp_path) as (rackd, _, fabric), closing(rackd.connect()) as control, control.subscribe() as truth:
        applied = fabric.apply(Full(CABLED), soon())
        answer = control.request("get_map", soon())
        assert (answer["generation"], answer["pairs"]) == (applied.generation, [[1, 101], [2, 102]])
        record = truth.next_before(soon())
        while record.get("event") != "executed" or record["generation"] != applied.generation:
            record = truth.next_before(soon())
        assert applied.commanded_ns <= record["t_ns"] <= applied.acknowledged_ns


def test_a_trained_link_is_up_and_a_dropped_one_is_not(tmp_path: Path) -> None:
    with rack(tmp_path) as (_, _, fabric):
        fabric.apply(Full(CABLED), soon())
        deadline = soon()
        while fabric.port_states([1], deadline)[1] is not PortState.UP:
            assert not deadline.is_over()
        phy = FlexFabricPhy(fabric.session)
        phy.drop([1], 3600, soon(), request_id=1)
        assert fabric.port_states([1, 101, 3], soon()) == dict.fromkeys((1, 101, 3), PortState.DOWN)
        assert phy.drop_counts([1, 101, 2], soon()) == {1: 1, 101: 1, 2: 0}


@pytest.mark.parametrize("times", [(0.05, 0.0, 2), (0.0, 0.05, 2), (0.05, 0.05, 10_001)])
def test_a_time_or_count_that_rackd_does_not_take_is_out_of_range(
    tmp_path: Path, times: tuple[float, float, int]
) -> None:
    with rack(tmp_path) as (_, _, fabric), pytest.raises(FabricError, match=r"-222,.Data out of range"):
        FlexFabricPhy(fabric.session).flap([1], *times, soon(), request_id=1)


def test_power_loss_brings_the_saved_map_back(tmp_path: Path) -> None:
    with rack(tmp_path) as (_, thread, fabric):
        fabric.apply(Full(CABLED), soon())
        fabric.save_boot_map(soon())
        generation = fabric.apply(Open(frozenset({1, 2})), soon()).generation
        thread.call(lambda peer: peer.power_cycle())
        assert fabric.live_map(soon()) == LiveMap(generation + 1, CABLED)
        assert fabric.boot_map(soon()) == CABLED


@pytest.mark.parametrize("act", [LineFault.POWER_LOSS_BEFORE, LineFault.POWER_LOSS_AFTER])
def test_power_loss_around_a_trigger_is_one_clear_error(tmp_path: Path, act: LineFault) -> None:
    with rack(tmp_path) as (_, thread, fabric):

        async def install(peer: SwitchPeer) -> None:
            peer.line_faults.install(LineFaultRule(act, match=":TRIG"))

        thread.call(install)
        with pytest.raises(FabricError, match="lost power or another controller"):
            fabric.apply(Full(CABLED), soon())
        assert fabric.live_map(soon()).pairs == PortMap()


def test_a_stuck_port_is_named(tmp_path: Path) -> None:
    with rack(tmp_path) as (_, thread, fabric):
        fabric.apply(Full(CABLED), soon())
        thread.call(lambda peer: peer.stick(1, stuck=True))
        with pytest.raises(FabricError, match=r"ports \[1, 101, 103\] did not follow"):
            fabric.apply(Partial(PortMap.of([(1, 103)])), soon())


def test_a_switch_without_its_rack_still_answers(tmp_path: Path) -> None:
    with rack(tmp_path) as (rackd, _, fabric):
        rackd.stop()
        with pytest.raises(FabricError, match="rackd") as caught:
            fabric.live_map(soon())
        assert caught.value.code == -240
        assert fabric.identify(soon()).model == "FlexFabric-160"


def test_a_rack_that_is_not_there_is_said(tmp_path: Path) -> None:
    async def make() -> SwitchPeer:
        return SwitchPeer(await RackdMatrix.connect(tmp_path / "control.sock"))

    with pytest.raises(NotConnected, match="no rackd listens on"), SwitchThread(make):
        pass
