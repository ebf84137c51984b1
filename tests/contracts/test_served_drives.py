"""A server's drive, served by SSH: what is lost is loud, what is not permitted is not written, nothing stays there."""

from __future__ import annotations

import ctypes
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import pytest

from rackloop.abilities.blocks import BLOCK_BYTES, IoFailed
from rackloop.errors import BadInput, DeadlineExceeded, GuardRefused, LabError, NotConnected, NotSupported
from rackloop.native import find_binary
from rackloop_drivers.block import HostPath
from rackloop_drivers.block.nbd_session import NbdSession
from rackloop_drivers.block.nbd_session._connection import NbdConnection, Request
from rackloop_drivers.block.nbd_session._way import ServedWay
from rackloop_drivers.host import LocalExecutor
from rackloop_drivers.open_blocks import open_blocks
from rackloop_models.local_erasure import Layout, LocalStore, format_drive
from tests.deadlines import CLOCK, soon
from tests.drive_server import BYTES, MIB, SERIAL, WWN, DriveServer, running_drive_server
from tests.fio_process import labelled
from tests.writable_drive import minted

DATA = b"\x5a" * MIB


@pytest.fixture
def working_for() -> str:
    return f"served/{os.getpid()}"


@pytest.fixture
def server(tmp_path: Path, working_for: str) -> Iterator[DriveServer]:
    with running_drive_server(tmp_path, working_for) as server:
        yield server


def probes(working_for: str, what: str) -> list[int]:
    """The processes of rackprobe that do this for a lab and lease."""
    found = []
    for process in labelled(working_for):
        argv = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
        if b"rackprobe" in argv[0] and argv[1:2] == [what.encode()]:
            found.append(process)
    return found


def await_none(working_for: str) -> None:
    """Return once nothing runs for this lab and lease any more."""
    left = soon().poll(lambda: labelled(working_for), lambda left: not left, every_s=0.02)
    assert not left, [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in left]


def test_what_is_written_is_on_the_drive_once_it_is_flushed(server: DriveServer) -> None:
    with minted(server.device) as permit, open_blocks(permit, CLOCK) as blocks:
        blocks.write(3 * MIB, DATA)
        blocks.flush()
        content = server.content.read_bytes()
    assert content[3 * MIB : 4 * MIB] == DATA
    assert content.count(0) == BYTES - MIB


def test_zeroes_are_the_servers_to_write(server: DriveServer) -> None:
    server.content.write_bytes(b"\1" * BYTES)
    with minted(server.device) as permit, NbdSession(permit, CLOCK) as session:
        session.write_zeroes(MIB, 2 * MIB)
        assert session.read(0, 4 * MIB) == b"\1" * MIB + bytes(2 * MIB) + b"\1" * MIB


def test_a_session_that_ended_leaves_nothing_there(server: DriveServer, working_for: str) -> None:
    with minted(server.device) as permit, open_blocks(permit, CLOCK) as blocks:
        assert len(probes(working_for, "serve")) == 1
        assert blocks.read(0, BLOCK_BYTES) == bytes(BLOCK_BYTES)
    assert probes(working_for, "serve") == []
    assert probes(working_for, "hold") == []


def test_a_cut_connection_is_loud_and_a_new_session_finds_what_was_written(server: DriveServer) -> None:
    with minted(server.device) as permit:
        blocks = open_blocks(permit, CLOCK)
        blocks.write(0, DATA)
        server.sshd.break_connections()
        with pytest.raises(NotConnected, match="connection was lost"):
            blocks.read(0, MIB)
        with pytest.raises(NotConnected):
            blocks.read(0, MIB)
        with pytest.raises(LabError):
            blocks.write(0, bytes(MIB))
        blocks.close()
    with minted(server.device) as permit, open_blocks(permit, CLOCK) as blocks:
        assert blocks.read(0, MIB) == DATA


def test_a_write_that_is_cut_is_whole_or_not_there_by_blocks(server: DriveServer) -> None:
    with minted(server.device) as permit:
        blocks = open_blocks(permit, CLOCK)
        server.sshd.break_connections()
        with pytest.raises(LabError):
            blocks.write(0, b"\1" * 16 * MIB)
        blocks.close()
    content = server.content.read_bytes()
    for at in range(0, 16 * MIB, BLOCK_BYTES):
        assert content[at : at + BLOCK_BYTES] in (bytes(BLOCK_BYTES), b"\1" * BLOCK_BYTES)


def test_a_server_that_hangs_is_waited_for_until_the_deadline(server: DriveServer) -> None:
    session = NbdSession(server.device, CLOCK, within_s=0.5)
    server.sshd.hang()
    with pytest.raises(DeadlineExceeded, match="was not answered in"):
        session.read(0, BLOCK_BYTES)
    with pytest.raises(NotConnected, match="closed"):
        session.read(0, BLOCK_BYTES)
    session.close()


@pytest.mark.parametrize("what", ["serve", "hold"])
def test_a_program_that_is_killed_there_is_loud(server: DriveServer, working_for: str, what: str) -> None:
    with minted(server.device) as permit:
        blocks = open_blocks(permit, CLOCK)
        [process] = probes(working_for, what)
        os.kill(process, signal.SIGKILL)
        with pytest.raises(LabError, match=r"Killed|is gone"):
            blocks.write(0, DATA)
        blocks.close()
    assert server.content.read_bytes() == bytes(BYTES)


def test_another_drive_than_the_tools_say_is_not_served(server: DriveServer) -> None:
    server.swap("OTHER")
    with pytest.raises(LabError, match="its serial is OTHER, not RL1"):
        open_blocks(server.device, CLOCK)
    with pytest.raises(GuardRefused, match="its serial is OTHER, not RL1"):
        minted(server.device)


def test_a_drive_that_was_exchanged_since_it_was_claimed_is_not_written(server: DriveServer) -> None:
    with minted(server.device) as permit, open_blocks(permit, CLOCK) as blocks:
        server.swap("OTHER")
        with pytest.raises(GuardRefused, match="its serial is OTHER"):
            blocks.write(0, DATA)
        with pytest.raises(GuardRefused, match="its serial is OTHER"):
            open_blocks(permit, CLOCK)
    assert server.content.read_bytes() == bytes(BYTES)


def test_a_drive_that_is_gone_says_nothing_of_sectors(server: DriveServer) -> None:
    with open_blocks(server.device, CLOCK) as blocks:
        server.unplug()
        with server.content.open("r+b") as file:
            file.truncate(MIB)
        with pytest.raises(IoFailed) as failed:
            blocks.read(8 * MIB, BLOCK_BYTES)
        assert not failed.value.is_unreadable


def test_without_permission_the_server_writes_nothing_either(server: DriveServer) -> None:
    """A client that asks no guard finds an export that is read-only."""
    with open_blocks(server.device, CLOCK) as blocks:
        with pytest.raises(BadInput, match="opened to be read"):
            blocks.write(0, DATA)
        assert blocks.read(0, MIB) == bytes(MIB)
    connection = NbdConnection(ServedWay(server.device.serve(writes=False)), CLOCK, 30)
    data = ctypes.create_string_buffer(DATA, MIB)
    place = (data, ctypes.c_size_t(MIB), ctypes.c_uint64(0))
    for request in (
        Request("nbd_aio_pwrite", place),
        Request("nbd_aio_zero", (ctypes.c_uint64(MIB), ctypes.c_uint64(0))),
    ):
        with pytest.raises(IoFailed, match="write"):
            connection.carry_out("write", [request])
    connection.close()
    assert server.content.read_bytes() == bytes(BYTES)


@pytest.mark.skipif(shutil.which("nbdcopy") is None, reason="libnbd's programs are not installed")
def test_other_clients_understand_it(server: DriveServer, tmp_path: Path) -> None:
    content = os.urandom(BYTES)
    server.content.write_bytes(content)
    what = (f"--serial={SERIAL}", f"--size={BYTES}", f"--wwn={WWN}", "--", f"/dev/disk/by-id/wwn-0x{WWN}")
    served = shlex.join((str(find_binary("rackprobe")), "serve", *what))
    environment = {**os.environ, "SSH_ORIGINAL_COMMAND": served}
    address, copy = tmp_path / "nbd.sock", tmp_path / "copy"

    def answer(listener: socket.socket) -> None:
        """Give each caller a server of its own, until the listener is shut."""
        with suppress(OSError):
            while True:
                caller, _ = listener.accept()
                with caller:
                    subprocess.run(
                        (str(server.folder / "command"),),
                        env=environment,
                        stdin=caller.fileno(),
                        stdout=caller.fileno(),
                        check=False,
                    )

    with closing(socket.socket(socket.AF_UNIX)) as listener, ThreadPoolExecutor(1) as thread:
        listener.bind(str(address))
        listener.listen()
        thread.submit(answer, listener)
        try:
            argv = ("nbdinfo", "--json", f"nbd+unix:///?socket={address}")
            [export] = json.loads(subprocess.run(argv, capture_output=True, check=True).stdout)["exports"]
            assert (export["export-size"], export["is_read_only"], export["block_size_minimum"]) == (BYTES, True, 512)
            subprocess.run(("nbdcopy", f"nbd+unix:///{SERIAL}?socket={address}", str(copy)), check=True)
        finally:
            listener.shutdown(socket.SHUT_RDWR)
    assert copy.read_bytes() == content


def test_a_client_that_talks_nonsense_is_left(server: DriveServer) -> None:
    serving = server.device.serve(writes=False)
    try:
        with socket.socket(fileno=serving.take_socket()) as client:
            client.sendall(b"\xff" * 64)
            said = b"".join(iter(lambda: client.recv(4096), b""))
        assert said[:8] == b"NBDMAGIC"
        assert isinstance(serving.loss("?"), NotConnected)
    finally:
        serving.close()


def test_where_no_bytes_can_be_streamed_it_is_said_so(executor: LocalExecutor) -> None:
    device = HostPath(executor, "/dev/none", CLOCK)
    with pytest.raises((NotSupported, LabError)):
        open_blocks(device, CLOCK)


def test_a_store_lies_on_a_drive_of_a_server(server: DriveServer) -> None:
    content = os.urandom(3 * MIB + 17)
    with minted(server.device) as permit, open_blocks(permit, CLOCK) as blocks:
        format_drive(blocks, Layout(10, 2))
        with LocalStore(blocks, CLOCK) as store:
            store.create("results").write(0, content)
    with (
        minted(server.device) as permit,
        open_blocks(permit, CLOCK) as blocks,
        LocalStore(blocks, CLOCK) as store,
    ):
        assert store.open("results").read(0, len(content)) == content


_HARNESS = """
import sys
from pathlib import Path
from rackloop.clock import RealClock
from rackloop_drivers.block import HostPath
from rackloop_drivers.host import SshAccess, SshHost
from rackloop_drivers.open_blocks import open_blocks
known_hosts, port, user, key_file, device, working_for = sys.argv[1:]
clock = RealClock()
access = SshAccess("srv1", "127.0.0.1", Path(known_hosts), int(port), user, Path(key_file))
blocks = open_blocks(HostPath(SshHost(access, clock, working_for), device, clock), clock)
print("open", flush=True)
while True:
    blocks.read(0, 1 << 20)
"""


def test_a_harness_that_is_killed_leaves_nothing_there(server: DriveServer) -> None:
    access, working_for = server.sshd.access(), f"served-killed/{os.getpid()}"
    login = (access.known_hosts, access.port, access.user, access.key_file)
    argv = [sys.executable, "-c", _HARNESS, *map(str, login), server.device.location.partition(":")[2], working_for]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as harness:
        assert harness.stdout is not None
        assert harness.stdout.readline() == "open\n"
        assert len(probes(working_for, "serve")) == 1
        harness.kill()
    await_none(working_for)
