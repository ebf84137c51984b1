"""Programs that are missing, boxes that do not answer, racks that cannot be had: never the product's fault."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from rackloop.lab import load_lab
from rackloop.native import find_binary
from rackloop_drivers.host import SshHost
from rackloop_labs import ssh_accesses
from tests.deadlines import CLOCK, soon
from tests.e2e.command_line import SLOW_S, CommandLine, Results
from tests.e2e.entries import IDENTITY, REMAP, UNDISTURBED
from tests.e2e.test_bad_input import LAB


def run(
    rackloop: CommandLine, *tests: dict[str, Any], lab: str | Path = "mock", out: str = "out", **environment: str
) -> dict[str, Any]:
    """A run that ends with status 3 and without a traceback on standard error; the tests by id."""
    ended = rackloop("run", rackloop.plan(*tests), "--lab", lab, "--out", out, **environment)
    ended.refused(3)
    return Results(rackloop.directory / out).tests()


_WITHOUT_FIO = """
mkdir /opt/only
for folder in $(echo "$PATH" | tr : "\\n"); do ln -s "$folder"/* /opt/only 2>/dev/null; done
rm /opt/only/fio
echo "PATH=/opt/only" >"$HOME/.bashrc"
"""
_FAILING_FIO = b"""#!/bin/sh
case "$1" in
--version) echo fio-3.33 ;;
--enghelp) printf "Available:\\n\\tnbd\\n" ;;
*) echo out of luck >&2; exit 9 ;;
esac
"""


@contextmanager
def servers_without_fio(rackloop: CommandLine) -> Iterator[list[SshHost]]:
    """A mock lab that is up, with servers on which no fio is installed."""
    assert rackloop("lab", "up", "mock").status == 0
    try:
        endpoints = json.loads(rackloop("lab", "status", "mock", "--json").out)
        with ExitStack() as stack:
            accesses = ssh_accesses(load_lab("mock"), endpoints).values()
            hosts = [stack.enter_context(SshHost(access, CLOCK)) for access in accesses]
            for host in hosts:
                assert host.run(("sh", "-c", _WITHOUT_FIO), soon(SLOW_S)).status == 0
            yield hosts
    finally:
        rackloop("lab", "down", "mock")


def test_fio_is_missing_or_fails(rackloop: CommandLine) -> None:
    with servers_without_fio(rackloop) as hosts:
        found = run(rackloop, UNDISTURBED, REMAP)
        for host in hosts:
            host.write_file("/opt/only/fio", _FAILING_FIO, soon(SLOW_S), mode=0o755)
        (failed,) = run(rackloop, UNDISTURBED, out="again").values()
    missed = found["fabric/undisturbed_io::undisturbed_io"]
    assert (missed["verdict"], missed["cause"]) == ("unknown", "harness")
    assert "fio was not found" in missed["reason"]
    assert "apt install fio" in missed["reason"]
    remapped = found["fabric/remap_latency::remap_latency"]
    assert (remapped["verdict"], remapped["reason"]) == ("pass", None)
    assert (failed["verdict"], failed["cause"]) == ("unknown", "harness")
    assert "fio ended with status 9 and said: out of luck" in failed["reason"]


def test_the_native_programs_are_missing(rackloop: CommandLine) -> None:
    found = run(rackloop, REMAP, IDENTITY, RACKLOOP_NATIVE_BIN="/nonexistent")
    assert {test["verdict"] for test in found.values()} == {"blocked"}
    assert {test["cause"] for test in found.values()} == {"lab"}
    assert all("the program rackd is not at /nonexistent/rackd" in test["reason"] for test in found.values())
    rackloop("lab", "up", "mock", RACKLOOP_NATIVE_BIN="/nonexistent").refused(3, "rackd", "RACKLOOP_NATIVE_BIN")


def test_the_probe_is_missing(rackloop: CommandLine) -> None:
    only = rackloop.directory / "only"
    only.mkdir()
    for program in ("rackd", "hosttool"):
        (only / program).symlink_to(find_binary(program))
    (test,) = run(rackloop, REMAP, RACKLOOP_NATIVE_BIN=str(only)).values()
    assert (test["verdict"], test["cause"]) == ("unknown", "harness")
    assert "the program rackprobe is not at" in test["reason"]


@pytest.mark.parametrize(
    "workers", [pytest.param((), id="one"), pytest.param(("-n", "2"), id="workers", marks=pytest.mark.nightly)]
)
def test_a_rack_that_does_not_start_is_told_once(rackloop: CommandLine, workers: tuple[str, ...]) -> None:
    broken = rackloop.directory / "broken"
    broken.mkdir()
    (broken / "rackd").write_text("#!/bin/sh\necho 'rackd: no such silicon' >&2\nexit 1\n")
    (broken / "rackd").chmod(0o755)
    plan = rackloop.plan(REMAP, IDENTITY, UNDISTURBED)
    ended = rackloop("run", plan, "--lab", "mock", "--out", "out", *workers, RACKLOOP_NATIVE_BIN=str(broken))
    ended.refused(3)
    tests = Results(rackloop.directory / "out").tests().values()
    assert len(tests) == 3
    assert {(test["verdict"], test["cause"]) for test in tests} == {("blocked", "lab")}
    assert all("no such silicon" in test["reason"] for test in tests), tests
    rackloop("lab", "up", "mock", RACKLOOP_NATIVE_BIN=str(broken)).refused(3, "no such silicon")
    if not workers:
        assert ended.out.count("in _start_rackd") + ended.out.count("_daemon.py") <= 3, ended.out


def test_a_drive_that_must_not_be_written_is_not(rackloop: CommandLine) -> None:
    drives = LAB["drives"] | {"d02": LAB["drives"]["d02"] | {"scratch": "false"}}
    lab = rackloop.write("lab.yaml", LAB | {"drives": drives})
    (test,) = run(rackloop, IDENTITY, lab=lab).values()
    assert (test["verdict"], test["cause"]) == ("blocked", "lab")
    assert "have no two scratch drives at its baseline" in test["reason"]
    assert Results(rackloop.directory / "out").of_kind("act.announced") == []


@contextmanager
def listening(answer: bytes | None) -> Iterator[int]:
    """A port where connections are taken and, on whatever comes, ``answer`` is sent."""

    def serve(connection: socket.socket) -> None:
        with connection:
            while connection.recv(4096):
                if answer is not None:
                    connection.sendall(answer)

    def accept(server: socket.socket) -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=accept, args=(server,), daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)


def physical(rackloop: CommandLine, port: int) -> Path:
    """A physical lab whose switch is at this port."""
    servers = {"srv1": LAB["servers"]["srv1"] | {"ssh": "srv1.lab.example", "known_hosts": "known_hosts"}}
    (rackloop.directory / "known_hosts").write_text("")
    drives = {name: drive | {"model": "Acme"} for name, drive in LAB["drives"].items()}
    fabric = LAB["fabric"] | {"control": {"tcp": f"127.0.0.1:{port}"}}
    changes = {"kind": "physical", "servers": servers, "drives": drives, "fabric": fabric}
    return rackloop.write("rack.yaml", LAB | changes)


def test_a_switch_that_is_not_there(rackloop: CommandLine) -> None:
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
    lab = physical(rackloop, port)
    rackloop("fabric", lab, "show").refused(3, f"127.0.0.1:{port}", "no switch there", "check that it has power")


def test_a_switch_that_says_nothing(rackloop: CommandLine) -> None:
    with listening(None) as port:
        rackloop("fabric", physical(rackloop, port), "show").refused(3, f"127.0.0.1:{port}")


def test_a_switch_that_speaks_no_sense(rackloop: CommandLine) -> None:
    with listening(b"\x00\xff SSH-2.0 what?\r\n") as port:
        rackloop("fabric", physical(rackloop, port), "show").refused(3, f"127.0.0.1:{port}")


def test_a_disk_that_is_full(rackloop: CommandLine) -> None:
    """No file of the run may grow beyond 400 KiB, as on a disk that fills up; its lab is not limited."""
    assert rackloop("lab", "up", "mock").status == 0
    plan = rackloop.plan(IDENTITY | {"with": {"remaps": 100_000, "check_every": 50}})
    ended = rackloop("run", plan, "--lab", "mock", "--out", "out", prefix=("prlimit", "--fsize=409600"))
    assert ended.status == 3, ended
    assert "Traceback" not in ended.err, ended
    (test,) = Results(rackloop.directory / "out").summary["tests"]
    assert (test["verdict"], test["cause"]) == ("unknown", "lab")
    assert "lab store" in test["reason"]
    assert "nothing may be done to the lab without it" in test["reason"]
    assert "the baseline stands" in rackloop("heal", "mock").out
