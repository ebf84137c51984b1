"""Drive, PowerPort and BlockDevice of a simulated rack, and the control socket under them, against a real rackd."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from rackloop.abilities import Drive, DriveIdentity, PowerPort
from rackloop.clock import Deadline, VirtualClock
from rackloop.errors import DeadlineExceeded, GuardRefused, LabError, NotConnected, ProtocolError
from rackloop.lab import Lab, load_lab
from rackloop.portmap import PortMap
from rackloop.safety import Guard, Located
from rackloop.safety.store import open_store
from rackloop.safety.undo import ActRecorder, Equipment, Journal, undoing
from rackloop_drivers.block import NbdExport
from rackloop_drivers.drive import RackdDrive, survey
from rackloop_drivers.fabric.static import StaticFabric
from rackloop_drivers.power import RackdPowerPort
from rackloop_drivers.rackd import RackdControl, RackdRefused, TruthStream
from tests.deadlines import CLOCK, soon
from tests.leased import EverythingLeased
from tests.rackd_process import RunningRackd, drive, running_rackd, small_rack

D01 = DriveIdentity("RL SSD 1", "RL000001", "1.0", "sata", 64 << 20, {"wwn": "5000c500a0000001"})
LAB = """
name: bench
kind: mock
fabric: {driver: flexfabric, ports: 160}
servers: {srv1: {ports: {p0: 1, p1: 2}}}
drives:
  d01: {profile: sata-ssd, model: RL SSD 1, serial: RL000001, wwn: 5000c500a0000001, size: 64 MiB, port: 101,
        scratch: true}
  d02: {profile: sata-ssd, model: RL SSD 1, serial: RL000002, wwn: 5000c500a0000002, size: 64 MiB, port: 102,
        scratch: false}
baseline: {srv1: {p0: d01}}
"""


@pytest.fixture
def rackd(tmp_path: Path) -> Iterator[RunningRackd]:
    config = small_rack()
    config["expanders"] = {"exp1": {"port": 150}}
    config["drives"].append(drive(9, expander="exp1", slot=3) | {"port": None})
    config["map"] = [[1, 101], [2, 150]]
    with running_rackd(tmp_path, config) as running:
        yield running


@pytest.fixture
def control(rackd: RunningRackd) -> Iterator[RackdControl]:
    control = rackd.connect()
    await_online(control, 1)
    await_online(control, 2)
    yield control
    control.close()


def await_online(control: RackdControl, port: int) -> None:
    """Return once the port's PHY is up and its drive answers."""
    deadline = soon()
    name = f"p{port - 1}"
    where = {"server": "srv1", "port": name} | ({"slot": 3} if port == 2 else {})
    while control.request("identify", deadline, **where)["drive"] is None:
        assert not deadline.is_over()


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    path = tmp_path / "bench.yaml"
    path.write_text(LAB)
    return load_lab(path)


def test_a_drive_says_who_it_is(control: RackdControl) -> None:
    seen = RackdDrive(control, server="srv1", port="p0")
    assert isinstance(seen, Drive)
    assert isinstance(seen, Located)
    assert seen.identify(soon()) == D01
    assert seen.location == "srv1.p0"


def test_a_drive_behind_an_expander_has_its_slot(control: RackdControl) -> None:
    seen = RackdDrive(control, server="srv1", port="p1", slot=3)
    assert seen.identify(soon()).identifiers == {"wwn": "5000c500a0000009", "slot": "3"}
    assert seen.location == "srv1.p1.s3"


def test_a_drive_counts_what_was_done_to_it(control: RackdControl) -> None:
    health = RackdDrive(control, server="srv1", port="p0").health(soon())
    assert health["power_cycles"] == 1
    assert health["media_errors"] == 0
    assert "t_ns" not in health


def test_a_port_without_a_drive_is_a_broken_bench(control: RackdControl) -> None:
    with pytest.raises(LabError, match=r"no drive is online at srv1\.p2; map one there"):
        RackdDrive(control, server="srv1", port="p2").identify(soon())


def test_a_survey_finds_drives_that_are_mapped_nowhere(control: RackdControl) -> None:
    found = survey(control, ["d01", "d02"], soon())
    assert found[0] == D01
    assert found[1].serial == "RL000002"


@pytest.mark.parametrize("target", ["switch", "server:srv1", "drive:d01"])
def test_power_goes_and_comes(control: RackdControl, target: str) -> None:
    port = RackdPowerPort(control, target)
    assert isinstance(port, PowerPort)
    assert port.is_on(soon())
    port.turn_off(soon())
    port.turn_off(soon())
    assert not port.is_on(soon())
    port.turn_on(soon())
    assert port.is_on(soon())


def test_a_server_without_power_sees_no_drive_and_a_scope_gives_it_back(
    control: RackdControl, lab: Lab, tmp_path: Path
) -> None:
    journal = Journal(open_store(tmp_path / "store.sqlite", CLOCK))
    equipment = Equipment(StaticFabric(PortMap()), power={"server:srv1": RackdPowerPort(control, "server:srv1")})
    with undoing(equipment, ActRecorder(lab, journal, "run-1"), CLOCK) as acting:
        acting.power["server:srv1"].turn_off(soon())
        with pytest.raises(LabError, match="no drive is online"):
            RackdDrive(control, server="srv1", port="p0").identify(soon())
    await_online(control, 1)
    assert journal.standing("bench") == []
    journal.close()


def test_the_guard_mints_on_the_path_of_the_drive_and_on_no_other(
    control: RackdControl, rackd: RunningRackd, lab: Lab
) -> None:
    guard = Guard(lab, EverythingLeased(), seen=survey(control, lab.drives, soon()))
    here = RackdDrive(control, server="srv1", port="p0")
    with guard.writable("d01", here, NbdExport(rackd.nbd, "srv1.p0", 64 << 20), soon()) as writable:
        assert writable.serial == "RL000001"
    with pytest.raises(GuardRefused, match=r"identified at srv1\.p0, but I/O would go to srv1\.p1"):
        guard.writable("d01", here, NbdExport(rackd.nbd, "srv1.p1", 64 << 20), soon())


def test_the_guard_follows_a_remap(control: RackdControl, rackd: RunningRackd, lab: Lab) -> None:
    control.request("map", soon(), pairs=[[1, 102]])
    await_online(control, 1)
    here, device = RackdDrive(control, server="srv1", port="p0"), NbdExport(rackd.nbd, "srv1.p0", 64 << 20)
    with pytest.raises(GuardRefused) as raised:
        Guard(lab, EverythingLeased()).writable("d01", here, device, soon())
    assert any("the drive reports 'RL000002'" in reason for reason in raised.value.reasons)
    with pytest.raises(GuardRefused) as raised:
        Guard(lab, EverythingLeased()).writable("d02", here, device, soon())
    assert raised.value.reasons == ("the description does not mark it scratch: true; its content may be worth keeping",)


def test_a_refusal_has_its_code(control: RackdControl) -> None:
    with pytest.raises(RackdRefused, match="stale_generation") as raised:
        control.request("map", soon(), pairs=[[1, 102]], generation=99)
    assert raised.value.code == "stale_generation"
    with pytest.raises(RackdRefused) as raised:
        control.request("frobnicate", soon())
    assert raised.value.code == "unknown_op"


def test_many_threads_have_many_requests_in_flight(control: RackdControl) -> None:
    def ask(port: int) -> bool:
        return set(control.request("states", soon(), ports=[port])["states"]) == {str(port)}

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(ask, [1 + number % 160 for number in range(2000)]))


def executed(truth: TruthStream, generation: int) -> dict[str, Any]:
    """The record of the map change that made this generation."""
    record = truth.next_before(soon())
    while record["event"] != "executed" or record["generation"] != generation:
        record = truth.next_before(soon())
    return record


def test_truth_is_told_as_it_happens(control: RackdControl) -> None:
    with control.subscribe() as truth:
        answer = control.request("map", soon(), pairs=[[3, 103]])
        assert executed(truth, answer["generation"])["t_ns"] == answer["t_ns"]


def test_truth_of_some_events_leaves_the_others_out(control: RackdControl) -> None:
    with control.subscribe(["executed", "announce"]) as truth, control.subscribe() as whole:
        control.request("map", soon(), pairs=[[3, 103]])
        control.request("announce", soon(), ports=[3])
        control.request("map", soon(), pairs=[[3, 104]])
        told = [truth.next_before(soon())["event"] for _ in range(3)]
        assert told == ["executed", "announce", "executed"]
        everything = [whole.next_before(soon())["event"]]
        while everything.count("executed") < 2:
            everything.append(whole.next_before(soon())["event"])
    assert [event for event in everything if event in told] == told
    assert set(everything) > set(told)


def test_an_event_that_rackd_has_not_is_refused_by_name(control: RackdControl) -> None:
    with pytest.raises(ProtocolError, match=r"no event .*phy_sideways.*; there are executed, phy_down"):
        control.subscribe(["phy_sideways"])


def test_without_news_truth_keeps_to_its_deadline(control: RackdControl) -> None:
    with control.subscribe() as truth, pytest.raises(DeadlineExceeded):
        truth.next_before(Deadline.after(CLOCK, 0))


def test_truth_ends_with_rackd(control: RackdControl, rackd: RunningRackd) -> None:
    with control.subscribe() as truth:
        executed(truth, control.request("map", soon(), pairs=[[3, 103]])["generation"])
        rackd.stop(signal.SIGKILL)
        assert all("t_ns" in record for record in truth)
        with pytest.raises(NotConnected, match="did it end"):
            truth.next_before(soon())


def test_a_rackd_that_died_is_not_connected(control: RackdControl, rackd: RunningRackd) -> None:
    rackd.stop(signal.SIGKILL)
    for _ in range(2):
        with pytest.raises(NotConnected):
            control.request("hello", soon())


@contextmanager
def stopped(rackd: RunningRackd) -> Iterator[None]:
    """rackd does nothing at all while the context lasts."""
    rackd.process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, rackd.process.pid, os.WSTOPPED | os.WNOWAIT)
    try:
        yield
    finally:
        rackd.process.send_signal(signal.SIGCONT)


def test_a_stopped_rackd_is_a_deadline_exceeded_and_its_late_answer_harmless(
    control: RackdControl, rackd: RunningRackd
) -> None:
    with stopped(rackd), pytest.raises(DeadlineExceeded, match="did not answer hello in time"):
        control.request("hello", Deadline.after(CLOCK, 0.05))
    assert control.request("hello", soon())["pid"] == rackd.process.pid


def test_nobody_at_the_socket_is_not_connected(tmp_path: Path) -> None:
    clock = VirtualClock()
    with pytest.raises(NotConnected, match="bring the lab up"):
        RackdControl(tmp_path / "none.sock", clock)
    assert clock.now_ns() >= 2_000_000_000


def test_a_peer_that_is_no_rackd_is_a_protocol_error(tmp_path: Path) -> None:
    path = tmp_path / "odd.sock"
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.listen()

    def answer() -> None:
        connection, _ = server.accept()
        request = json.loads(connection.makefile("r").readline())
        connection.sendall(json.dumps({"id": request["id"], "answer": 42}).encode() + b"\n")
        connection.makefile("r").readline()
        connection.sendall(b"good morning\n")
        connection.recv(1)
        connection.close()

    odd = threading.Thread(target=answer)
    odd.start()
    control = RackdControl(path, CLOCK)
    with pytest.raises(ProtocolError, match="neither a result nor an error"):
        control.request("hello", soon())
    with pytest.raises(NotConnected, match="not JSON"):
        control.request("hello", soon())
    control.close()
    odd.join()
    server.close()


def test_closing_ends_what_is_in_flight(control: RackdControl, rackd: RunningRackd) -> None:
    with stopped(rackd), ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(control.request, "hello", soon())
        while not control._waiting:
            assert not waiting.done()
        control.close()
        with pytest.raises(NotConnected):
            waiting.result()


def test_fio_reaches_the_drive_through_the_export(control: RackdControl, rackd: RunningRackd) -> None:
    options = NbdExport(rackd.nbd, "srv1.p0", 64 << 20).fio_options()
    arguments = [f"--{name}={value}" for name, value in options.items()]
    done = subprocess.run(
        ["fio", "--name=w", "--rw=write", "--bs=64k", "--size=1M", "--output-format=json", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    (job,) = json.loads(done.stdout[done.stdout.index("{") :])["jobs"]
    assert (job["error"], job["write"]["io_bytes"]) == (0, 1 << 20)
    assert RackdDrive(control, server="srv1", port="p0").health(soon())["bytes_written"] >= 1 << 20
