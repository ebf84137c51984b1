"""The clock that a rackprobe shows by TCP: who is believed, and what ends it."""

from __future__ import annotations

import hashlib
import hmac
import json
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread

import pytest

from rackloop.clock import VirtualClock
from rackloop_drivers.clock_access import ClockAccess
from rackloop_drivers.workload._shown_clock import ShownClock
from tests.deadlines import CLOCK

Answer = Callable[[bytes, int], bytes]


def signed(key: bytes, text: str) -> str:
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def said(key: bytes, number: int, verb: str = "say") -> bytes:
    text = json.dumps({"event": "clock", "id": number, "t_ns": 5_000_000, "answered_ns": 5_001_000})
    return f"{signed(key, f'{verb} {text}')} {text}\n".encode()


@contextmanager
def shown_by(answer: Answer) -> Iterator[ShownClock]:
    """A clock whose peer answers one connection's questions so."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        shown = ShownClock(ClockAccess(*listener.getsockname()))
        key = bytes.fromhex(json.loads(shown.command)["key"])

        def serve() -> None:
            connection, _ = listener.accept()
            with connection, connection.makefile("rb") as lines:
                for line in lines:
                    code, number = line.decode().split()
                    assert code == signed(key, f"ask {number}")
                    connection.sendall(answer(key, int(number)))

        server = Thread(target=serve, daemon=True)
        server.start()
        yield shown
        shown.close()
        server.join(10)
        assert not server.is_alive()


def test_the_time_for_the_answer_is_taken_off() -> None:
    with shown_by(said) as shown:
        before_ns = CLOCK.now_ns()
        first, second = shown.ask(CLOCK), shown.ask(CLOCK)
        after_ns = CLOCK.now_ns()
    assert first is not None
    assert second is not None
    sent_ns, event, received_ns = first
    assert event["t_ns"] == 5_000_000
    assert before_ns <= sent_ns
    assert received_ns <= after_ns - 999
    assert second[0] > sent_ns


def test_a_key_is_one_clocks_own() -> None:
    access = ClockAccess("127.0.0.1", 1, listens_at=7)
    one, other = (json.loads(ShownClock(access).command) for _ in range(2))
    assert (one["op"], one["port"]) == ("show_clock", 7)
    assert len(bytes.fromhex(one["key"])) == 32
    assert one["key"] != other["key"]


@pytest.mark.parametrize(
    "answer",
    [
        lambda key, number: said(bytes(32), number),
        lambda key, number: said(key, number + 1),
        lambda key, number: said(key, number, "ask"),
        lambda key, number: b"5000000\n",
        lambda key, number: b"x" * 5000,
    ],
    ids=["another key", "another question's", "no answer", "unsigned", "without end"],
)
def test_what_does_not_answer_as_it_should_is_not_asked_again(answer: Answer) -> None:
    with shown_by(answer) as shown:
        assert shown.ask(CLOCK) is None
        assert shown.is_over
        assert shown.ask(CLOCK) is None


def test_one_that_is_slow_once_is_asked_again_later() -> None:
    clock = VirtualClock()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        shown = ShownClock(ClockAccess(*listener.getsockname()))
        key = bytes.fromhex(json.loads(shown.command)["key"])
        assert shown.ask(clock) is None
        assert shown.ask(clock) is None
        assert not shown.is_over
        listener.accept()[0].close()
        clock.advance(2.0)

        def serve() -> None:
            connection, _ = listener.accept()
            with connection, connection.makefile("rb") as lines:
                connection.sendall(said(key, int(lines.readline().split()[1])))

        server = Thread(target=serve, daemon=True)
        server.start()
        assert shown.ask(clock) is not None
        server.join(10)
        shown.close()


def test_where_nobody_listens_it_is_over() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        access = ClockAccess(*listener.getsockname())
    shown = ShownClock(access)
    assert not shown.is_over
    assert shown.ask(CLOCK) is None
    assert shown.is_over
