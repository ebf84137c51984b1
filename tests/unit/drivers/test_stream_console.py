"""Reads of a console that is closed from another thread."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, suppress
from threading import Event, Thread

import pytest

from rackloop.clock import Deadline
from rackloop.errors import LabError, NotConnected
from rackloop_drivers.stream_console import DescriptorStream, StreamConsole
from tests.deadlines import CLOCK, soon

SOON_S = 120.0
LONG_S = 1e6


class WaitingStream:
    """A stream on which nothing comes: a read waits until it is woken."""

    def __init__(self) -> None:
        self.is_read, self.woken = Event(), Event()

    def read(self, timeout_s: float) -> bytes:
        self.is_read.set()
        self.woken.wait(SOON_S)
        return b""

    def write(self, data: bytes, deadline: Deadline) -> None:
        raise NotImplementedError

    def wake(self) -> None:
        self.woken.set()

    def close(self) -> None:
        """Keep what is asserted on."""


@pytest.fixture
def pipe() -> Iterator[tuple[DescriptorStream, int]]:
    ours, theirs = os.pipe()
    try:
        with closing(DescriptorStream("a pipe", ours, lambda: os.close(ours))) as stream:
            yield stream, theirs
    finally:
        os.close(theirs)


def test_a_woken_read_of_a_descriptor_does_not_wait(pipe: tuple[DescriptorStream, int]) -> None:
    stream, _ = pipe
    stream.wake()
    assert stream.read(LONG_S) == b""


def test_what_had_come_is_read_all_the_same_and_the_next_read_waits_again(pipe: tuple[DescriptorStream, int]) -> None:
    stream, theirs = pipe
    os.write(theirs, b"said")
    stream.wake()
    assert stream.read(LONG_S) == b"said"
    os.write(theirs, b"more")
    assert stream.read(LONG_S) == b"more"


def test_a_stream_that_is_closed_is_woken_in_vain(pipe: tuple[DescriptorStream, int]) -> None:
    stream, _ = pipe
    stream.close()
    stream.wake()


def test_closing_a_console_ends_a_read_that_waits() -> None:
    stream = WaitingStream()
    console = StreamConsole("a console", CLOCK, 0.0, lambda _deadline: stream)
    console.open(soon())

    def read() -> None:
        with suppress(LabError):
            console.read(Deadline.after(CLOCK, LONG_S))

    reading = Thread(target=read, daemon=True)
    reading.start()
    assert stream.is_read.wait(SOON_S)
    console.close()
    reading.join(SOON_S)
    assert stream.woken.is_set()
    assert not reading.is_alive()


class LostStream:
    """A stream that a read finds lost while a write is under way."""

    def __init__(self) -> None:
        self.is_written, self.may_end = Event(), Event()
        self.closed = 0

    def read(self, timeout_s: float) -> bytes:
        raise NotConnected("it was closed at the other end")

    def write(self, data: bytes, deadline: Deadline) -> None:
        self.is_written.set()
        self.may_end.wait(SOON_S)

    def wake(self) -> None:
        """No read waits."""

    def close(self) -> None:
        self.closed += 1


@pytest.mark.parametrize("is_opened_anew", [False, True])
def test_a_stream_is_not_closed_under_the_thread_that_sends(*, is_opened_anew: bool) -> None:
    """Its descriptors could be another console's before the last of what is typed goes out."""
    streams = [LostStream(), LostStream()]
    opened = iter(streams)
    console = StreamConsole("a console", CLOCK, 0.0, lambda _deadline: next(opened))
    console.open(soon())
    sending = Thread(target=console.send, args=(b"typed", soon()), daemon=True)
    sending.start()
    assert streams[0].is_written.wait(SOON_S)
    with pytest.raises(NotConnected, match="a console: it was closed at the other end"):
        console.read(soon())
    assert streams[0].closed == 0
    if is_opened_anew:
        console.open(soon())
    streams[0].may_end.set()
    sending.join(SOON_S)
    assert [stream.closed for stream in streams] == [1, 0]
    console.close()
    assert [stream.closed for stream in streams] == [1, int(is_opened_anew)]
