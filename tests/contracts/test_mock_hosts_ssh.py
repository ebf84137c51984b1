"""Programs that nobody here wrote take a mock server for a server: OpenSSH's ssh, scp and sftp."""

from __future__ import annotations

import asyncio
import os
import pty
import subprocess
from collections.abc import Sequence
from pathlib import Path

import asyncssh
import paramiko
import pytest

from tests.mock_rack import MockRack, run

# Every byte there is, and more than any pipe or window holds.
BYTES = bytes(range(256)) * 16 * 1024


def test_every_server_answers_under_its_own_name(rack: MockRack) -> None:
    assert {name: rack.says(name, "uname -n") for name in rack.lab.servers} == {name: name for name in rack.lab.servers}


def test_a_command_starts_as_root_at_home(rack: MockRack) -> None:
    assert rack.says("srv1", 'id -un; pwd; echo "$HOME $USER $SHELL"; umask').splitlines() == [
        *("root", "/root", "/root root /bin/bash", "0022")
    ]


def test_both_streams_and_the_status_come_back(rack: MockRack) -> None:
    done = rack.ssh("srv1", "echo out; echo err >&2; exit 42")
    assert (done.stdout, done.stderr, done.returncode) == (b"out\n", b"err\n", 42)


def test_a_command_that_a_signal_ended_says_so(rack: MockRack) -> None:
    # 255 is what OpenSSH's client makes of an exit signal.
    assert rack.ssh("srv1", "kill -KILL $$").returncode == 255


def test_an_unknown_command_is_127(rack: MockRack) -> None:
    done = rack.ssh("srv1", "no-such-program")
    assert done.returncode == 127
    assert b"no-such-program: command not found" in done.stderr


@pytest.mark.parametrize("shell", ["sh -c", "bash --login -c", "bash --login -i -c"])
def test_emulated_tools_come_first_in_every_shell(rack: MockRack, shell: str) -> None:
    assert rack.says("srv1", f"/bin/{shell} 'command -v nvme'") == "/opt/rackloop/bin/nvme"


def test_input_comes_back_byte_for_byte(rack: MockRack) -> None:
    assert rack.ssh("srv1", "cat", stdin=BYTES).stdout == BYTES


def test_a_command_that_reads_nothing_ends_all_the_same(rack: MockRack) -> None:
    assert rack.ssh("srv1", "exec 0<&-; echo done", stdin=BYTES).stdout == b"done\n"


def test_locale_is_accepted_and_other_variables_are_not(rack: MockRack) -> None:
    command = rack.ssh_argv("srv1", 'echo "$LC_ALL-$LANG-$LD_PRELOAD"')
    command[1:1] = ["-o", "SetEnv=LC_ALL=C.UTF-8 LD_PRELOAD=no"]
    assert run(command).stdout == b"C.UTF-8--\n"


def test_a_session_without_a_command_is_a_login_shell(rack: MockRack) -> None:
    done = run(rack.ssh_argv("srv1"), stdin=b"shopt login_shell; echo $PATH\n")
    assert done.stdout.decode().split()[:2] == ["login_shell", "on"]
    assert b"/opt/rackloop/bin:" in done.stdout


def test_a_terminal_is_one_of_the_servers_own(rack: MockRack) -> None:
    done = run(rack.ssh_argv("srv1", "-tt", "tty; test -t 0 && test -t 2 && echo terminal; echo $SSH_TTY"))
    lines = done.stdout.decode().split()
    assert lines[0].startswith("/dev/pts/")
    assert lines[1:] == ["terminal", lines[0]]


def test_a_terminal_has_the_clients_size_and_its_controls(rack: MockRack) -> None:
    ours, theirs = pty.openpty()
    argv = rack.ssh_argv("srv1", "-t", "stty size; trap 'echo interrupted; exit 3' INT; echo ready; read line")
    run(["stty", "-F", os.ttyname(theirs), "rows", "41", "cols", "133"])
    with subprocess.Popen(argv, stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL, start_new_session=True) as ssh:
        os.close(theirs)
        printed = b""
        while b"ready" not in printed:
            printed += os.read(ours, 4096)
        os.write(ours, b"\x03")
        assert ssh.wait(30) == 3
    assert b"41 133" in printed
    os.close(ours)


def test_files_go_there_and_back_by_sftp(rack: MockRack, tmp_path: Path) -> None:
    (tmp_path / "there").write_bytes(BYTES)
    host, port = rack.address("srv2")
    batch = f"put {tmp_path}/there there\nrename there moved\nget moved {tmp_path}/back\n"
    done = run(["sftp", *rack.options(), "-P", str(port), "-b", "-", f"root@{host}"], stdin=batch.encode())
    assert done.returncode == 0, done.stderr.decode()
    assert (tmp_path / "back").read_bytes() == BYTES
    assert rack.says("srv2", "stat -c %s moved") == str(len(BYTES))


@pytest.mark.parametrize("protocol", ["-s", "-O"])
def test_files_go_there_by_scp(rack: MockRack, tmp_path: Path, protocol: str) -> None:
    (tmp_path / "file").write_bytes(BYTES)
    host, port = rack.address("srv2")
    done = run(["scp", protocol, *rack.options(), "-P", str(port), str(tmp_path / "file"), f"root@{host}:copy"])
    assert done.returncode == 0, done.stderr.decode()
    assert rack.ssh("srv2", "cat copy; rm copy").stdout == BYTES


def test_sftp_sees_the_server_and_not_this_machine(rack: MockRack, tmp_path: Path) -> None:
    host, port = rack.address("srv2")
    argv = ["sftp", *rack.options(), "-P", str(port), "-b", "-", f"root@{host}"]
    done = run(argv, stdin=f"get /etc/hostname {tmp_path}/hostname\n-ls {tmp_path}/hostname\n".encode())
    assert (tmp_path / "hostname").read_text() == "srv2\n"
    assert b"not found" in done.stderr


def test_sessions_share_a_connection(rack: MockRack, tmp_path: Path) -> None:
    shared = ["-o", f"ControlPath={tmp_path}/c"]
    master = rack.ssh_argv("srv1", "-M", "-N", "-f")
    master[1:1] = shared
    # -f leaves the client in the background, with this process's streams.
    subprocess.run(master, check=True, timeout=30, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        waiting = rack.ssh_argv("srv1", "read line; echo $line")
        waiting[1:1] = shared
        with subprocess.Popen(waiting, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as first:
            second = rack.ssh_argv("srv1", "echo second")
            second[1:1] = shared
            assert run(second).stdout == b"second\n"
            assert first.communicate(b"first\n", timeout=30)[0] == b"first\n"
    finally:
        run(["ssh", *shared, "-O", "exit", "srv1"])


@pytest.mark.parametrize(("options", "left"), [((), "went on"), (("-tt",), "HUP")], ids=["streams", "terminal"])
def test_who_goes_away_leaves_a_hangup_to_a_terminal_alone(rack: MockRack, options: Sequence[str], left: str) -> None:
    script = "rm -f left; trap 'echo HUP > left; exit' HUP; echo ready; read -r line; echo went on > left"
    argv = rack.ssh_argv("srv1", script)
    argv[1:1] = options
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as ssh:
        assert ssh.stdout is not None
        assert ssh.stdout.readline().strip() == b"ready"
        ssh.kill()
    assert rack.says("srv1", "timeout 20 sh -c 'until test -s left; do :; done; cat left'") == left


def test_what_was_told_to_stay_stays(rack: MockRack) -> None:
    left = rack.says("srv3", "nohup sleep 600 > /dev/null 2>&1 & echo $!")
    assert rack.says("srv3", f"cat /proc/{left}/comm; kill {left}") == "sleep"


def test_every_server_has_a_key_of_its_own(rack: MockRack) -> None:
    known = Path(rack.endpoints["ssh"]["known_hosts"]).read_text().splitlines()
    assert len({line.split()[2] for line in known}) == len(rack.lab.servers)


def test_only_root_gets_in_with_the_labs_key(rack: MockRack, tmp_path: Path) -> None:
    run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "other")])
    strange_key = rack.ssh_argv("srv1", "true")
    strange_key[strange_key.index("-i") + 1] = str(tmp_path / "other")
    strange_user = rack.ssh_argv("srv1", "-l", "nobody", "true")
    strange_user = [word.removeprefix("root@") for word in strange_user]
    for argv in (strange_key, strange_user):
        done = run(argv)
        assert done.returncode == 255
        assert b"Permission denied (publickey)" in done.stderr


def test_a_server_is_a_jump_host_to_the_others(rack: MockRack) -> None:
    jump = " ".join(rack.ssh_argv("srv1", "-W", "srv2:22"))
    argv = rack.ssh_argv("srv2", "uname -n")
    argv[1:1] = ["-o", f"ProxyCommand={jump}"]
    assert run(argv).stdout == b"srv2\n"
    # By its own name, as a lab description of servers behind a jump host has them, its key is known too.
    by_name = ["srv2" if word == "root@127.0.0.1" else word for word in argv]
    by_name[1:1] = ["-l", "root"]
    del by_name[by_name.index("-p") : by_name.index("-p") + 2]
    assert run(by_name).stdout == b"srv2\n"


def test_a_server_leads_nowhere_else(rack: MockRack) -> None:
    done = run(rack.ssh_argv("srv1", "-W", "192.0.2.1:22"))
    assert done.returncode == 255
    assert b"192.0.2.1 port 22: no route to host" in done.stderr


def test_a_command_that_cannot_be_one_is_refused_alone(rack: MockRack) -> None:
    shown = rack.endpoints["ssh"]
    host, port = rack.address("srv1")
    with paramiko.SSHClient() as client:
        client.load_host_keys(shown["known_hosts"])
        client.connect(host, port, "root", key_filename=shown["key_file"], allow_agent=False, look_for_keys=False)
        _, stdout, stderr = client.exec_command("echo a\0b")
        assert stderr.read() == b"embedded null byte\n"
        assert stdout.channel.recv_exit_status() == 255
        _, stdout, _ = client.exec_command("echo next")
        assert stdout.read() == b"next\n"


@pytest.mark.parametrize("terminal", [None, "xterm"])
def test_a_signal_from_the_client_reaches_the_command(rack: MockRack, terminal: str | None) -> None:
    shown = rack.endpoints["ssh"]
    host, port = rack.address("srv1")

    async def interrupt() -> tuple[list[str], int | None]:
        options = {"known_hosts": shown["known_hosts"], "client_keys": [shown["key_file"]], "username": "root"}
        async with asyncssh.connect(host, port, config=None, **options) as connection:
            command = "trap 'echo caught; exit 7' USR1; echo ready; while :; do read -t 1 line < <(sleep 9); done"
            process = await connection.create_process(command, term_type=terminal)
            ready = await process.stdout.readline()
            process.send_signal("USR1")
            caught = await process.stdout.readline()
            return (ready + caught).split(), (await process.wait()).exit_status

    assert asyncio.run(asyncio.wait_for(interrupt(), 30)) == (["ready", "caught"], 7)
