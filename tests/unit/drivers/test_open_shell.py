"""A server that lets us in, opens a session, and then says nothing, or no, when it is asked for a terminal."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from threading import Event, Thread

import paramiko
import pytest
from paramiko.common import AUTH_SUCCESSFUL, OPEN_SUCCEEDED

from rackloop.clock import Deadline
from rackloop.errors import DeadlineExceeded, LabError
from rackloop.lab import FileSecret
from rackloop_drivers.host import SshAccess, open_shell
from rackloop_drivers.host._connection import connect
from tests.deadlines import CLOCK, soon


class Controller(paramiko.ServerInterface):
    """Takes any password; of a terminal it thinks until ``is_over``, and gives none."""

    def __init__(self, is_over: Event) -> None:
        self._is_over = is_over

    def check_auth_password(self, username: str, password: str) -> int:
        return AUTH_SUCCESSFUL

    def check_channel_request(self, kind: str, chanid: int) -> int:
        return OPEN_SUCCEEDED

    def check_channel_pty_request(self, *_asked: object) -> bool:
        self._is_over.wait()
        return False


@contextmanager
def controller(folder: Path, is_over: Event) -> Iterator[SshAccess]:
    key = paramiko.ECDSAKey.generate()
    transports: list[paramiko.Transport] = []
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:

        def serve() -> None:
            with suppress(OSError, EOFError, paramiko.SSHException):
                transport = paramiko.Transport(listener.accept()[0])
                transports.append(transport)
                transport.add_server_key(key)
                transport.start_server(server=Controller(is_over))

        thread = Thread(target=serve)
        thread.start()
        port = listener.getsockname()[1]
        known, secret = folder / "known_hosts", folder / "password"
        known.write_text(f"[127.0.0.1]:{port} {key.get_name()} {key.get_base64()}\n")
        secret.write_text("horse")
        try:
            yield SshAccess(
                *("bmc1", "127.0.0.1", known, port, "operator"),
                password=FileSecret(secret),
                use_agent=False,
                answers_within_s=0.05,
            )
        finally:
            is_over.set()
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
            for transport in transports:
                transport.close()


def test_one_that_says_nothing_is_late(tmp_path: Path) -> None:
    with controller(tmp_path, Event()) as access, closing(connect(access, soon())) as connection:
        channel = connection.open_session(soon())
        with pytest.raises(DeadlineExceeded, match=r"bmc1 .*opening a shell: the server did not answer in time"):
            connection.show_shell(channel, "vt100", 80, 25, Deadline.after(CLOCK, 0.0))


def test_one_that_says_no_is_refused(tmp_path: Path) -> None:
    is_over = Event()
    is_over.set()
    with (
        controller(tmp_path, is_over) as access,
        pytest.raises(LabError, match=r"bmc1 .*opening a shell: the server refused it"),
    ):
        open_shell(access, soon())
