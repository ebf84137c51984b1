"""Sectors that are given back, where some of the servers that may have a note of them do not answer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import pytest

from rackloop.abilities import Completed
from rackloop.clock import Deadline, VirtualClock
from rackloop.errors import DeadlineExceeded
from rackloop_drivers.host_tools import HostFaults
from rackloop_labs.media_errors import MediaErrorsOfDrive

KEY = "run/1"
NOTE = f"{quote(KEY, safe='')}.json {json.dumps({'fault': {'kind': 'media_error'}})}\n"


@dataclass
class Server:
    """A server that has the note or does not, or is away; as what it breaks, it notes that it ended that."""

    clock: VirtualClock
    name: str
    has_note: bool = False
    is_away: bool = False
    ended: list[str] = field(default_factory=list)
    kinds = frozenset({"media_error"})

    def run(self, argv: Sequence[str], deadline: Deadline, *, stdin: str = "") -> Completed:
        if self.is_away:
            self.clock.sleep_until_ns(deadline.at_ns)
            raise DeadlineExceeded(f"{self.name} does not answer")
        assert not deadline.is_over()
        if "rm -f" in argv[2]:
            self.has_note = bool(stdin)
        return Completed(tuple(argv), 0, NOTE if self.has_note else "", "")

    def stands(self, note: Any, deadline: Deadline) -> bool:
        return self.has_note

    def prepare(self, fault: Any, deadline: Deadline) -> dict[str, Any]:
        return {}

    def start(self, note: Any, deadline: Deadline) -> None: ...

    def end(self, note: Any, deadline: Deadline) -> None:
        self.ended.append(note["fault"]["kind"])


def of_drive(*servers: Any) -> MediaErrorsOfDrive:
    noting = {server.name: HostFaults(server, "drive:d01", server, add_up=server.kinds) for server in servers}
    return MediaErrorsOfDrive(noting, lambda _: "srv1")


@pytest.mark.parametrize("away", [0, 2])
def test_a_server_that_is_away_keeps_no_sectors_from_being_given_back(away: int) -> None:
    clock = VirtualClock()
    servers = [Server(clock, f"srv{number}", number == 1, number == away) for number in range(3)]
    of_drive(*servers).mend(KEY, Deadline.after(clock, 30))
    assert (servers[1].has_note, servers[1].ended) == (False, ["media_error"])


def test_where_none_has_the_note_the_one_that_is_away_may_have_it() -> None:
    clock = VirtualClock()
    with pytest.raises(DeadlineExceeded, match="srv0 does not answer"):
        of_drive(Server(clock, "srv0", is_away=True), Server(clock, "srv1")).mend(KEY, Deadline.after(clock, 30))
    of_drive(Server(clock, "srv0"), Server(clock, "srv1")).mend(KEY, Deadline.after(clock, 30))


@pytest.mark.parametrize("away", [0, 2])
def test_a_server_that_is_away_is_told_beside_what_stands_on_the_others(away: int) -> None:
    clock = VirtualClock()
    servers = [Server(clock, f"srv{number}", number == 1, number == away) for number in range(3)]
    assert of_drive(*servers).standing(Deadline.after(clock, 30)) == {
        KEY: {"kind": "media_error"},
        f"#srv{away}": {"kind": "unreadable", "why": f"srv{away} does not answer"},
    }


def test_what_was_noted_by_a_server_that_is_away_is_not_taken_for_over() -> None:
    clock = VirtualClock()
    servers = [Server(clock, f"srv{number}") for number in range(2)]
    part = of_drive(*servers)
    part.break_as(KEY, {"kind": "media_error"}, Deadline.after(clock, 30))
    servers[1].is_away = True
    untold = {"kind": "unreadable", "why": "srv1 does not answer"}
    assert part.standing(Deadline.after(clock, 30)) == {KEY: untold, "#srv1": untold}
    servers[0].is_away = True
    with pytest.raises(DeadlineExceeded, match="srv0 does not answer"):
        part.standing(Deadline.after(clock, 30))
