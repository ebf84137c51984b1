"""Following of a console over its losses."""

from __future__ import annotations

import queue
from collections.abc import Sequence
from threading import Event

from rackloop.abilities import Heard
from rackloop.clock import Deadline
from rackloop.errors import LoginRefused, NotConnected, RackloopError
from rackloop_labs.console_follower import ConsoleFollower
from rackloop_labs.console_lines import ConsoleLine
from tests.deadlines import CLOCK

SOON_S = 120.0


class SimConsole:
    """A console that does what is put into ``script``: bytes are said, None is silence, an error is raised."""

    where = "the console"

    def __init__(
        self, *script: bytes | RackloopError | None, refusals: tuple[RackloopError | OSError, ...] = ()
    ) -> None:
        self._script = iter(script)
        self._refusals = iter(refusals)
        self.opened = 0
        self._closed = Event()

    def open(self, deadline: Deadline) -> None:
        if (refusal := next(self._refusals, None)) is not None:
            raise refusal
        self.opened += 1

    def read(self, deadline: Deadline) -> Heard | None:
        try:
            said = next(self._script)
        except StopIteration:
            self._closed.wait(SOON_S)
            raise NotConnected("closed") from None
        if isinstance(said, RackloopError):
            raise said
        return None if said is None else Heard(said, CLOCK.now_ns(), CLOCK.now_ns())

    def send(self, data: bytes, deadline: Deadline) -> None:
        raise NotImplementedError

    def close(self) -> None:
        self._closed.set()


def followed(console: SimConsole, *, lines: int) -> tuple[ConsoleFollower, list[ConsoleLine]]:
    """What is told first, as many lines."""
    told: queue.Queue[ConsoleLine] = queue.Queue()

    def take(lines: Sequence[ConsoleLine]) -> None:
        for line in lines:
            told.put(line)

    follower = ConsoleFollower(console, CLOCK, take, lambda: ("swordfish",))
    follower.start()
    found = [told.get(timeout=SOON_S) for _ in range(lines)]
    follower.stop()
    return follower, found


def test_lines_are_told_and_a_prompt_after_silence() -> None:
    _, lines = followed(SimConsole(b"one\r\nswordfish\r\nlogin: ", None), lines=4)
    assert [line.text for line in lines] == ["listening: the console", "one", "***", "login:"]
    assert [line.is_remark for line in lines] == [True, False, False, False]


def test_a_lost_connection_is_made_again_and_the_gap_told() -> None:
    console = SimConsole(b"half a li", NotConnected("the controller has gone"), b"again\n")
    _, lines = followed(console, lines=5)
    texts = [line.text for line in lines]
    assert texts[:3] == ["listening: the console", "half a li", "gap: the controller has gone; trying again"]
    assert texts[3].startswith("listening again; what was said in the ")
    assert texts[4] == "again"
    assert console.opened == 2


def test_half_a_line_is_handed_over_at_the_end() -> None:
    told: list[ConsoleLine] = []
    heard = Event()
    console = SimConsole(b"Kernel panic - not syn")
    follower = ConsoleFollower(console, CLOCK, told.extend, hear=lambda _data: heard.set())
    follower.start()
    assert heard.wait(SOON_S)
    follower.stop()
    assert follower.wait(SOON_S)
    assert [line.text for line in told] == ["listening: the console", "Kernel panic - not syn"]


def test_one_reason_is_told_once() -> None:
    console = SimConsole(b"at last\n", refusals=(NotConnected("no answer"), NotConnected("no answer")))
    _, lines = followed(console, lines=3)
    assert [line.text.partition(";")[0] for line in lines] == ["gap: no answer", "listening again", "at last"]


def test_what_this_machine_lacks_for_a_moment_is_a_gap_like_any_other() -> None:
    _, lines = followed(SimConsole(b"at last\n", refusals=(OSError(24, "Too many open files"),)), lines=3)
    assert [line.text.partition(";")[0] for line in lines] == [
        "gap: [Errno 24] Too many open files",
        "listening again",
        "at last",
    ]


def test_a_refused_account_is_not_tried_again() -> None:
    refusal = LoginRefused("wrong password")
    follower, lines = followed(SimConsole(refusals=(refusal, refusal)), lines=1)
    assert follower.wait(SOON_S)
    assert [line.text for line in lines] == ["gap: wrong password; nothing is heard any more"]
    assert follower.trouble == "wrong password"


def test_lines_that_came_together_are_handed_over_together() -> None:
    told: queue.Queue[tuple[str, ...]] = queue.Queue()
    console = SimConsole(b"one\ntwo\nth", b"ree\n")
    follower = ConsoleFollower(console, CLOCK, lambda lines: told.put(tuple(line.text for line in lines)))
    follower.start()
    found = [told.get(timeout=SOON_S) for _ in range(3)]
    follower.stop()
    assert found == [("listening: the console",), ("one", "two"), ("three",)]
