"""A PDU that is reached by an IPv6 address."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread

import pytest

from rackloop.errors import LabError
from rackloop.lab import FileSecret
from rackloop_drivers.boxes import Login
from rackloop_drivers.power.snmp import ApcOutlet, SnmpAgent
from tests.deadlines import soon

_GET, _RESPONSE = b"\xa0", b"\xa2"
_NO_ERROR, _NO_SUCH_NAME = b"\x02\x01\x00\x02\x01\x00", b"\x02\x01\x02\x02\x01\x01"


@contextmanager
def agent() -> Iterator[int]:
    """The port of an agent at ::1 that has nothing of what it is asked for (RFC 1157, GetResponse-PDU)."""
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as at:
        try:
            at.bind(("::1", 0))
        except OSError:
            pytest.skip("this machine has no IPv6")

        def answer() -> None:
            with suppress(OSError):
                while asked := at.recvfrom(4096):
                    request, client = asked
                    if not request:
                        return
                    community, _, rest = request.partition(_GET)
                    at.sendto(community + _RESPONSE + rest.replace(_NO_ERROR, _NO_SUCH_NAME, 1), client)

        thread = Thread(target=answer)
        thread.start()
        port = at.getsockname()[1]
        try:
            yield port
        finally:
            with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as last:
                last.sendto(b"", ("::1", port))
            thread.join()


def test_a_pdu_answers_at_an_ipv6_address(tmp_path: Path) -> None:
    (tmp_path / "community").write_text("private")
    with agent() as port:
        where = f"[::1]:{port}"
        outlet = ApcOutlet(SnmpAgent(where, Login(where, None, FileSecret(tmp_path / "community"))), 1)
        with pytest.raises(LabError, match=r"has not all of .* \(2\); is this the right kind of PDU"):
            outlet.is_on(soon())
