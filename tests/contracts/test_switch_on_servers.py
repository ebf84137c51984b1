"""The storage switch on servers, by SSH: it is brought there, ends with its harness, and heal ends what was left."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from rackloop.abilities import WritableDrive
from rackloop.errors import BadInput, LabError
from rackloop.safety import end_orphans
from rackloop_drivers.block import NbdExport
from rackloop_drivers.block.nbd_session import NbdSession
from rackloop_drivers.host import SshHost
from rackloop_drivers.storage_switch import StorageSwitch, SwitchedTenant
from tests.deadlines import CLOCK, soon
from tests.fio_process import labelled
from tests.nbdkit_process import serving_unix
from tests.sshd_process import running_sshd
from tests.writable_drive import minted

pytestmark = pytest.mark.skipif(shutil.which("nbdkit") is None, reason="nbdkit is not installed")

MIB = 1 << 20
TENANTS = [SwitchedTenant("a", 0, 4 * MIB), SwitchedTenant("b", 4 * MIB, 4 * MIB)]


@pytest.fixture
def drive(tmp_path: Path) -> Iterator[WritableDrive]:
    with (
        serving_unix(tmp_path / "drive.sock", ("memory", str(8 * MIB))) as socket,
        minted(NbdExport(socket, "", 8 * MIB)) as writable,
    ):
        yield writable


def switch_on(host: SshHost, drive: WritableDrive) -> StorageSwitch:
    return StorageSwitch(host, [drive], {"kind": "gimbal"}, TENANTS, soon(), clock=CLOCK)


def reads(switch: StorageSwitch) -> bool:
    try:
        with NbdSession(NbdExport(switch.nbd, "a", 4 * MIB), CLOCK) as session:
            return session.read(0, 4096) == bytes(4096)
    except LabError:
        return False


def test_it_is_brought_to_a_server_and_ends_with_the_session(drive: WritableDrive, tmp_path: Path) -> None:
    lab = f"lab{os.getpid()}"
    with running_sshd(home=str(tmp_path)) as sshd:
        with SshHost(sshd.access(), CLOCK, f"{lab}/mine") as host:
            switch = switch_on(host, drive)
            assert reads(switch)
            assert [path.name.partition("-")[0] for path in (tmp_path / ".cache/rackloop").iterdir()] == [
                "storageswitch"
            ]
            switch.close()
            assert not reads(switch)
            left = switch_on(host, drive)
            assert reads(left)
        # It was not closed: it ends with the connection.
        soon().poll(lambda: labelled(f"{lab}/mine"), lambda found: not found, every_s=0.05)
        assert not reads(left)
        with SshHost(sshd.access(), CLOCK) as host, pytest.raises(BadInput, match="the storage switch refuses"):
            StorageSwitch(host, [drive], {"kind": "gimbel"}, TENANTS, soon(), clock=CLOCK)


def test_one_that_a_dead_run_left_is_ended_by_heal(drive: WritableDrive) -> None:
    lab = f"lab{os.getpid()}"
    with running_sshd() as sshd, SshHost(sshd.access(), CLOCK, f"{lab}/over") as dead:
        switch = switch_on(dead, drive)
        assert reads(switch)
        with SshHost(sshd.access(), CLOCK) as healing:
            assert end_orphans(lab, [healing], lambda: ["over"], soon()) == ((), [])
            assert reads(switch)
            ended, problems = end_orphans(lab, [healing], list, soon())
        assert problems == []
        assert {orphan.lease for orphan in ended} == {"over"}
        assert any("storageswitch" in orphan.command for orphan in ended)
        assert not reads(switch)
