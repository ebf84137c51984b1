"""Closing a rack: its servers all at once, and all there is whatever one of them says."""

from __future__ import annotations

from collections.abc import Callable
from threading import Barrier
from typing import Any

import pytest

from rackloop.errors import LabError
from rackloop_labs.bench import close_bench, close_hosts

IN_TIME_S = 30


class Server:
    """A server that does this when it is closed."""

    def __init__(self, does: Callable[[], object]) -> None:
        self.close = does


def refuse(what: str) -> None:
    raise LabError(what)


def test_servers_are_closed_at_the_same_time() -> None:
    together = Barrier(4)
    servers: list[Any] = [Server(lambda: together.wait(IN_TIME_S)) for _ in range(4)]
    close_hosts(servers)
    assert not together.broken


def test_all_are_closed_and_told_where_some_could_not_end_a_command() -> None:
    closed: list[str] = []
    servers: list[Any] = [
        Server(lambda: refuse("srv1: process 7 is stuck")),
        Server(lambda: closed.append("srv2")),
        Server(lambda: refuse("srv3: process 9 is stuck")),
    ]
    with pytest.raises(LabError, match="srv1: process 7 is stuck\nsrv3: process 9 is stuck"):
        close_hosts(servers)
    assert closed == ["srv2"]


def test_a_command_that_is_stuck_on_a_server_keeps_nothing_else_open() -> None:
    closed: list[str] = []
    stuck: list[Any] = [Server(lambda: refuse("srv1: process 7 is stuck"))]
    with pytest.raises(LabError, match="srv1: process 7 is stuck"):
        close_bench(stuck, lambda: closed.append("power"), lambda: closed.append("lock"))
    assert closed == ["power", "lock"]
    with pytest.raises(LabError, match="the box is gone"):
        close_bench([], lambda: refuse("the box is gone"), lambda: closed.append("switch"))
    assert closed == ["power", "lock", "switch"]


def test_a_rack_without_servers_has_none_to_close() -> None:
    close_hosts([])
