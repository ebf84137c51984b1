"""The pace of a serial line, on a loop whose time stands still until told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest

from rackloop_drivers.fabric.flexfabric.peer.pace import PacedLine


class StillLoop(asyncio.SelectorEventLoop):
    """An event loop on which time passes only in :meth:`pass_until`."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def time(self) -> float:
        return self.now

    def pass_until(self, when: float) -> None:
        self.now = when
        for _ in range(3):
            self.call_soon(self.stop)
            self.run_forever()


@pytest.fixture
def loop() -> Iterator[StillLoop]:
    loop = StillLoop()
    yield loop
    loop.close()


def line(loop: StillLoop, baud: int | None) -> tuple[PacedLine, list[tuple[float, bytes]]]:
    heard: list[tuple[float, bytes]] = []
    deliver: Callable[[bytes], None] = lambda data: heard.append((loop.now, data))  # noqa: E731
    return PacedLine(deliver, loop, baud), heard


def test_a_byte_takes_ten_bit_times(loop: StillLoop) -> None:
    paced, heard = line(loop, 1000)
    paced.send(b"x" * 50)
    paced.send(b"y" * 10)
    loop.pass_until(0.49)
    assert heard == []
    loop.pass_until(0.5)
    assert heard == [(0.5, b"x" * 50)]
    loop.pass_until(0.59)
    assert len(heard) == 1
    loop.pass_until(0.6)
    assert heard[1] == (0.6, b"y" * 10)


def test_a_line_that_was_idle_starts_when_it_is_used(loop: StillLoop) -> None:
    paced, heard = line(loop, 1000)
    paced.send(b"x")
    loop.pass_until(5)
    paced.send(b"y")
    loop.pass_until(5.009)
    assert len(heard) == 1
    loop.pass_until(5.01)
    assert len(heard) == 2


def test_what_comes_after_a_delay_waits_too(loop: StillLoop) -> None:
    free, heard = line(loop, None)
    free.send(b"a")
    assert heard == [(0.0, b"a")]
    free.send(b"b", delay_s=1)
    free.send(b"c")
    loop.pass_until(0.9)
    assert len(heard) == 1
    loop.pass_until(1)
    assert heard[1:] == [(1.0, b"b"), (1.0, b"c")]


def test_what_is_lost_never_comes_out(loop: StillLoop) -> None:
    paced, heard = line(loop, 1000)
    paced.send(b"x")
    paced.clear()
    paced.send(b"y")
    loop.pass_until(1)
    assert [data for _, data in heard] == [b"y"]
