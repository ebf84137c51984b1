"""What becomes of lines that wait when the controller has said all it had to say, and when one of them fails."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from rackloop.abilities import LiveMap
from rackloop.clock import VirtualClock
from rackloop.portmap import PortMap
from rackloop_drivers.fabric.flexfabric import LineFault, LineFaultRule, MemoryMatrix
from tests.unit.drivers.switch_wire import Wire


class SlowMatrix(MemoryMatrix):
    """Says its generation when it is let, as rackd behind a socket does."""

    def __init__(self) -> None:
        super().__init__(VirtualClock())
        self.asked: list[asyncio.Future[int]] = []

    async def get_map(self) -> LiveMap:
        """Once the future is set."""
        self.asked.append(asyncio.get_running_loop().create_future())
        return LiveMap(await self.asked[-1], await self.pairs())

    async def pairs(self) -> PortMap:
        """The live map, at once."""
        return (await super().get_map()).pairs


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


async def let(matrix: SlowMatrix, number: int) -> None:
    matrix.asked.pop().set_result(number)
    await asyncio.sleep(0)


def test_lines_that_wait_when_the_stream_ends_are_carried_out_and_answered(runner: asyncio.Runner) -> None:
    async def talk() -> None:
        matrix = SlowMatrix()
        wire = Wire(asyncio.get_running_loop(), matrix)
        wire.connection.feed(b"ROUT:GEN?\nROUT:LOAD (@1!17);:TRIG\nROUT:GEN?\nROUT:OPEN:ALL")
        wire.connection.end()
        assert (wire.heard, wire.hung_up.done()) == (b"", False)
        await let(matrix, 5)
        assert (wire.heard, wire.hung_up.done()) == (b"5\n", False)
        await let(matrix, 6)
        assert (wire.heard, wire.hung_up.done()) == (b"5\n6\n", True)
        # The half line at the end is none.
        assert await matrix.pairs() == PortMap.of([(1, 17)])

    runner.run(talk())


def test_a_controller_that_hears_nothing_more_still_has_its_lines_carried_out(runner: asyncio.Runner) -> None:
    async def talk() -> None:
        matrix = SlowMatrix()
        wire = Wire(asyncio.get_running_loop(), matrix)
        wire.connection.feed(b"ROUT:GEN?\nROUT:LOAD (@1!17);:TRIG\n")
        wire.connection.end()
        wire.connection.lose()
        await let(matrix, 5)
        assert wire.heard == b""
        assert await matrix.pairs() == PortMap.of([(1, 17)])

    runner.run(talk())


def test_lines_of_a_connection_that_was_cut_are_lost(runner: asyncio.Runner) -> None:
    async def talk() -> None:
        matrix = SlowMatrix()
        wire = Wire(asyncio.get_running_loop(), matrix)
        wire.connection.feed(b"ROUT:GEN?\nROUT:LOAD (@1!17);:TRIG\n")
        wire.connection.lose()
        await let(matrix, 5)
        assert await matrix.pairs() == PortMap()

    runner.run(talk())


def test_the_connection_stays_for_an_answer_that_is_late(runner: asyncio.Runner) -> None:
    async def talk() -> None:
        wire = Wire(asyncio.get_running_loop())
        wire.line_faults.install(LineFaultRule(LineFault.LATE, delay_s=0.001))
        wire.connection.feed(b"*OPC?\n")
        wire.connection.end()
        assert wire.heard == b""
        await wire.hung_up
        assert wire.heard == b"1\n"

    runner.run(talk())


def test_a_line_that_fails_in_the_program_leaves_the_next_its_turn(runner: asyncio.Runner) -> None:
    async def talk() -> None:
        complaints: list[dict[str, Any]] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _loop, context: complaints.append(context))
        matrix = SlowMatrix()
        wire = Wire(loop, matrix)
        assert wire.ask(b"ROUT:GEN?\nSYST:ERR?\n") == b""
        matrix.asked.pop().set_exception(ZeroDivisionError())
        await asyncio.sleep(0)
        assert wire.heard == b'-310,"System error"\n'
        assert wire.ask(b"ROUT:GEN?\nSYST:ERR?\n") == b""
        matrix.asked.pop().cancel()
        await asyncio.sleep(0)
        assert wire.heard == b'-310,"System error"\n'
        assert [type(context["exception"]) for context in complaints] == [ZeroDivisionError, asyncio.CancelledError]

    runner.run(talk())
