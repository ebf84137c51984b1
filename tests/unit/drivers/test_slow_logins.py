"""A server that takes its time to let us in: each attempt that it does not answer in time leaves it longer."""

from pathlib import Path
from typing import cast

from rackloop.clock import Deadline, VirtualClock
from rackloop.errors import DeadlineExceeded, NotConnected
from rackloop_drivers.host import SshAccess, SshHost
from rackloop_drivers.host._connection import Connection

TAKES_S = 12.0


class SlowServer(SshHost):
    """Lets us in after ``TAKES_S``; ``refuses`` is how often nothing listens there before."""

    def __init__(self, clock: VirtualClock, known_hosts: Path, refuses: int) -> None:
        super().__init__(SshAccess(name="box1", host="127.0.0.1", known_hosts=known_hosts), clock)
        self.own_clock = clock
        self.refuses = refuses
        self.attempts: list[float] = []

    def _connect(self, deadline: Deadline) -> Connection:
        if self.refuses:
            self.refuses -= 1
            raise NotConnected("box1: refused")
        self.attempts.append(round(deadline.remaining_s(), 3))
        took_s = min(TAKES_S, deadline.remaining_s())
        self.own_clock.sleep_until_ns(self.own_clock.now_ns() + round(took_s * 1e9))
        if took_s < TAKES_S:
            raise DeadlineExceeded("box1: its SSH did not answer in time")
        # Nothing is asked of it.
        return cast(Connection, object())


def test_an_attempt_that_was_not_answered_in_time_is_followed_by_a_longer_one(tmp_path: Path) -> None:
    clock = VirtualClock()
    host = SlowServer(clock, tmp_path / "known_hosts", refuses=3)
    host.reconnect(Deadline.after(clock, 60))
    assert host.attempts == [5.0, 10.0, 20.0]
