"""Servers that hang, vanish, refuse or are no SSH servers at all: one clear error each, before the deadline."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from rackloop.abilities import Host
from rackloop.clock import Deadline
from rackloop.errors import BadInput, DeadlineExceeded, LabError, NotConnected, ProtocolError, ToolError
from rackloop_drivers.host import SshAccess, SshHost, run_on_all
from tests.deadlines import CLOCK, soon
from tests.sshd_process import Sshd, running_sshd

SHORT_S = 0.5
# What killing a command on a hung server may add to its deadline, and a busy machine to that.
GRACE_S = 120.0


@pytest.fixture
def sshd() -> Iterator[Sshd]:
    with running_sshd() as running:
        yield running


def shortly() -> Deadline:
    return Deadline.after(CLOCK, SHORT_S)


@contextmanager
def answering(text: bytes | None, folder: Path) -> Iterator[SshAccess]:
    """What accepts one connection and says ``text``, or nothing for as long as the block lasts."""
    known = folder / "known_hosts"
    known.write_text("")
    is_over = threading.Event()
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:

        def answer() -> None:
            with suppress(OSError), listener.accept()[0] as connection:
                connection.recv(1)
                if text is not None:
                    connection.sendall(text)
                else:
                    is_over.wait()

        thread = threading.Thread(target=answer)
        thread.start()
        try:
            yield SshAccess("srv1", "127.0.0.1", known, listener.getsockname()[1], use_agent=False)
        finally:
            is_over.set()
            # Wakes the thread where nobody connected.
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def test_a_server_that_accepts_and_never_answers_is_late(tmp_path: Path) -> None:
    with answering(None, tmp_path) as access, SshHost(access, CLOCK) as host:
        deadline = shortly()
        with pytest.raises(DeadlineExceeded, match=r"srv1 .*did not answer in time; is it hung"):
            host.run(("true",), deadline)
        assert CLOCK.now_ns() < deadline.at_ns + GRACE_S * 1e9


def test_a_name_that_no_host_can_have_is_bad_input(tmp_path: Path) -> None:
    access = SshAccess("srv1", "no..host", tmp_path / "known_hosts")
    with SshHost(access, CLOCK) as host, pytest.raises(BadInput, match=r"srv1.*'no\.\.host' is no name"):
        host.run(("true",), soon())


@pytest.mark.parametrize(
    ("said", "kind", "message"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n" * 100, ProtocolError, "srv1 .*no SSH could be agreed on"),
        (b"SSH-1.5-antique\r\n", ProtocolError, "srv1 .*no SSH could be agreed on.*1.5"),
        (b"", NotConnected, "srv1 .*closed the connection before it said who it is.*MaxStartups"),
    ],
    ids=["http", "ssh1", "nothing"],
)
def test_what_is_no_ssh_server_is_told_from_one(
    tmp_path: Path, said: bytes, kind: type[LabError], message: str
) -> None:
    with answering(said, tmp_path) as access, SshHost(access, CLOCK) as host, pytest.raises(kind, match=message):
        host.run(("true",), soon())


def test_a_name_that_nobody_has_is_not_connected(sshd: Sshd) -> None:
    access = replace(sshd.access(), host="no-such-host.invalid")
    with SshHost(access, CLOCK) as host, pytest.raises(NotConnected, match=r"srv1 .*no-such-host.invalid"):
        host.run(("true",), soon())


def test_a_server_that_hangs_fails_the_command_at_its_deadline(sshd: Sshd, host: SshHost) -> None:
    process = host.start(("sh", "-c", "echo up; sleep 1000"))
    assert process.read_line(soon()) == "up"
    sshd.hang()
    with pytest.raises(DeadlineExceeded, match="srv1: sh -c 'echo up; sleep 1000'"):
        process.wait(shortly())
    deadline = shortly()
    with pytest.raises(DeadlineExceeded, match=r"srv1.*is it hung"):
        host.run(("true",), deadline)
    assert CLOCK.now_ns() < deadline.at_ns + GRACE_S * 1e9
    # The connection was given up, so the next call makes one that a process of its own answers.
    assert host.run(("echo", "back"), soon()).stdout == "back\n"


def test_input_that_a_hung_server_does_not_take_holds_nobody(sshd: Sshd, host: SshHost) -> None:
    process = host.start(("sh", "-c", "echo up; exec cat"))
    assert process.read_line(soon()) == "up"
    sshd.hang()
    process.feed(bytes(64 << 20))
    with pytest.raises(DeadlineExceeded, match=r"srv1: .*exec cat"):
        process.wait_bytes(shortly())
    process.kill()
    with pytest.raises(NotConnected, match=r"srv1: .*exec cat"):
        process.wait(soon())
    assert host.run(("echo", "back"), soon()).stdout == "back\n"


def test_closing_a_host_that_hangs_takes_no_longer_than_a_farewell(tmp_path: Path) -> None:
    with running_sshd(tmpdir=str(tmp_path)) as sshd:
        host = SshHost(sshd.access(), CLOCK)
        assert host.put_text("left", "").startswith(str(tmp_path))
        sshd.hang()
        begun_ns = CLOCK.now_ns()
        host.close()
        assert CLOCK.now_ns() < begun_ns + 2 * GRACE_S * 1e9


def test_a_server_that_is_given_up_is_not_waited_for(sshd: Sshd, host: SshHost) -> None:
    process = host.start(("sh", "-c", "echo up; sleep 1000"))
    stream = host.open_stream(("sh", "-c", "echo up; exec cat"))
    assert process.read_line(soon()) == stream.read_line(soon()) == "up"
    sshd.hang()
    begun_ns = CLOCK.now_ns()
    host.give_up()
    for running in (process, stream):
        with pytest.raises(NotConnected, match="srv1: sh -c 'echo up"):
            running.read_line(soon())
    stream.close()
    process.kill()
    assert CLOCK.now_ns() < begun_ns + GRACE_S * 1e9
    # Used again, it is connected to again.
    assert host.run(("echo", "back"), soon()).stdout == "back\n"


def test_killing_takes_as_long_as_the_server_may_take_to_answer(tmp_path: Path) -> None:
    """A server so busy that a shell takes its time is not told to have a command stuck in its kernel."""
    busy = tmp_path / "busy"
    (tmp_path / "sh").write_text(f'#!/bin/sh\n[ -p {busy} ] && read -r _ <{busy}\nexec /bin/sh "$@"\n')
    (tmp_path / "sh").chmod(0o755)
    with (
        running_sshd(path=f"{tmp_path}:{os.environ['PATH']}") as sshd,
        SshHost(replace(sshd.access(), answers_within_s=2.0), CLOCK) as host,
    ):
        process = host.start(("cat",))
        process.write_line("up")
        assert process.read_line(soon()) == "up"
        os.mkfifo(busy)
        with pytest.raises(LabError, match=r"srv1: cat: the server did not send it SIGKILL within 2 s"):
            process.kill()
        busy.write_text("go on\n")
        busy.unlink()
        process.kill()


def test_commands_that_stay_share_a_connection_which_outlives_them(sshd: Sshd, host: SshHost) -> None:
    for _ in range(2):
        staying = [host.start_aside(("cat",)) for _ in range(8)]
        assert sshd.connections == 1
        for process in staying:
            assert process.wait(soon()).status == 0
    ninth = [host.start_aside(("cat",)) for _ in range(9)]
    assert sshd.connections == 2
    for process in ninth:
        process.kill()


def test_a_server_that_came_back_is_given_no_command_by_an_old_connection(sshd: Sshd, host: SshHost) -> None:
    stays = host.start_aside(("cat",))
    assert sshd.connections == 1
    host.reconnect(soon())
    comes = host.start_aside(("cat",))
    assert sshd.connections == 3
    for process in (stays, comes):
        process.write_line("here")
        assert process.read_line(soon()) == "here"
        assert process.wait(soon()).status == 0
    # What the old one ran has ended: it is closed when the server comes back once more.
    host.reconnect(soon())
    assert host.run(("true",), soon()).status == 0


def test_commands_that_stay_are_not_waited_for_where_a_server_is_given_up(sshd: Sshd, host: SshHost) -> None:
    process = host.start_aside(("cat",))
    sshd.hang()
    begun_ns = CLOCK.now_ns()
    host.give_up()
    with pytest.raises(NotConnected, match="srv1: cat"):
        process.read_line(soon())
    process.kill()
    assert CLOCK.now_ns() < begun_ns + GRACE_S * 1e9
    again = host.start_aside(("cat",))
    assert again.wait(soon()).status == 0


def test_a_closed_host_runs_nothing(sshd: Sshd) -> None:
    host = SshHost(sshd.access(), CLOCK)
    host.close()
    with pytest.raises(LabError, match=r"srv1.*closed"):
        host.run(("true",), soon())
    assert sshd.connections == 0


def test_a_server_with_too_few_sessions_is_told_how_many_are_needed() -> None:
    with running_sshd("MaxSessions 2") as sshd, SshHost(sshd.access(), CLOCK) as host:
        process = host.start(("sh", "-c", "echo up; read -r line"))
        assert process.read_line(soon()) == "up"
        with pytest.raises(LabError, match=r"srv1.*MaxSessions"):
            host.run(("true",), soon())
        assert process.wait(soon()).status == 1


def test_a_caller_in_a_hurry_does_not_end_what_others_run(host: SshHost) -> None:
    process = host.start(("sh", "-c", "echo up; read -r line; echo still here"))
    assert process.read_line(soon()) == "up"
    for late in (0.0, 0.000_001, 0.000_1):
        with pytest.raises(DeadlineExceeded, match="srv1"):
            host.run(("true",), Deadline.after(CLOCK, late))
    process.write_line("go on")
    assert process.read_line(soon()) == "still here"


def test_a_server_without_room_for_temporary_files_says_so() -> None:
    with (
        running_sshd(tmpdir="/proc/nowhere") as sshd,
        SshHost(sshd.access(), CLOCK) as host,
        pytest.raises(LabError, match=r"srv1: no folder for temporary files can be made: .*/proc/nowhere"),
    ):
        host.put_text("file", "text")


def test_commands_wait_for_room_until_their_deadline(host: SshHost) -> None:
    running = [host.start(("sh", "-c", "echo up; read -r line")) for _ in range(8)]
    assert [process.read_line(soon()) for process in running] == ["up"] * 8
    with pytest.raises(DeadlineExceeded, match="8 commands run there already"):
        host.run(("true",), shortly())
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(host.run, ("echo", "at last"), soon())
        running[0].write_line("end")
        running[0].wait(soon())
        assert waiting.result().stdout == "at last\n"


def test_what_a_command_leaves_in_its_group_ends_with_it(host: SshHost) -> None:
    done = host.run(("sh", "-c", 'sleep 1000 >/dev/null 2>&1 & echo "$!"'), soon())
    gone = ("sh", "-c", 'test ! -e "/proc/$1" || grep -q "^State:.[ZX]" "/proc/$1/status"', "gone", done.stdout.strip())
    deadline = soon()
    while host.run(gone, deadline).status:
        assert not deadline.is_over()


def test_a_daemon_that_keeps_the_streams_does_not_hold_its_caller(host: SshHost) -> None:
    script = "setsid sh -c 'echo \"$$\"; exec sleep 1000' & read -r line"
    done = host.run(("sh", "-c", script), soon(), stdin="go\n")
    host.run(("kill", done.stdout.strip()), soon())
    assert done.status == 0


def test_a_deadline_may_lie_years_ahead(host: SshHost) -> None:
    far = Deadline.after(CLOCK, 1e9)
    assert host.run(("cat",), far, stdin="now").stdout == "now"
    process = host.start(("echo", "now"))
    assert process.read_line(far) == "now"
    assert process.wait(far).status == 0


def test_a_signal_that_ends_a_command_is_in_its_status(host: SshHost) -> None:
    assert host.run(("sh", "-c", 'kill -TERM "$$"'), soon()).status == 128 + signal.SIGTERM


def test_a_status_of_a_command_is_not_taken_for_a_missing_program(host: SshHost) -> None:
    done = host.run(("sh", "-c", "no-such-program"), soon())
    assert done.status == 127
    assert "no-such-program" in done.stderr


def test_a_file_that_is_no_program_cannot_be_executed(host: SshHost) -> None:
    with pytest.raises(ToolError, match=r"srv1: .*data: cannot be executed: Permission denied"):
        host.run((host.put_text("data", ""),), soon())


@pytest.mark.parametrize(
    ("argv", "said"),
    [(("echo", "a\0b"), "null byte"), ((), "0 bytes|1 to"), (("echo", "x" * 200_000), "put_text")],
    ids=["nul", "nothing", "long"],
)
def test_what_can_be_no_command_is_bad_input(host: SshHost, argv: tuple[str, ...], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        host.run(argv, soon())


def test_what_a_login_shell_prints_by_itself_is_not_the_commands(sshd: Sshd, host: SshHost) -> None:
    shell = subprocess.run(("getent", "passwd", sshd.user), capture_output=True, text=True, check=True).stdout.strip()
    if not shell.endswith("bash"):
        pytest.skip("only bash reads a file of the account's when sshd starts it")
    (sshd.folder / "home" / ".bashrc").write_text("echo Welcome to the rack\n")
    assert host.run(("echo", "hello"), soon()).stdout == "hello\n"


def test_administrators_programs_are_found(host: SshHost) -> None:
    path = host.run(("printenv", "PATH"), soon()).stdout.strip().split(":")
    assert path[-3:] == ["/usr/local/sbin", "/usr/sbin", "/sbin"]


def test_work_on_all_servers_comes_back_by_name(sshd: Sshd) -> None:
    hosts = [SshHost(sshd.access(f"srv{number}"), CLOCK) for number in range(4)]
    assert run_on_all(hosts, lambda host, by: host.run(("echo", host.name), by).stdout, soon()) == {
        f"srv{number}": f"srv{number}\n" for number in range(4)
    }
    for host in hosts:
        host.close()
    assert run_on_all([], _name, soon()) == {}


def test_work_that_fails_on_some_servers_names_each_of_them(sshd: Sshd) -> None:
    with closing(socket.socket()) as nobody:
        # Bound, so that nobody else gets the port, and not listening, so that it refuses.
        nobody.bind(("127.0.0.1", 0))
        down = replace(sshd.access("down1"), port=nobody.getsockname()[1])
        hosts = [SshHost(access, CLOCK) for access in (sshd.access("up"), down, replace(down, name="down2"))]
        with pytest.raises(NotConnected, match="2 of 3 servers failed") as failed:
            run_on_all(hosts, lambda host, by: host.run(("true",), by), soon())
    assert sorted(failed.value.children) == ["down1", "down2"]
    assert all("refused" in str(error) for error in failed.value.children.values())
    hosts[0].close()


def test_what_the_user_gave_wrong_for_every_server_is_bad_input(sshd: Sshd, tmp_path: Path) -> None:
    unknown = replace(sshd.access("srv1"), known_hosts=tmp_path / "missing")
    hosts = [SshHost(access, CLOCK) for access in (unknown, replace(unknown, name="srv2"))]
    with pytest.raises(BadInput, match="2 of 2 servers failed") as failed:
        run_on_all(hosts, lambda host, by: host.run(("true",), by), soon())
    assert all(f"{name}: " in str(failed.value) for name in ("srv1", "srv2"))


def _name(host: Host, by: Deadline) -> str:
    return host.name


def test_a_mistake_in_the_work_is_not_taken_for_a_failed_server(sshd: Sshd) -> None:
    with SshHost(sshd.access(), CLOCK) as host, pytest.raises(ZeroDivisionError):
        run_on_all([host], lambda host, by: 1 // 0, soon())
