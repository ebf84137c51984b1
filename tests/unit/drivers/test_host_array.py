"""Arrays on servers: what is refused, what a server says of one, and what it cannot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import pytest

from rackloop.abilities import Completed, Host
from rackloop.errors import BadInput, LabError, NotSupported, ProtocolError, ToolError
from rackloop_drivers.md import HostArray, HostArrays, array_of
from tests.deadlines import soon


class Server:
    """A server that answers every command with the same."""

    name = "srv1"

    def __init__(self, out: str = "", said: str = "", status: int = 0) -> None:
        self._answer = (status, out, said)
        self.told: list[tuple[str, ...]] = []

    def run(self, argv: Sequence[str], _deadline: object, *, stdin: str = "") -> Completed:
        self.told.append((*argv[4:], stdin) if stdin else tuple(argv[4:]))
        return Completed(tuple(argv), *self._answer)


def host(server: Server) -> Host:
    return cast("Host", server)


def test_an_array_is_shown_with_its_members() -> None:
    shown = "array md127 8b2c 65536\ndrive loop0 nvme1n1 2147483648\ndrive loop1 sda 2147483648\n"
    there = HostArray(host(Server(shown)), "x").there(soon())
    assert (there.kernel_name, there.uuid, there.size_bytes) == ("md127", "8b2c", 32 << 20)
    assert [(member.loop, member.drive, member.offset_bytes >> 30) for member in there.members] == [
        ("loop0", "nvme1n1", 2),
        ("loop1", "sda", 2),
    ]
    for wrong in ("", "array md127\n", "drive loop0 sda 1\n", "array a b c\n"):
        with pytest.raises(ProtocolError, match="an array was to be shown"):
            HostArray(host(Server(wrong)), "x").there(soon())


@pytest.mark.parametrize(
    ("server", "error", "said"),
    [
        (Server("mdadm\n", status=5), ToolError, "mdadm was not found on srv1: install its package mdadm there"),
        (Server("losetup\n", status=5), ToolError, "install its package util-linux there"),
        (Server(said="its kernel has no raid456", status=6), NotSupported, "srv1 makes no array of drives: its kernel"),
        (Server(said="mdadm: busy", status=1), LabError, "srv1: array x: mdadm: busy; it takes root on the server"),
    ],
)
def test_what_a_server_cannot_is_said(server: Server, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        HostArray(host(server), "x").run("look", deadline=soon())


def test_names_and_faults_that_are_none_are_refused() -> None:
    for name in ("", "X", "a b", "../x", "a" * 33):
        with pytest.raises(BadInput, match="is no name of an array"):
            HostArray(host(Server()), name)
    with pytest.raises(BadInput, match="md_array takes chunk_kib, devices"):
        HostArrays(host(Server())).prepare({"kind": "md_array", "name": "x"}, soon())


@pytest.mark.parametrize(("level", "spares"), [(6, 0), (5, 1), (5, -1), (1, 0)])
def test_too_few_drives_are_no_array(level: int, spares: int) -> None:
    with pytest.raises(BadInput, match=f"RAID {level} cannot have"):
        array_of("x", [], level=level, spares=spares, chunk_bytes=16384, offset_bytes=0, size_bytes=16 << 20)


def test_it_is_made_and_ended_as_it_was_told() -> None:
    fault = {
        "kind": "md_array",
        "name": "x",
        "level": 6,
        "chunk_kib": 16,
        "offset_bytes": 0,
        "size_bytes": 4096,
        "drives": 4,
        "devices": ["/dev/a", "/dev/b", "/dev/c", "/dev/d", "/dev/e"],
    }
    server = Server()
    arrays = HostArrays(host(server))
    note = {**arrays.prepare(fault, soon()), "fault": fault}
    arrays.start(note, soon())
    arrays.end(note, soon())
    assert server.told == [
        ("look", "x"),
        ("begin", "x", "6", "16", "0", "4096", "4", "/dev/a", "/dev/b", "/dev/c", "/dev/d", "/dev/e"),
        ("end", "x"),
    ]
