"""The checks of a drive that a server holds, where the server answers some of them too late."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Sequence

import pytest

from rackloop.abilities import Claim, Completed
from rackloop.clock import Deadline, VirtualClock
from rackloop.errors import DeadlineExceeded, UnfitDrive
from rackloop_drivers.block import HostPath
from tests.unit.harness.recorded_server import RecordedServer
from tests.unit.models.run_only_executor import RunOnlyExecutor

TAKEN_OUT = "nvme0n1 is gone: the drive was taken out"


class Holding:
    """A ``rackprobe hold``, which says nothing while it is ``frozen``, and then answers what it was asked meanwhile."""

    def __init__(self) -> None:
        self.frozen = False
        self.reasons: list[str] = []
        self._lines = deque([json.dumps({"event": "held", "name": "/dev/disk/by-id/wwn-0x1"})])

    def write_line(self, line: str) -> None:
        asked = json.loads(line)
        assert asked["op"] == "check"
        self._lines.append(json.dumps({"event": "checked", "id": asked["id"], "reasons": self.reasons}))

    def read_line(self, _deadline: Deadline) -> str | None:
        if self.frozen or not self._lines:
            raise DeadlineExceeded("it printed no line in time")
        return self._lines.popleft()

    def wait(self, _deadline: Deadline) -> Completed:
        return Completed(("rackprobe",), 0, "", "")

    def kill(self) -> None:
        self._lines.clear()


class Server(RunOnlyExecutor):
    """A server whose rackprobe is ``holding`` a drive."""

    def __init__(self) -> None:
        self.holding = Holding()
        self._recorded = RecordedServer()

    def run(self, argv: Sequence[str], deadline: Deadline, *, stdin: str = "") -> Completed:
        return self._recorded.run(argv, deadline, stdin=stdin)

    def start(self, argv: Sequence[str]) -> Holding:
        assert argv[1] == "hold"
        return self.holding


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def claim(server: Server) -> Claim:
    claim = HostPath(server, "/dev/nvme0n1", VirtualClock()).claim_exclusive()
    assert claim is not None
    return claim


def test_an_answer_that_came_too_late_is_none_to_the_next_check(server: Server, claim: Claim) -> None:
    server.holding.frozen = True
    with pytest.raises(DeadlineExceeded):
        claim.require("d01")
    server.holding.frozen, server.holding.reasons = False, [TAKEN_OUT]
    with pytest.raises(UnfitDrive, match="taken out"):
        claim.require("d01")


def test_a_drive_that_is_itself_again_is_fit_though_an_earlier_answer_comes(server: Server, claim: Claim) -> None:
    server.holding.frozen, server.holding.reasons = True, [TAKEN_OUT]
    with pytest.raises(DeadlineExceeded):
        claim.require("d01")
    server.holding.frozen, server.holding.reasons = False, []
    claim.require("d01")
