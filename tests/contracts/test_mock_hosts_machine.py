"""What a mock server has of its own and what it has of this machine, and that nothing of it is left behind."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from rackloop.errors import LabError
from rackloop.lab import LabState, load_lab
from rackloop_drivers.rackd import RackdControl
from rackloop_labs import MockLab
from tests.deadlines import CLOCK, soon
from tests.mock_rack import MockRack, running_mock_rack

LINK_RATE = "/sys/class/sas_phy/phy-0:0/negotiated_linkrate"


def test_its_files_are_its_own(rack: MockRack, tmp_path: Path) -> None:
    (tmp_path / "ours").touch()
    assert rack.says("srv1", f"ls -A /root /home; cat /etc/hostname; ls {tmp_path} 2>/dev/null || :").split() == [
        *("/home:", "/root:", "srv1")
    ]
    for folder in ("/etc", "/home", "/opt", "/root", "/srv", "/tmp", "/var/lib", "/run", "/dev/shm"):
        rack.says("srv1", f"echo mine > {folder}/mine")
        assert rack.ssh("srv2", f"ls {folder}/mine").returncode == 2


def test_its_programs_are_this_machines_and_cannot_be_changed(rack: MockRack) -> None:
    done = rack.ssh("srv1", "touch /usr/bin/mine")
    assert done.returncode == 1
    assert b"Read-only file system" in done.stderr


def test_its_processes_are_its_own(rack: MockRack) -> None:
    commands = rack.says("srv1", "cat /proc/[0-9]*/comm").split()
    assert commands[0] == "bwrap"
    assert "python3" not in commands


def test_its_network_leads_nowhere(rack: MockRack) -> None:
    assert rack.says("srv1", "ls /proc/sys/net/ipv4/conf").split() == ["all", "default", "lo"]
    host, port = rack.address("srv2")
    assert rack.ssh("srv1", f"exec 3<>/dev/tcp/{host}/{port}").returncode != 0


def test_its_network_can_be_tuned_and_its_kernel_cannot(rack: MockRack) -> None:
    path = Path("/proc/sys/net/core/somaxconn")
    ours = path.read_text()
    assert rack.says("srv1", f"echo 77 > {path}; cat {path}") == "77"
    assert path.read_text() == ours
    assert rack.says("srv2", f"cat {path}") == ours.strip()
    assert rack.says("srv1", "echo 10 > /proc/sys/kernel/panic; cat /proc/sys/kernel/panic") == "10"
    assert rack.says("srv2", "cat /proc/sys/kernel/panic") == "0"
    done = rack.ssh("srv1", "echo 1 > /proc/sys/kernel/panic_on_oops")
    assert done.returncode == 1
    assert b"Read-only file system" in done.stderr


def test_io_reaches_its_drives_by_the_path_this_machine_knows(rack: MockRack) -> None:
    uri = f"nbd+unix:///srv1.p0?socket={rack.endpoints['nbd']}"
    assert json.loads(rack.says("srv1", f"nbdinfo --json '{uri}'"))["exports"][0]["export-size"] == 8 << 30


def test_a_device_node_is_missing_and_said_to_be(rack: MockRack) -> None:
    done = rack.ssh("srv1", "dd if=/dev/sda of=/dev/null count=1")
    assert done.returncode == 1
    assert b"/dev/sda': No such file or directory" in done.stderr


def test_an_emulated_tool_sees_what_is_mapped(rack: MockRack) -> None:
    listed = json.loads(rack.says("srv1", "nvme list -o json"))
    assert [drive["SerialNumber"] for drive in listed["Devices"]] == ["00123456"]


@pytest.fixture
def phy(rack: MockRack) -> Iterator[RackdControl]:
    """What drops the PHY of ``srv1.p0``, which is up again after the test."""
    with rack.rackd() as rackd:
        yield rackd
        rackd.request("phy_drop", soon(), ports=[1], down_ms=0.001)


def test_sys_is_current_when_a_command_starts(rack: MockRack, phy: RackdControl) -> None:
    before = rack.says("srv1", f"cat {LINK_RATE}")
    phy.request("phy_drop", soon(), ports=[1], down_ms=1e6)
    assert (before, rack.says("srv1", f"cat {LINK_RATE}")) == ("6.0 Gbit", "Link Rate failed")


def test_sys_follows_the_rack_while_a_command_looks(rack: MockRack, phy: RackdControl) -> None:
    looks = f"echo looking; until grep -q failed {LINK_RATE}; do sleep 0.02; done"
    with subprocess.Popen(rack.ssh_argv("srv1", looks), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as looking:
        assert looking.stdout is not None
        assert looking.stdout.readline() == b"looking\n"
        phy.request("phy_drop", soon(), ports=[1], down_ms=1e6)
        assert looking.wait(timeout=soon().remaining_s()) == 0


def test_a_tool_that_nobody_emulates_is_not_found(rack: MockRack) -> None:
    done = rack.ssh("srv1", "ln -s /opt/rackloop/bin/hosttool ~/no-such-tool; ~/no-such-tool --version")
    assert (done.stdout, done.stderr, done.returncode) == (b"", b"sh: no-such-tool: not found\n", 127)


def test_a_lab_that_ends_leaves_nothing(tmp_path: Path) -> None:
    with running_mock_rack(tmp_path) as rack:
        rack.says("srv1", "mkdir -p ~/locked/inside; chmod 0 ~/locked; nohup sleep 600 > /dev/null 2>&1 &")
        assert sandboxes(rack.state)
        memory = (rack.state.directory / "memory").readlink()
        assert (memory / "srv1" / "sys" / "block").exists()
    assert not memory.exists()
    assert not sandboxes(rack.state)
    kept = {"labd.lock", "labd.log", "store.sqlite", "up.lock"}
    assert {path.name for path in rack.state.directory.iterdir()} <= kept


def test_a_lab_that_is_killed_takes_its_servers_with_it(tmp_path: Path) -> None:
    lab = load_lab("mock")
    state = LabState.of(lab.name, root=tmp_path)
    mock = MockLab(lab, CLOCK, state)
    mock.up(seed=1)
    rack = MockRack(lab, state)
    assert os.getsid(rack.endpoints["pid"]) == rack.endpoints["pid"], "a lab that stays up is of no terminal"
    rack.says("srv1", "echo stale > ~/file; nohup sleep 600 > /dev/null 2>&1 &")
    os.kill(rack.endpoints["pid"], signal.SIGKILL)
    deadline = soon()
    while state.is_held() or sandboxes(state):
        assert not deadline.is_over()
    memory = (state.directory / "memory").readlink()
    with running_mock_rack(tmp_path) as rack:
        assert rack.says("srv1", "ls -A /root") == ""
        assert not memory.exists()


def test_a_lab_that_ends_with_its_run_is_of_one_session_with_it_and_hears_no_ctrl_c(tmp_path: Path) -> None:
    with running_mock_rack(tmp_path) as rack:
        lab = rack.endpoints["pid"]
        assert (os.getsid(lab), os.getpgid(lab)) == (os.getsid(0), lab)


def test_its_commands_ignore_no_signal_that_who_started_the_lab_ignores(tmp_path: Path) -> None:
    """As under nohup: a server's hang-up of a terminal ends what runs there, as OpenSSH's does."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGHUP, signal.SIGQUIT)}
    try:
        with running_mock_rack(tmp_path) as rack:
            assert int(rack.says("srv1", "grep SigIgn /proc/self/status").split()[1], 16) == 0
            os.kill(rack.endpoints["pid"], signal.SIGHUP)
            assert rack.says("srv1", "echo up") == "up"
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def test_it_does_not_inherit_the_variables_of_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PASSWORD_OF_A_SERVER", "hunter2")
    monkeypatch.setenv("OF_NO_DESCRIPTION", "kept")
    described = tmp_path / "one.yaml"
    described.write_text(
        "{name: one, kind: mock, fabric: {driver: flexfabric},\n"
        "servers: {srv1: {ports: {p0: 1}, password: {env: PASSWORD_OF_A_SERVER}}},\n"
        "drives: {d01: {profile: sata-ssd, serial: A1, slot: 1, size: 1 MiB, port: 2, scratch: true}}}\n"
    )
    with running_mock_rack(tmp_path, str(described)) as rack:
        environment = rack.says("srv1", "tr '\\0' '\\n' < /proc/1/environ").splitlines()
    assert "OF_NO_DESCRIPTION=kept" in environment
    assert not [line for line in environment if line.startswith("PASSWORD_OF_A_SERVER")]


def test_without_bubblewrap_one_line_names_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = load_lab("mock")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LabError, match=r"bwrap was not found, .*: install the package bubblewrap$"):
        MockLab(lab, CLOCK, LabState.of(lab.name, root=tmp_path)).up(leashed=True)


def sandboxes(state: LabState) -> list[int]:
    """The processes of this lab's sandboxes that live."""
    program = os.fsencode(str(shutil.which("bwrap")))
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (process / "cmdline").read_bytes()
            if words.startswith(program + b"\0") and os.fsencode(state.directory) in words:
                found.append(int(process.name))
    return found
