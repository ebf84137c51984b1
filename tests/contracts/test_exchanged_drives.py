"""Drives that are exchanged between the guard's check and the write, judged at the drives: what reached which."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from rackloop.abilities import WritableDrive
from rackloop.errors import RackloopError
from rackloop.lab import Lab, load_lab, once_online
from rackloop.safety import Guard
from rackloop.seed import Stream
from rackloop_drivers.block import NbdExport
from rackloop_drivers.block.nbd_session import NbdSession
from rackloop_drivers.drive import RackdDrive
from rackloop_drivers.host import LocalExecutor
from rackloop_drivers.rackd import RackdControl
from rackloop_drivers.workload import Fio, FioJob, FioRun, RackProbe, ReadWrite
from tests.deadlines import CLOCK, soon
from tests.exchanges import BLOCK, NEVER, Exchanges, Round, play
from tests.leased import EverythingLeased
from tests.rackd_process import RunningRackd, running_rackd, small_rack

BYTES = 64 << 20
PORT = 1
SWITCH_PORTS = {"d01": 101, "d02": 102}
ROUNDS = 150
NIGHTLY_ROUNDS = 10_000
LAB = """
name: bench
kind: mock
store: sqlite
fabric: {driver: flexfabric, ports: 160}
servers: {srv1: {stack: comreset, ports: {p0: 1}}}
drives:
  d01: {profile: sata-ssd, model: RL SSD 1, serial: RL000001, wwn: 5000c500a0000001, size: 64 MiB, port: 101,
        scratch: true}
  d02: {profile: sata-ssd, model: RL SSD 1, serial: RL000002, wwn: 5000c500a0000002, size: 64 MiB, port: 102,
        scratch: true}
baseline: {srv1: {p0: d01}}
"""


@dataclass
class ExchangedRack:
    """A server port with one of two drives behind it, and a hand that exchanges them."""

    rackd: RunningRackd
    lab: Lab
    control: RackdControl
    hand: ThreadPoolExecutor
    exchanges: Exchanges
    there: str = ""
    knows_drives: bool = True

    def exchange(self, drive: str) -> None:
        """Have this drive behind the port; returns when the map is changed, before the drive is online."""
        self.control.request("map", soon(), pairs=[[PORT, SWITCH_PORTS[drive]]])
        self.there = drive

    def other(self, drive: str) -> str:
        return next(name for name in SWITCH_PORTS if name != drive)

    def permit(self, drive: str) -> WritableDrive:
        """The guard's permission for the drive, which is put behind the port first."""
        if self.there != drive:
            self.exchange(drive)
        at = RackdDrive(self.control, server="srv1", port="p0")
        once_online(at, soon())
        device = NbdExport(self.rackd.nbd, "srv1.p0", BYTES, knows_drives=self.knows_drives)
        return Guard(self.lab, EverythingLeased()).writable(drive, at, device, soon())

    def round(self, number: int, chance: Stream) -> None:
        """A permission, a write under it, and at some moment of that, or never, an exchange."""
        meant = chance.choice(sorted(SWITCH_PORTS))
        moment = chance.choice([NEVER, "before it is opened", "when it is open", "meanwhile"])
        one = Round(number, meant, self.other(meant), moment)
        exchanged: Future[None] | None = None
        with self.permit(meant) as permit:
            try:
                if moment == "before it is opened":
                    self.exchange(one.other)
                with NbdSession(permit, CLOCK, within_s=20) as session:
                    if moment == "when it is open":
                        self.exchange(one.other)
                    elif moment == "meanwhile":
                        exchanged = self.hand.submit(self.exchange, one.other)
                    session.write(one.at, one.stamp)
                    is_done = True
            except RackloopError:
                is_done = False
            if exchanged is not None:
                exchanged.result()
        self.exchanges.judge(one, is_done=is_done, may_be_done={True} if moment == NEVER else {True, False})


@pytest.fixture
def rack(tmp_path: Path) -> Iterator[ExchangedRack]:
    file = tmp_path / "bench.yaml"
    file.write_text(LAB)
    with ExitStack() as stack:
        rackd = stack.enter_context(running_rackd(tmp_path, small_rack()))
        control = rackd.connect()
        stack.callback(control.close)
        hand = stack.enter_context(ThreadPoolExecutor(1))
        yield ExchangedRack(rackd, load_lab(file), control, hand, Exchanges(rackd.nbd))


@pytest.mark.parametrize("rounds", [ROUNDS, pytest.param(NIGHTLY_ROUNDS, marks=pytest.mark.nightly)])
def test_no_write_reaches_a_drive_that_was_exchanged_for_the_one_that_was_checked(
    rack: ExchangedRack, rounds: int
) -> None:
    play(rack, rounds)
    assert rack.exchanges.wrong == []
    assert rounds // 4 < rack.exchanges.written < rounds


def test_without_a_name_for_one_drive_the_neighbour_is_written(rack: ExchangedRack) -> None:
    """The measurement above finds a write to the wrong drive where there is one."""
    rack.knows_drives = False
    play(rack, 29)
    assert any("written to" in wrong for wrong in rack.exchanges.wrong)


def rackprobe(executor: LocalExecutor, permit: WritableDrive) -> None:
    RackProbe(executor, CLOCK).write(permit, soon(), sectors=8)


def fio(executor: LocalExecutor, permit: WritableDrive) -> None:
    job = FioJob(name="w", device=permit, rw=ReadWrite.WRITE, size_bytes=1 << 20)
    assert Fio(executor, CLOCK).run(FioRun(jobs=(job,), seed=1), soon()).total_err == 0


@pytest.mark.parametrize(
    "write",
    [rackprobe, pytest.param(fio, marks=pytest.mark.skipif(shutil.which("fio") is None, reason="no fio"))],
)
def test_programs_that_write_refuse_the_neighbour(
    rack: ExchangedRack, write: Callable[[LocalExecutor, WritableDrive], None]
) -> None:
    with LocalExecutor(CLOCK) as executor:
        with rack.permit("d01") as permit:
            write(executor, permit)
        assert rack.exchanges.holds("d01", 0) != bytes(BLOCK)
        with rack.permit("d01") as permit:
            rack.exchange("d02")
            once_online(RackdDrive(rack.control, server="srv1", port="p0"), soon())
            with pytest.raises(RackloopError):
                write(executor, permit)
    assert rack.exchanges.holds("d02", 0) == bytes(BLOCK)
