"""The register of a server's faults: a server that hangs is told from a drive that does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn, cast

import pytest

from rackloop.abilities import Completed, Host
from rackloop.clock import Deadline
from rackloop.errors import DeadlineExceeded, LabError, NotConnected
from rackloop_drivers.host_tools import HostFaults, HostRegister
from tests.deadlines import soon

HANGS = DeadlineExceeded("nothing answered in time")


class Server:
    """A server with a note of drive:d01; its connection hangs, or not."""

    name = "srv1"

    def __init__(self, *, hangs: bool, status: int = 0) -> None:
        self.hangs = hangs
        self.status = status

    def reconnect(self, _deadline: Deadline) -> None:
        if self.hangs:
            raise HANGS

    def run(self, argv: Sequence[str], _deadline: Deadline) -> Completed:
        if self.hangs:
            raise HANGS
        return Completed(tuple(argv), self.status, "" if self.status else "drive%3Ad01\n", "")


class HungDrive:
    def standing(self, _deadline: Deadline) -> NoReturn:
        raise HANGS


def register(server: Server) -> HostRegister:
    return HostRegister(cast(Host, server), {"drive:d01": cast(HostFaults, cast(Any, HungDrive()))})


def test_a_server_that_hangs_is_not_connected() -> None:
    with pytest.raises(NotConnected, match="nothing answered in time"):
        register(Server(hangs=True)).standing(soon())


def test_a_drive_that_hangs_is_not_its_server() -> None:
    with pytest.raises(DeadlineExceeded):
        register(Server(hangs=False)).standing(soon())


def test_a_server_that_cannot_list_its_notes_is_not_one_without_faults() -> None:
    with pytest.raises(LabError, match=r"srv1: the notes of its faults in .* cannot be listed: exit status 137"):
        register(Server(hangs=False, status=137)).standing(soon())
