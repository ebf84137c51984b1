"""The matrix of a virtual rack: which drive is pulled and plugged for which change of the map."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, cast

import pytest

from rackloop.clock import VirtualClock
from rackloop.errors import LabError, StaleGeneration
from rackloop.portmap import PortMap
from rackloop_drivers.fabric.flexfabric import MemoryMatrix
from rackloop_labs.virtual_rack.guest_drives import PluggedDrive
from rackloop_labs.virtual_rack.machine import Machine
from rackloop_labs.virtual_rack.matrix import PluggingMatrix
from rackloop_labs.virtual_rack.plugs import Socket

CLOCK = VirtualClock()
NO_MACHINE = cast(Machine, None)
# Server ports 1 to 3, drives 11 and 12; 20 leads to nothing that is plugged.
SOCKETS = {port: Socket(NO_MACHINE, port, f"srv.p{port}") for port in (1, 2, 3)}
DRIVES = {port: PluggedDrive(f"d{port}", f"S{port}", 1 << 30, 512) for port in (11, 12)}

Test = Callable[["RecordedPlugs", MemoryMatrix, PluggingMatrix], Coroutine[Any, Any, None]]


class RecordedPlugs:
    """Plugs that write down what they do; ``held`` sockets do not let go, ``slow`` ones take until they are told.

    Guests have ``ejected`` the drives of some; what ``late`` ones are given is there, and too late to be known.
    """

    def __init__(self) -> None:
        self.acts: list[str] = []
        self.held: set[int] = set()
        self.slow: dict[int, asyncio.Event] = {}
        self.ejected: set[int] = set()
        self.late: set[int] = set()

    async def holds(self, socket: Socket) -> bool:
        await asyncio.sleep(0)
        return socket.slot not in self.ejected

    async def plug(self, socket: Socket, drive: PluggedDrive) -> None:
        self.acts.append(f"{drive.name} into {socket.slot}")
        if socket.slot in self.late:
            raise LabError("no answer")

    async def pull(self, socket: Socket) -> None:
        await asyncio.sleep(0)
        if socket.slot in self.slow:
            await self.slow[socket.slot].wait()
        if socket.slot in self.held:
            raise LabError("it does not let go")
        self.acts.append(f"out of {socket.slot}")
        self.ejected.discard(socket.slot)

    def taken(self) -> list[str]:
        """What was done since this was asked last."""
        acts, self.acts = self.acts, []
        return acts


def with_matrix(test: Test) -> None:
    """Run ``test`` with a matrix that came up with drive 11 at port 1."""

    async def run() -> None:
        inner = MemoryMatrix(CLOCK, port_count=20, boot_map=PortMap.of([(1, 11)]))
        plugs = RecordedPlugs()
        matrix = PluggingMatrix(inner, SOCKETS, DRIVES, plugs)
        await matrix.catch_up()
        assert plugs.taken() == ["d11 into 1"]
        await test(plugs, inner, matrix)

    asyncio.run(run())


def test_a_drive_is_out_of_one_guest_before_it_is_in_the_other() -> None:
    async def test(plugs: RecordedPlugs, _: MemoryMatrix, matrix: PluggingMatrix) -> None:
        live = await matrix.map(PortMap.of([(2, 11)]), full=False, generation=1)
        assert (live.generation, live.pairs) == (2, PortMap.of([(2, 11)]))
        assert plugs.taken() == []
        await matrix.catch_up()
        assert plugs.taken() == ["out of 1", "d11 into 2"]

    with_matrix(test)


def test_guests_follow_every_change() -> None:
    async def test(plugs: RecordedPlugs, _: MemoryMatrix, matrix: PluggingMatrix) -> None:
        following = asyncio.create_task(matrix.follow())
        for port in (2, 3, 1):
            await matrix.map(PortMap.of([(port, 11)]), full=False, generation=None)
            while f"d11 into {port}" not in plugs.acts:
                await asyncio.sleep(0)
        await matrix.open([11], generation=None)
        while plugs.acts[-1] != "out of 1":
            await asyncio.sleep(0)
        following.cancel()
        assert [act for act in plugs.taken() if "into" in act] == ["d11 into 2", "d11 into 3", "d11 into 1"]

    with_matrix(test)


def test_guests_have_settled_once_no_drive_is_on_its_way() -> None:
    async def test(plugs: RecordedPlugs, _: MemoryMatrix, matrix: PluggingMatrix) -> None:
        plugs.slow[2] = asyncio.Event()
        following = asyncio.create_task(matrix.follow())
        await matrix.map(PortMap.of([(2, 11)]), full=False, generation=None)
        settling = asyncio.create_task(matrix.settled())
        while "d11 into 2" not in plugs.acts:
            await asyncio.sleep(0)
        assert not settling.done()
        plugs.slow[2].set()
        await settling
        following.cancel()

    with_matrix(test)


def test_a_guest_that_is_late_is_asked_again() -> None:
    async def test(plugs: RecordedPlugs, inner: MemoryMatrix, _: PluggingMatrix) -> None:
        matrix = PluggingMatrix(inner, SOCKETS, DRIVES, plugs, again_s=0.0)
        await matrix.catch_up()
        plugs.taken()
        plugs.held.add(1)
        following = asyncio.create_task(matrix.follow())
        await matrix.map(PortMap.of([(2, 11), (3, 12)]), full=False, generation=None)
        while "d12 into 3" not in plugs.acts:
            await asyncio.sleep(0)
        plugs.held.clear()
        while "d11 into 2" not in plugs.acts:
            await asyncio.sleep(0)
        following.cancel()
        assert plugs.taken() == ["d12 into 3", "out of 1", "d11 into 2"]

    with_matrix(test)


def test_a_drive_that_its_guest_ejected_is_plugged_in_again() -> None:
    async def test(plugs: RecordedPlugs, _: MemoryMatrix, matrix: PluggingMatrix) -> None:
        matrix.doubt(1)
        await matrix.catch_up()
        assert plugs.taken() == []
        plugs.ejected.add(1)
        matrix.doubt(1)
        await matrix.catch_up()
        assert plugs.taken() == ["out of 1", "d11 into 1"]

    with_matrix(test)


def test_a_drive_that_is_ejected_as_it_is_plugged_in_comes_again() -> None:
    async def test(plugs: RecordedPlugs, _: MemoryMatrix, matrix: PluggingMatrix) -> None:
        # Told while the drive is on its way there.
        plugs.slow[1] = asyncio.Event()
        following = asyncio.create_task(matrix.follow())
        await matrix.map(PortMap.of([(2, 11)]), full=False, generation=None)
        plugs.ejected.add(2)
        matrix.doubt(2)
        plugs.slow[1].set()
        while plugs.acts.count("d11 into 2") < 2:
            await asyncio.sleep(0)
        following.cancel()
        assert plugs.taken() == ["out of 1", "d11 into 2", "out of 2", "d11 into 2"]

    with_matrix(test)


def test_no_drive_waits_for_the_guest_of_another() -> None:
    async def test(plugs: RecordedPlugs, _: MemoryMatrix, matrix: PluggingMatrix) -> None:
        plugs.slow[1] = asyncio.Event()
        following = asyncio.create_task(matrix.follow())
        await matrix.map(PortMap.of([(2, 11), (3, 12)]), full=False, generation=None)
        while "d12 into 3" not in plugs.acts:
            await asyncio.sleep(0)
        # Changes made while a guest takes its time are followed too.
        await matrix.open([3], generation=None)
        while "out of 3" not in plugs.acts:
            await asyncio.sleep(0)
        assert "d11 into 2" not in plugs.acts
        plugs.slow[1].set()
        while "d11 into 2" not in plugs.acts:
            await asyncio.sleep(0)
        following.cancel()
        assert plugs.taken() == ["d12 into 3", "out of 3", "out of 1", "d11 into 2"]

    with_matrix(test)


def test_a_guest_that_does_not_let_go_is_asked_again_at_a_change_though_others_are_at_work(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def test(plugs: RecordedPlugs, _: MemoryMatrix, matrix: PluggingMatrix) -> None:
        await matrix.map(PortMap.of([(3, 12)]), full=False, generation=None)
        await matrix.catch_up()
        plugs.held.add(1)
        plugs.slow[3] = asyncio.Event()
        following = asyncio.create_task(matrix.follow())
        await matrix.open([11, 12], generation=None)
        while not caplog.records:
            await asyncio.sleep(0)
        plugs.held.clear()
        await matrix.map(PortMap.of([(2, 11)]), full=False, generation=None)
        while "d11 into 2" not in plugs.acts:
            await asyncio.sleep(0)
        following.cancel()
        assert [record.message for record in caplog.records] == ["it does not let go"]

    with_matrix(test)


def test_circuits_that_stay_are_not_touched() -> None:
    async def test(plugs: RecordedPlugs, _: MemoryMatrix, matrix: PluggingMatrix) -> None:
        await matrix.map(PortMap.of([(1, 11), (3, 12), (2, 20)]), full=True, generation=None)
        await matrix.catch_up()
        assert plugs.taken() == ["d12 into 3"]
        await matrix.open([3, 2], generation=None)
        await matrix.catch_up()
        assert plugs.taken() == ["out of 3"]

    with_matrix(test)


def test_two_drives_change_places() -> None:
    async def test(plugs: RecordedPlugs, _: MemoryMatrix, matrix: PluggingMatrix) -> None:
        await matrix.map(PortMap.of([(2, 12)]), full=False, generation=None)
        await matrix.catch_up()
        plugs.taken()
        await matrix.map(PortMap.of([(1, 12), (2, 11)]), full=False, generation=None)
        await matrix.catch_up()
        assert sorted(plugs.acts[:2]) == ["out of 1", "out of 2"]
        assert sorted(plugs.acts[2:]) == ["d11 into 2", "d12 into 1"]

    with_matrix(test)


def test_a_change_of_another_map_changes_nothing() -> None:
    async def test(plugs: RecordedPlugs, _: MemoryMatrix, matrix: PluggingMatrix) -> None:
        with pytest.raises(StaleGeneration):
            await matrix.open(None, generation=7)
        await matrix.catch_up()
        assert plugs.taken() == []

    with_matrix(test)


def test_a_drive_that_a_guest_does_not_let_go_of_is_in_no_other_guest() -> None:
    async def test(plugs: RecordedPlugs, _: MemoryMatrix, matrix: PluggingMatrix) -> None:
        plugs.held.add(1)
        await matrix.map(PortMap.of([(2, 11), (3, 12)]), full=False, generation=None)
        assert [str(error) for error in await matrix.catch_up()] == ["it does not let go"]
        assert plugs.taken() == ["d12 into 3"]
        plugs.held.clear()
        await matrix.catch_up()
        assert plugs.taken() == ["out of 1", "d11 into 2"]

    with_matrix(test)


@pytest.mark.parametrize("has_it", [True, False])
def test_a_drive_that_may_have_been_plugged_in_late_is_pulled_before_it_is_in_another_guest(has_it: bool) -> None:
    async def test(plugs: RecordedPlugs, _: MemoryMatrix, matrix: PluggingMatrix) -> None:
        plugs.late.add(2)
        await matrix.map(PortMap.of([(2, 11)]), full=False, generation=1)
        assert [str(error) for error in await matrix.catch_up()] == ["no answer"]
        assert plugs.taken() == ["out of 1", "d11 into 2"]
        plugs.ejected |= set() if has_it else {2}
        await matrix.map(PortMap.of([(3, 11)]), full=False, generation=2)
        assert await matrix.catch_up() == []
        assert plugs.taken() == ["out of 2", "d11 into 3"]

    with_matrix(test)


def test_a_drive_that_was_plugged_in_late_stays_where_it_should_be() -> None:
    async def test(plugs: RecordedPlugs, _: MemoryMatrix, matrix: PluggingMatrix) -> None:
        plugs.late.add(2)
        await matrix.map(PortMap.of([(2, 11)]), full=False, generation=1)
        assert len(await matrix.catch_up()) == 1
        assert await matrix.catch_up() == []
        assert plugs.taken() == ["out of 1", "d11 into 2"]

    with_matrix(test)


def test_without_power_nothing_is_plugged_in_and_with_it_the_saved_map_is() -> None:
    async def test(plugs: RecordedPlugs, _: MemoryMatrix, matrix: PluggingMatrix) -> None:
        await matrix.map(PortMap.of([(2, 11)]), full=False, generation=None)
        await matrix.catch_up()
        plugs.taken()
        await matrix.power(on=False)
        await matrix.catch_up()
        assert plugs.taken() == ["out of 2"]
        await matrix.power(on=True)
        await matrix.catch_up()
        assert plugs.taken() == ["d11 into 1"]

    with_matrix(test)
