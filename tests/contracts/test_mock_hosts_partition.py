"""What a client of a mock server meets while the server's network cable is pulled: silence, and after it what was."""

from __future__ import annotations

import select
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from rackloop.clock import Deadline
from rackloop.errors import LabError
from rackloop_drivers.host import SshHost
from rackloop_labs import ssh_accesses
from rackloop_labs.labd_control import HostState
from tests.deadlines import CLOCK, soon
from tests.mock_rack import MockRack

SERVER = "srv1"
PART = f"network:{SERVER}"
KEY = "test"
# How long a server that answers nothing is listened to: one that answers does it in milliseconds.
SILENCE_S = 0.3


@pytest.fixture(autouse=True)
def as_it_was(rack: MockRack) -> Iterator[None]:
    """The server is up and reached before and after each test."""
    yield
    rack.control.mend(PART, KEY, soon())
    with rack.rackd() as rackd:
        rackd.request("power", soon(), target=f"server:{SERVER}", on=True)
    if rack.control.states(soon())[SERVER] in {HostState.CRASHED, HostState.HUNG}:
        rack.control.boot(SERVER, soon())
    rack.becomes(SERVER, HostState.UP)


def pull(rack: MockRack) -> None:
    rack.control.break_as(PART, KEY, {"kind": "partition"}, soon())


def plug(rack: MockRack) -> None:
    assert rack.control.mend(PART, KEY, soon())


def is_silent(wire: socket.socket | subprocess.Popen[bytes]) -> bool:
    """Whether nothing comes, not even an end."""
    readable = wire if isinstance(wire, socket.socket) else wire.stdout
    assert readable is not None
    return not select.select([readable], [], [], SILENCE_S)[0]


def answers_nobody(rack: MockRack) -> bool:
    """Whether who connects to the server is neither accepted nor refused."""
    try:
        socket.create_connection(rack.address(SERVER), timeout=SILENCE_S).close()
    except TimeoutError:
        return True
    except ConnectionRefusedError:
        return False
    return False


def test_nobody_is_accepted_or_refused_and_the_other_servers_answer(rack: MockRack) -> None:
    pull(rack)
    assert answers_nobody(rack)
    assert rack.says("srv2", "echo here") == "here"
    plug(rack)
    assert rack.says(SERVER, "echo here") == "here"


def test_who_began_to_connect_gets_through_once_the_cable_is_in_again(rack: MockRack) -> None:
    pull(rack)
    with socket.socket() as wire:
        wire.setblocking(False)
        wire.connect_ex(rack.address(SERVER))
        assert not select.select([], [wire], [], SILENCE_S)[1]
        plug(rack)
        wire.settimeout(20)
        assert wire.recv(4) == b"SSH-"


def test_what_a_client_sends_arrives_when_the_cable_is_in_again(rack: MockRack) -> None:
    with rack.running(SERVER, "read line; echo $line; read line; echo $line") as ssh:
        assert ssh.stdin is not None
        assert ssh.stdout is not None
        pull(rack)
        ssh.stdin.write(b"late\n")
        assert is_silent(ssh)
        plug(rack)
        assert ssh.stdout.readline() == b"late\n"
        ssh.stdin.write(b"in time\n")
        assert ssh.stdout.readline() == b"in time\n"


def test_what_a_server_says_meanwhile_arrives_when_the_cable_is_in_again(rack: MockRack) -> None:
    folder = rack.state.directory / "hosts" / SERVER / "tmp"
    with rack.running(SERVER, "until [ -e /tmp/go ]; do sleep 0.01; done; echo said; touch /tmp/went; exit 3") as ssh:
        assert ssh.stdout is not None
        pull(rack)
        (folder / "go").touch()
        appears(folder / "went")
        assert is_silent(ssh)
        plug(rack)
        assert ssh.stdout.readline() == b"said\n"
        assert ssh.wait(30) == 3


def appears(path: Path) -> None:
    deadline = soon()
    while not path.exists():
        assert not deadline.is_over(), "the command on the server stood still"


def test_a_server_that_crashes_behind_it_is_found_dead_afterwards(rack: MockRack) -> None:
    with socket.create_connection(rack.address(SERVER), timeout=20) as wire:
        assert wire.recv(100).startswith(b"SSH-")
        pull(rack)
        rack.control.crash(SERVER, soon())
        assert is_silent(wire)
        assert answers_nobody(rack)
        plug(rack)
        with pytest.raises(ConnectionResetError), wire.makefile("rb") as stream:
            stream.read()
    assert not answers_nobody(rack)
    rack.control.boot(SERVER, soon())
    assert rack.says(SERVER, "echo here") == "here"


def test_a_server_that_boots_behind_it_stays_out_of_reach(rack: MockRack) -> None:
    with rack.rackd() as rackd:
        rackd.request("power", soon(), target=f"server:{SERVER}", on=False)
        rack.becomes(SERVER, HostState.OFF)
        pull(rack)
        assert answers_nobody(rack)
        rackd.request("power", soon(), target=f"server:{SERVER}", on=True)
    rack.becomes(SERVER, HostState.UP)
    assert answers_nobody(rack)
    plug(rack)
    assert rack.says(SERVER, "echo here") == "here"


def test_a_server_that_hangs_behind_it_still_hangs_afterwards(rack: MockRack) -> None:
    pull(rack)
    rack.control.hang(SERVER, soon())
    plug(rack)
    with socket.create_connection(rack.address(SERVER), timeout=20) as wire:
        assert is_silent(wire)
        rack.control.resume(SERVER, soon())
        assert wire.recv(4) == b"SSH-"


def test_two_who_pull_it_have_to_plug_it_in_both(rack: MockRack) -> None:
    pull(rack)
    rack.control.break_as(PART, "other", {"kind": "partition"}, soon())
    plug(rack)
    assert answers_nobody(rack)
    assert rack.control.mend(PART, "other", soon())
    assert not answers_nobody(rack)


def test_a_driver_ends_by_its_deadline_and_goes_on_afterwards(rack: MockRack) -> None:
    (access,) = (access for name, access in ssh_accesses(rack.lab, rack.endpoints).items() if name == SERVER)
    with SshHost(access, CLOCK) as connected, SshHost(access, CLOCK) as fresh:
        assert connected.run(("echo", "before"), soon()).stdout == "before\n"
        pull(rack)
        for host in (connected, fresh):
            with pytest.raises(LabError, match=SERVER):
                host.run(("true",), Deadline.after(CLOCK, SILENCE_S))
        plug(rack)
        for host in (connected, fresh):
            host.reconnect(soon())
            assert host.run(("echo", "after"), soon()).stdout == "after\n"


def test_a_way_through_it_to_another_server_is_cut_as_well(rack: MockRack) -> None:
    proxy = " ".join(["ssh", *rack.options(), "-W", "srv2:22", "-p", str(rack.address(SERVER)[1]), "root@127.0.0.1"])
    argv = ["ssh", *rack.options(), "-o", f"ProxyCommand={proxy}", "root@srv2", "echo ready; read line; echo $line"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as ssh:
        assert ssh.stdin is not None
        assert ssh.stdout is not None
        assert ssh.stdout.readline() == b"ready\n"
        pull(rack)
        ssh.stdin.write(b"late\n")
        assert is_silent(ssh)
        plug(rack)
        assert ssh.stdout.readline() == b"late\n"
