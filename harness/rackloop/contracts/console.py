"""The contract of every :class:`~rackloop.abilities.Console` with its callers.

On a real arm the line has a loop-back plug, which says what it is sent, and ``cut`` and ``typed`` are None.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from rackloop.abilities import Console, Heard
from rackloop.clock import Deadline
from rackloop.contracts._clause import CLOCK, clauses, must_raise, past, soon
from rackloop.errors import DeadlineExceeded, LabError, NotConnected

_BOOT = b"".join(b"[%12.6f] line %d ~. of a boot\r\n" % (n / 1000, n) for n in range(300))
_ALL = bytes(range(1, 256)) + b"\r\n~.~~\r~?\n~."
_QUIET_S = 0.2


@dataclass(frozen=True)
class ConsoleArm:
    """A console that is not open yet. ``say`` has the server print, ``typed`` is all that it was sent.

    ``cut`` ends the connection at the server's end.
    """

    console: Console
    say: Callable[[bytes], None]
    typed: Callable[[], bytes] | None
    cut: Callable[[], None] | None = None


ConsoleFactory = Callable[[], AbstractContextManager[ConsoleArm]]


def hears_what_is_said(make: ConsoleFactory) -> None:
    """A burst, as a boot is, comes whole and in order, within the stamps it has; to hear nothing is no error."""
    with make() as arm:
        _open(arm)
        before_ns = CLOCK.now_ns()
        arm.say(_BOOT)
        heard: list[Heard] = []
        while sum(len(one.data) for one in heard) < len(_BOOT) and (one := arm.console.read(soon())) is not None:
            heard.append(one)
        assert b"".join(one.data for one in heard) == _BOOT
        for one in heard:
            assert one.since_ns <= one.until_ns <= CLOCK.now_ns(), f"stamps are not in order: {one}"
        assert heard[-1].until_ns >= before_ns, "the stamp is of before it was said"
        assert arm.console.read(Deadline.after(CLOCK, _QUIET_S)) is None


def sends_every_byte(make: ConsoleFactory) -> None:
    """Bytes that are sent arrive as they are, control and escape characters too."""
    with make() as arm:
        _open(arm)
        if arm.typed is not None:
            arm.console.send(_ALL, soon())
            got = soon().poll(arm.typed, lambda typed: len(typed) >= len(_ALL), every_s=0.01)
            assert got == _ALL, f"sent {_ALL!r}, arrived {got!r}"


def opens_and_closes_again(make: ConsoleFactory) -> None:
    """Opening twice and closing twice do nothing; what is closed says so, and opens again."""
    with make() as arm:
        for _ in range(2):
            arm.console.open(soon())
        for _ in range(2):
            arm.console.close()
        with must_raise(LabError, "open"):
            arm.console.read(soon())
        with must_raise(LabError, "open"):
            arm.console.send(b"x", soon())
        _open(arm)


def refuses_a_deadline_that_is_over(make: ConsoleFactory) -> None:
    """To open or send too late raises DeadlineExceeded, and sends nothing; to read then gives nothing."""
    with make() as arm:
        with must_raise(DeadlineExceeded):
            arm.console.open(past())
        arm.console.open(soon())
        before = arm.typed and arm.typed()
        with must_raise(DeadlineExceeded):
            arm.console.send(b"too late", past())
        assert (arm.typed and arm.typed()) == before
        assert arm.console.read(past()) is None


def says_that_it_was_lost(make: ConsoleFactory) -> None:
    """A connection that ends at the other side is NotConnected; it can be opened again."""
    with make() as arm:
        _open(arm)
        if arm.cut is not None:
            arm.cut()
            with must_raise(NotConnected, arm.console.where):
                while arm.console.read(soon()) is not None:
                    pass
            _open(arm)


CONTRACT = clauses(__name__)


def _open(arm: ConsoleArm) -> None:
    """Open it, and have the server print until it is heard: what it prints before the box is ready is lost."""
    arm.console.open(soon())

    def heard() -> bool:
        arm.say(b"hello\r\n")
        return arm.console.read(Deadline.after(CLOCK, _QUIET_S)) is not None

    assert soon().poll(heard, every_s=0.01), "nothing is heard of what is said"
    while arm.console.read(Deadline.after(CLOCK, _QUIET_S)) is not None:
        pass
