"""fio and rackprobe run on a server by SSH as they do here; rackprobe is brought there."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from rackloop.abilities import Completed
from rackloop.clock import Deadline
from rackloop.errors import LabError, ToolError
from rackloop.native import BIN_VARIABLE, find_binary
from rackloop_drivers.block import DevicePath, NbdExport
from rackloop_drivers.host import SshAccess, SshHost
from rackloop_drivers.host._files import PIECE_BYTES, write_in_pieces
from rackloop_drivers.host_tools import deliver, deliver_program
from rackloop_drivers.workload import (
    Expected,
    Fio,
    FioJob,
    FioRun,
    ProbeTarget,
    RackProbe,
    ReadWrite,
)
from tests.deadlines import CLOCK, soon
from tests.nbdkit_process import serving_unix
from tests.sshd_process import Sshd, running_sshd
from tests.writable_drive import minted

MIB = 1 << 20
SERIAL = "RL000001"


@pytest.fixture
def drive(tmp_path: Path) -> DevicePath:
    path = tmp_path / "drive"
    path.write_bytes(bytes(8 * MIB))
    return DevicePath(path)


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
def test_fio_writes_and_reads_a_drive_of_the_server(host: SshHost, drive: DevicePath) -> None:
    with minted(drive, SERIAL) as writable:
        job = FioJob(name="job", device=writable, rw=ReadWrite.WRITE, block_size_bytes=MIB, verify="crc32c")
        written = Fio(host, CLOCK).run(FioRun(jobs=(job,), seed=1), soon()).jobs[0]
    assert written.total_err == 0
    assert {direction: transfer.io_bytes for direction, transfer in written.transfers.items()} == {
        "write": 8 * MIB,
        "read": 8 * MIB,
    }


def test_files_are_brought_to_one_private_folder(host: SshHost) -> None:
    first, second = host.put_text("first", "one"), host.put_text("second", "two")
    assert Path(first).parent == Path(second).parent
    assert Path(first).parent.stat().st_mode & 0o777 == 0o700
    assert (Path(first).read_text(), Path(second).read_text()) == ("one", "two")


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
def test_fio_is_followed_and_stopped_from_afar(host: SshHost, drive: DevicePath) -> None:
    job = FioJob(name="job", device=drive, rw=ReadWrite.READ, runtime_s=1000.0)
    with Fio(host, CLOCK).start(FioRun(jobs=(job,), seed=1), soon()) as running:
        running.wait_for_io(soon())
        result = running.stop(soon())
    assert result.jobs[0].transfers["read"].io_bytes > 0


@pytest.mark.skipif(shutil.which("nbdkit") is None, reason="nbdkit is not installed")
def test_rackprobe_verifies_what_it_wrote_through_nbd(host: SshHost, tmp_path: Path) -> None:
    with serving_unix(tmp_path / "nbd.sock", ("memory", str(MIB))) as socket:
        export = NbdExport(socket, "", MIB)
        probe = RackProbe(host, CLOCK)
        with minted(export, SERIAL) as writable:
            probe.write(writable, soon(), sectors=8, generation=3)
        verified = probe.verify(export, Expected(SERIAL, generation=3), soon(), sectors=8)
    assert verified.is_right


def test_rackprobe_talks_while_it_runs(host: SshHost, drive: DevicePath) -> None:
    probe = RackProbe(host, CLOCK)
    with minted(drive, SERIAL) as writable:
        probe.write(writable, soon(), generation=1)
    targets = [ProbeTarget("p0", drive.probe_target())]
    with probe.remap_session(targets, soon(), spin=False) as session:
        arm = session.arm("p0", Expected(SERIAL, generation=1), soon())
        read = session.wait_verified(arm, soon())
    assert read.verdicts["right"] == 1


class _Weighed(SshHost):
    """A server whose commands' inputs are weighed."""

    def __init__(self, access: SshAccess) -> None:
        super().__init__(access, CLOCK)
        self.inputs: list[int] = []

    def _run(self, argv: Sequence[str], deadline: Deadline, stdin: bytes = b"") -> tuple[bytes, Completed]:
        self.inputs.append(len(stdin))
        return super()._run(argv, deadline, stdin)


def test_a_large_file_comes_in_pieces_that_its_watchdog_is_heard_between(sshd: Sshd, tmp_path: Path) -> None:
    content = os.urandom(3 * PIECE_BYTES + 5)
    path = tmp_path / "large"
    with _Weighed(sshd.access()) as host:
        for written in (content, content[::-1]):
            host.write_file(str(path), written, soon(), mode=0o640)
            assert path.read_bytes() == written
            assert path.stat().st_mode & 0o777 == 0o640
        text = content.hex()
        assert Path(host.put_text("text", text)).read_text() == text
        assert max(host.inputs) == PIECE_BYTES
        (tmp_path / "folder").mkdir()
        with pytest.raises(LabError, match="folder cannot be written: Is a directory"):
            host.write_file(str(tmp_path / "folder"), content, soon())
    assert sorted(each.name for each in tmp_path.iterdir()) == ["folder", "large"]


def test_a_large_file_that_a_server_has_no_room_for_leaves_nothing(tmp_path: Path) -> None:
    def run(argv: Sequence[str], stdin: bytes) -> tuple[bytes, Completed]:
        # The second piece does not fit.
        limited = ("sh", "-c", 'ulimit -f 1024; "$@"', "limited", *argv) if stdin else argv
        done = subprocess.run(limited, input=stdin, capture_output=True, check=False)
        return done.stdout, Completed(tuple(argv), done.returncode, "", done.stderr.decode())

    path = tmp_path / "large"
    path.write_text("as it was")
    assert write_in_pieces(run, str(path), bytes(3 * PIECE_BYTES), 0o600).status != 0
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("large", "as it was")]


class _Overheard(SshHost):
    """A server whose answers are kept."""

    def __init__(self, access: SshAccess) -> None:
        super().__init__(access, CLOCK)
        self.said: list[str] = []

    def run(self, argv: Sequence[str], deadline: Deadline, *, stdin: str = "") -> Completed:
        completed = super().run(argv, deadline, stdin=stdin)
        self.said.append(completed.stdout)
        return completed


def test_a_program_is_summed_again_where_its_file_changed(sshd: Sshd) -> None:
    binary = find_binary("rackprobe")
    digest = hashlib.sha256(binary.read_bytes()).hexdigest()
    with _Overheard(sshd.access()) as host:
        path = Path(deliver(host, binary, soon()))
        is_summed = []
        for content in (binary.read_bytes(), None, b"another", None):
            if content is not None:
                path.write_bytes(content)
            host.said.clear()
            assert deliver(host, binary, soon()) == str(path)
            is_summed.append(any(digest in said for said in host.said))
            assert path.read_bytes() == binary.read_bytes()
    # "another" is found out and replaced, and what was written in its place is summed when it is next asked for.
    assert is_summed == [True, False, True, True]


def test_a_program_is_delivered_once_and_checked_when_it_changed(sshd: Sshd, host: SshHost) -> None:
    binary = find_binary("rackprobe")
    digest = hashlib.sha256(binary.read_bytes()).hexdigest()
    path = Path(deliver(host, binary, soon()))
    assert path == sshd.folder / "home" / ".cache" / "rackloop" / f"rackprobe-{digest[:16]}"
    assert path.read_bytes() == binary.read_bytes()
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o755, 0o700)
    first = path.stat().st_ino
    assert deliver(host, binary, soon()) == str(path)
    assert path.stat().st_ino == first
    path.write_bytes(b"#!/bin/sh\necho impostor\n")
    assert deliver(host, binary, soon()) == str(path)
    assert path.read_bytes() == binary.read_bytes()


class _OtherMachine(SshHost):
    """A server that says to be of another kind."""

    machine = "riscv64"

    def run(self, argv: Sequence[str], deadline: Deadline, *, stdin: str = "") -> Completed:
        if tuple(argv) == ("uname", "-m"):
            argv = ("echo", self.machine)
        return super().run(argv, deadline, stdin=stdin)


def test_a_server_is_given_the_build_for_its_kind_of_machine(
    sshd: Sshd, host: SshHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = find_binary("storageswitch").read_bytes()
    assert Path(deliver_program(host, "storageswitch", soon())).read_bytes() == own
    with _OtherMachine(sshd.access(), CLOCK) as other:
        monkeypatch.setenv(BIN_VARIABLE, str(tmp_path))
        with pytest.raises(ToolError, match="storageswitch for riscv64 is not at"):
            deliver_program(other, "storageswitch", soon())
        program = tmp_path / "riscv64" / "storageswitch"
        program.parent.mkdir()
        program.write_text("#!/bin/sh\necho for riscv64\n")
        program.chmod(0o755)
        path = deliver_program(other, "storageswitch", soon())
        assert other.run((path,), soon()).stdout == "for riscv64\n"


def test_a_home_that_cannot_be_written_has_a_place_beside_it(tmp_path: Path) -> None:
    program = tmp_path / f"program-{os.getpid()}"
    program.write_text("#!/bin/sh\necho delivered\n")
    with running_sshd(home="/proc/nowhere") as sshd, SshHost(sshd.access(), CLOCK) as host:
        path = deliver(host, program, soon())
        assert Path(path).parent == Path(f"/var/tmp/rackloop-{os.getuid()}")
        assert host.run((path,), soon()).stdout == "delivered\n"
    Path(path).unlink()


def test_a_program_that_is_not_there_cannot_be_delivered(host: SshHost, tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=r"missing cannot be read: No such file.*native/build"):
        deliver(host, tmp_path / "missing", soon())
