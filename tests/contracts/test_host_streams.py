"""Commands beside the others: those whose input and output are bytes, none held back, and those that stay for long."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from rackloop.errors import DeadlineExceeded, LabError, ToolError
from rackloop_drivers.host import SshAccess, SshHost, SshStream
from rackloop_labs import ssh_accesses
from tests.deadlines import CLOCK, soon
from tests.fio_process import labelled
from tests.mock_rack import running_mock_rack
from tests.sshd_process import require_sudo, running_sshd

# More than the sessions that sshd serves of one connection.
MANY = 12
# The shell stays: of a process that becomes another program the kernel shows no environment for a moment.
STAYS = ("sh", "-c", "echo on; sleep 1000; exit")


@contextmanager
def openssh(_folder: Path) -> Iterator[SshAccess]:
    with running_sshd() as sshd:
        yield sshd.access()


@contextmanager
def sudo(_folder: Path) -> Iterator[SshAccess]:
    require_sudo()
    with running_sshd() as sshd:
        yield replace(sshd.access(), sudo=True)


@contextmanager
def mock(folder: Path) -> Iterator[SshAccess]:
    with running_mock_rack(folder) as rack:
        yield ssh_accesses(rack.lab, rack.endpoints)["srv1"]


@pytest.fixture(scope="module", params=[openssh, sudo, mock], ids=["sshd", "sudo", "mock"])
def access(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshAccess]:
    with request.param(tmp_path_factory.mktemp("rack")) as arm:
        yield arm


@pytest.fixture
def streaming(access: SshAccess) -> Iterator[SshHost]:
    with SshHost(access, CLOCK, f"streams/{os.getpid()}") as host:
        yield host


def read(stream: SshStream, length: int) -> bytes:
    """So many bytes, or all there are."""
    data = b""
    while len(data) < length and (more := stream.read_bytes(soon())):
        data += more
    return data


def test_bytes_that_could_begin_a_mark_are_not_held_back(streaming: SshHost) -> None:
    stream = streaming.open_stream(("cat",))
    for data in (b"\0", b"\0rackloop-end", b"\0rackloop-end streams/", bytes(range(256)), b"\xff\n\0"):
        stream.write_bytes(data)
        assert read(stream, len(data)) == data
    stream.close()


def test_many_bytes_come_as_they_were_sent(streaming: SshHost) -> None:
    data = os.urandom(5 << 20)
    stream = streaming.open_stream(("head", "-c", str(len(data)), "/dev/zero"))
    assert read(stream, len(data)) == bytes(len(data))
    stream.close()
    stream = streaming.open_stream(("cat",))
    for at in range(0, len(data), 1 << 18):
        part = data[at : at + (1 << 18)]
        stream.write_bytes(part)
        assert read(stream, len(part)) == part
    stream.close()


def test_its_end_is_told(streaming: SshHost) -> None:
    stream = streaming.open_stream(("sh", "-c", "echo trouble >&2; exit 3"))
    assert stream.read_bytes(soon()) == b""
    ended = stream.wait(soon())
    assert (ended.status, ended.stderr) == (3, "trouble\n")
    with pytest.raises(ToolError, match="no longer reads"):
        stream.write_bytes(b"x")
    stream.close()
    stream.close()


def test_a_missing_program_is_named(streaming: SshHost) -> None:
    stream = streaming.open_stream(("rackloop-nonesuch",))
    assert stream.read_bytes(soon()) == b""
    with pytest.raises(ToolError, match="rackloop-nonesuch was not found"):
        stream.wait(soon())
    stream.close()


def test_who_waits_for_bytes_waits_until_the_deadline(streaming: SshHost) -> None:
    stream = streaming.open_stream(("sleep", "1000"))
    with pytest.raises(DeadlineExceeded, match="printed nothing in time"):
        stream.read_bytes(soon(0.05))
    stream.close()


def test_streams_take_no_commands_place(streaming: SshHost) -> None:
    with ExitStack() as stack:
        streams = [streaming.open_stream(("cat",)) for _ in range(MANY)]
        for stream in streams:
            stack.callback(stream.close)
        assert streaming.run(("echo", "here"), soon()).stdout == "here\n"
        for stream in streams:
            stream.write_bytes(b"x")
            assert stream.read_bytes(soon()) == b"x"


def test_commands_that_stay_take_no_others_place(streaming: SshHost) -> None:
    staying = [streaming.start_aside(("cat",)) for _ in range(MANY)]
    assert streaming.run(("echo", "here"), soon()).stdout == "here\n"
    for number, process in enumerate(staying):
        process.write_line(str(number))
        assert process.read_line(soon()) == str(number)
        assert process.wait(soon()).status == 0


def test_commands_that_stay_end_with_their_host(access: SshAccess) -> None:
    working_for = f"staying/{os.getpid()}"
    with SshHost(access, CLOCK, working_for) as host:
        process = host.start_aside(STAYS)
        assert process.read_line(soon()) == "on"
        assert labelled(working_for)
    assert soon().poll(lambda: labelled(working_for), lambda left: not left, every_s=0.02) == []
    with pytest.raises(LabError, match="closed"):
        host.start_aside(("cat",))


def test_they_end_with_their_host(access: SshAccess) -> None:
    working_for = f"ending/{os.getpid()}"
    with SshHost(access, CLOCK, working_for) as host:
        stream = host.open_stream(STAYS)
        assert read(stream, 3) == b"on\n"
        assert labelled(working_for)
    assert soon().poll(lambda: labelled(working_for), lambda left: not left, every_s=0.02) == []
    with pytest.raises(ToolError, match="no longer reads"):
        stream.write_bytes(b"x")
    with pytest.raises(LabError, match="closed"):
        host.open_stream(("cat",))
