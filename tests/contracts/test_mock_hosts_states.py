"""What a client of a mock server meets when the server loses power, boots, crashes or hangs."""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rackloop.clock import Deadline
from rackloop.errors import LabError, NotConnected
from rackloop.lab import LabState
from rackloop_labs.labd_control import HostState, LabdControl
from tests.deadlines import CLOCK, soon
from tests.mock_rack import MockRack

BOOT_ID = "cat /proc/sys/kernel/random/boot_id"
# How long a server that answers nothing is listened to: one that answers does it in milliseconds.
SILENCE_S = 0.3
# Reads a line in its middle, which it prints.
WAITING = "read line; echo $line; sleep 600"


@pytest.fixture
def server(rack: MockRack) -> Iterator[str]:
    """A server that is up before and after the test."""
    yield "srv1"
    with rack.rackd() as rackd:
        rackd.request("power", soon(), target="server:srv1", on=True)
    if rack.control.states(soon())["srv1"] in {HostState.CRASHED, HostState.HUNG}:
        rack.control.boot("srv1", soon())
    rack.becomes("srv1", HostState.UP)


def power(rack: MockRack, server: str, *, on: bool) -> None:
    with rack.rackd() as rackd:
        rackd.request("power", soon(), target=f"server:{server}", on=on)
    rack.becomes(server, HostState.UP if on else HostState.OFF)


def is_refused(rack: MockRack, server: str) -> bool:
    try:
        with socket.create_connection(rack.address(server), timeout=10):
            return False
    except ConnectionRefusedError:
        return True


def begins(command_line: Path, word: str) -> bool:
    """Whether the process was called so; it may have ended."""
    with contextlib.suppress(OSError):
        return command_line.read_bytes().startswith(word.encode() + b"\0")
    return False


def children(process: int) -> list[str]:
    """The names of the programs that a process waits for."""
    names = []
    for child in Path(f"/proc/{process}/task/{process}/children").read_text().split():
        with contextlib.suppress(OSError):
            names.append(Path(f"/proc/{child}/comm").read_text().strip())
    return names


def cut_power(rack: MockRack, server: str) -> None:
    power(rack, server, on=False)


def crash(rack: MockRack, server: str) -> None:
    rack.control.crash(server, soon())


@pytest.mark.parametrize("end", [cut_power, crash])
def test_a_server_that_ends_resets_its_connections_and_refuses_more(
    rack: MockRack, server: str, end: Callable[[MockRack, str], None]
) -> None:
    with rack.running(server, WAITING) as ssh, socket.create_connection(rack.address(server), timeout=10) as raw:
        assert raw.recv(4) == b"SSH-"
        end(rack, server)
        with pytest.raises(ConnectionResetError), raw.makefile("rb") as stream:
            stream.read()
        assert ssh.wait(30) == 255
    assert is_refused(rack, server)
    assert not is_refused(rack, "srv2")


def test_power_boots_a_server_anew_and_its_files_are_there(rack: MockRack, server: str) -> None:
    before = rack.says(server, f"echo kept > ~/file; echo gone > /run/file; sync; {BOOT_ID}")
    power(rack, server, on=False)
    power(rack, server, on=True)
    assert rack.says(server, BOOT_ID) != before
    assert rack.says(server, "cat ~/file; ls /run/file 2>&1 || :").splitlines() == [
        "kept",
        "ls: cannot access '/run/file': No such file or directory",
    ]


def test_a_crash_leaves_the_links_of_the_drives_up(rack: MockRack, server: str) -> None:
    ports = sorted(rack.lab.servers[server].ports.values(), key=str)
    with rack.rackd() as rackd:
        rack.control.crash(server, soon())
        assert set(rackd.request("states", soon(), ports=ports)["states"].values()) == {"UP"}
        assert rackd.request("power", soon(), target=f"server:{server}")["on"] is True


def test_a_server_that_crashed_boots_by_its_reset_button(rack: MockRack, server: str) -> None:
    before = rack.says(server, BOOT_ID)
    rack.control.crash(server, soon())
    rack.control.boot(server, soon())
    assert rack.says(server, BOOT_ID) != before


def test_a_server_that_hangs_accepts_and_answers_nothing(rack: MockRack, server: str) -> None:
    rack.control.hang(server, soon())
    with socket.create_connection(rack.address(server), timeout=SILENCE_S) as fresh:
        fresh.sendall(b"SSH-2.0-test\r\n")
        with pytest.raises(TimeoutError):
            fresh.recv(1)
    rack.control.resume(server, soon())


def test_what_hung_goes_on_in_its_middle(rack: MockRack, server: str) -> None:
    with rack.running(server, WAITING) as ssh:
        assert ssh.stdin is not None
        assert ssh.stdout is not None
        rack.control.hang(server, soon())
        ssh.stdin.write(b"went on\n")
        ssh.stdin.flush()
        rack.control.resume(server, soon())
        assert ssh.stdout.readline() == b"went on\n"
        assert rack.says(server, "echo new") == "new"


def test_processes_of_a_server_that_hangs_stand_still(rack: MockRack, server: str) -> None:
    marker = f"sleep-{os.getpid()}"
    rack.says(
        server, f"nohup bash -c 'exec -a {marker} sleep 600' > /dev/null 2>&1 & until pgrep -f ^{marker}; do :; done"
    )
    (process,) = (path.parent for path in Path("/proc").glob("[0-9]*/cmdline") if begins(path, marker))
    # A process stops, and goes on, as soon as it is on a processor again.
    for act, is_stopped in ((rack.control.hang, True), (rack.control.resume, False)):
        act(server, soon())
        deadline = soon()
        while ("State:\tT (stopped)" in (process / "status").read_text()) is not is_stopped:
            assert not deadline.is_over()
    rack.says(server, f"pkill -f ^{marker}")


def test_what_hung_leaves_nothing_when_it_is_reset(rack: MockRack, server: str) -> None:
    with rack.running(server, WAITING) as ssh:
        rack.control.hang(server, soon())
        rack.control.boot(server, soon())
        assert ssh.wait(30) == 255
    deadline = soon()
    while "nsenter" in children(rack.endpoints["pid"]):
        assert not deadline.is_over()


def test_reboot_boots_anew(rack: MockRack, server: str) -> None:
    before = rack.says(server, BOOT_ID)
    assert rack.ssh(server, "reboot").returncode in {0, 255}
    deadline = soon()
    while (now := rack.ssh(server, BOOT_ID).stdout.decode().strip()) in {"", before}:
        assert not deadline.is_over()
    assert len(now) == len(before)


def test_poweroff_takes_the_power_that_a_controller_sees(rack: MockRack, server: str) -> None:
    rack.ssh(server, "poweroff")
    rack.becomes(server, HostState.OFF)
    with rack.rackd() as rackd:
        assert rackd.request("power", soon(), target=f"server:{server}")["on"] is False


def test_a_shutdown_that_is_called_off_does_not_come(rack: MockRack, server: str) -> None:
    planned = rack.ssh(server, "shutdown -r +5")
    assert planned.returncode == 0
    assert b"Reboot scheduled for " in planned.stderr
    before = rack.says(server, f"shutdown -c; {BOOT_ID}")
    assert rack.says(server, BOOT_ID) == before


def test_a_kernel_that_somebody_ends_is_a_crash(rack: MockRack, server: str) -> None:
    # In a PID namespace reboot(2) ends its init.
    rack.ssh(server, "python3 -c 'import ctypes; ctypes.CDLL(None).reboot(0x01234567)'")
    rack.becomes(server, HostState.CRASHED)
    assert is_refused(rack, server)


@pytest.mark.parametrize(
    ("act", "said"),
    [
        (lambda control: control.resume("srv2", soon()), "server srv2 is up, and only one that is hung can do that"),
        (lambda control: control.crash("srv9", soon()), "no server srv9; there are srv1, srv2, srv3, srv4"),
    ],
    ids=["state", "name"],
)
def test_what_cannot_be_is_said(rack: MockRack, act: Callable[[LabdControl], None], said: str) -> None:
    with pytest.raises(LabError, match=said):
        act(rack.control)


def test_a_server_without_power_has_no_reset_button(rack: MockRack, server: str) -> None:
    power(rack, server, on=False)
    with pytest.raises(LabError, match="server srv1 is off, and only one that is up or hung or crashed can do that"):
        rack.control.boot(server, soon())


def test_a_lab_that_is_down_cannot_be_asked(rack: MockRack) -> None:
    control = LabdControl(LabState(rack.state.directory / "elsewhere"))
    with pytest.raises(NotConnected, match="bring the lab up"):
        control.states(Deadline.after(CLOCK, 5))


NONSENSE: list[tuple[object, str]] = [
    ([], "bad_request"),
    ({}, "bad_request"),
    ({"op": []}, "bad_request"),
    ({"op": {}}, "bad_request"),
    ({"op": None}, "bad_request"),
    ({"op": "fly", "server": "srv1"}, "unknown_op"),
    ({"op": "crash", "server": ["srv1"]}, "unknown_server"),
    ({"op": "break", "resource": []}, "bad_request"),
    ({"op": "break", "resource": "server:srv1", "key": {}}, "bad_request"),
    ({"op": "break", "resource": "server:srv1", "key": "k", "fault": [[[]]]}, "bad_request"),
    (
        {"op": "break", "resource": "cabling", "key": "k", "fault": {"kind": "miswire", "ports": [1e300, 2]}},
        "bad_request",
    ),
]


def test_nonsense_is_answered_and_the_next_line_heard(rack: MockRack) -> None:
    with socket.socket(socket.AF_UNIX) as wire, wire.makefile("rb") as answers:
        wire.settimeout(10)
        wire.connect(str(rack.state.directory / "labd.sock"))
        for line in (b"nonsense", b"\xff", b"[" * 100_000):
            wire.sendall(line + b"\n")
            assert json.loads(answers.readline())["error"]["code"] == "bad_request"
        for request, code in NONSENSE:
            wire.sendall(json.dumps(request).encode() + b"\n")
            assert json.loads(answers.readline())["error"]["code"] == code, request
    assert rack.control.states(soon())["srv2"] is HostState.UP
    assert "Traceback" not in rack.state.log.read_text()
