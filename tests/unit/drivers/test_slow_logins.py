"""A server that takes its time to let us in: each attempt that it does not answer in time leaves it longer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import pytest

from rackloop.clock import Deadline, VirtualClock
from rackloop.errors import (
    DeadlineExceeded,
    HostKeyMismatch,
    LabError,
    LoginRefused,
    NotConnected,
    ProtocolError,
)
from rackloop_drivers.host import SshAccess, SshHost
from rackloop_drivers.host._connection import Connection, _require_root

TAKES_S = 12.0


class SlowServer(SshHost):
    """Lets us in after ``TAKES_S``; ``refuses`` is how often nothing listens there before."""

    def __init__(self, clock: VirtualClock, known_hosts: Path, refuses: int) -> None:
        super().__init__(SshAccess(name="box1", host="127.0.0.1", known_hosts=known_hosts), clock)
        self.own_clock = clock
        self.refuses = refuses
        self.attempts: list[float] = []

    def _connect(self, deadline: Deadline, let_in_by: Deadline | None = None) -> Connection:
        if self.refuses:
            self.refuses -= 1
            raise NotConnected("box1: refused")
        left_s = (let_in_by or deadline).remaining_s()
        self.attempts.append(round(left_s, 3))
        took_s = min(TAKES_S, left_s)
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


class BootingServer(SshHost):
    """Fails an attempt to connect by each of ``errors``, in order, and then lets us in."""

    def __init__(self, clock: VirtualClock, known_hosts: Path, *errors: LabError) -> None:
        super().__init__(SshAccess(name="box1", host="127.0.0.1", known_hosts=known_hosts), clock)
        self.errors = list(errors)

    def _connect(self, deadline: Deadline, let_in_by: Deadline | None = None) -> Connection:
        if self.errors:
            raise self.errors.pop(0)
        return cast(Connection, object())


def test_a_server_that_opens_no_session_yet_or_is_something_else_at_first_is_waited_for(tmp_path: Path) -> None:
    clock = VirtualClock()
    refusals = (ProtocolError("box1: no SSH could be agreed on"), LabError("box1: opening a session was refused"))
    host = BootingServer(clock, tmp_path / "known_hosts", *refusals)
    assert host.reconnect(Deadline.after(clock, 60)) > 0
    assert host.errors == []
    host.errors = [LabError("box1: opening a session was refused")] * 1000
    with pytest.raises(DeadlineExceeded, match=r"box1 did not come back in time; at last: .*session was refused"):
        host.reconnect(Deadline.after(clock, 60))


@pytest.mark.parametrize("refusal", [HostKeyMismatch("box1: changed"), LoginRefused("box1: no")], ids=["key", "login"])
def test_what_more_time_would_not_mend_is_raised_at_once(tmp_path: Path, refusal: LabError) -> None:
    clock = VirtualClock()
    with pytest.raises(type(refusal)):
        BootingServer(clock, tmp_path / "known_hosts", refusal).reconnect(Deadline.after(clock, 60))
    assert clock.now_ns() == 0


class SlowSudo:
    """A connection, its channel and the end of the command on it: sudo answers after ``takes_s``."""

    def __init__(self, takes_s: float) -> None:
        self.takes_s = takes_s
        self.status_event = self

    @contextmanager
    def session(self, _deadline: Deadline) -> Iterator[SlowSudo]:
        """The one channel."""
        yield self

    def execute(self, *_: object) -> None:
        """Begin the command."""

    def wait(self, timeout_s: float) -> bool:
        """Whether it ends by then."""
        return self.takes_s <= timeout_s

    def recv_exit_status(self) -> int:
        """It is allowed."""
        return 0


def test_sudo_has_the_time_that_a_server_takes_to_answer_whatever_the_caller_has_left(tmp_path: Path) -> None:
    access = SshAccess(name="box1", host="127.0.0.1", known_hosts=tmp_path / "known_hosts", answers_within_s=20.0)
    hurried = Deadline.after(VirtualClock(), 0.5)
    _require_root(access, cast(Connection, SlowSudo(15.0)), hurried)
    with pytest.raises(DeadlineExceeded, match="sudo did not answer in time"):
        _require_root(access, cast(Connection, SlowSudo(25.0)), hurried)
