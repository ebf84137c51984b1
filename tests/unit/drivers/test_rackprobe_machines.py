"""rackprobe comes to a server in the build for its kind of machine, whatever it is brought for."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

import pytest

from rackloop.abilities import Completed, DriveIdentity
from rackloop.clock import Deadline, VirtualClock
from rackloop.errors import LabError, ToolError
from rackloop.native import BIN_VARIABLE
from rackloop_drivers.block import DevicePath
from rackloop_drivers.block.host_path import Serving
from rackloop_drivers.block.host_path._holder import Holder
from rackloop_drivers.workload import Expected, RackProbe
from tests.unit.models.run_only_executor import RunOnlyExecutor

CLOCK = VirtualClock()
NODE = "/dev/nvme0n1"
DRIVE = DriveIdentity(serial="RL1", model="RL", firmware="1.0", protocol="nvme", size_bytes=1 << 30, identifiers={})
OWN, ARM = b"for the harness", b"for 64-bit ARM"


class ArmServer(RunOnlyExecutor):
    """A server with another processor, which is asked, given a program, and then runs nothing."""

    name = "srv1"

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.written: list[bytes] = []

    def run(self, argv: Sequence[str], deadline: Deadline, *, stdin: str = "") -> Completed:
        del deadline, stdin
        self.asked.append(argv[0])
        if argv[0] == "uname":
            said = "aarch64\n"
        elif argv[0] != "sh":
            self.start(argv)
        elif argv[3] == "place":
            said = f"/var/tmp/rackloop-0/{argv[4]}\n"
        else:
            said = f"{hashlib.sha256(self.written[-1]).hexdigest()}  -\n"
        return Completed(tuple(argv), 0, said, "")

    def start(self, argv: Sequence[str]) -> NoReturn:
        raise LabError(f"{argv[1]} is not run")

    def start_aside(self, argv: Sequence[str]) -> NoReturn:
        self.start(argv)

    def open_stream(self, argv: Sequence[str]) -> NoReturn:
        self.start(argv)

    def read_file(self, path: str, deadline: Deadline) -> bytes:
        raise NotImplementedError

    def write_file(self, path: str, content: bytes, deadline: Deadline, *, mode: int = 0o600) -> None:
        del path, deadline, mode
        self.written.append(content)

    def give_up(self) -> None:
        raise NotImplementedError

    def reconnect(self, deadline: Deadline) -> int:
        raise NotImplementedError


def verify(server: ArmServer) -> None:
    RackProbe(server, CLOCK).verify(DevicePath(Path(NODE)), Expected("RL1"), Deadline.after(CLOCK, 9))


def hold(server: ArmServer) -> None:
    Holder(server, CLOCK, NODE, DRIVE, within_s=9)


def serve(server: ArmServer) -> None:
    Serving(server, CLOCK, "srv1", NODE, DRIVE, writes=False, within_s=9)


USES = pytest.mark.parametrize("use", [verify, hold, serve])


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of native programs with a rackprobe for this machine, and a place for those of the other one."""
    monkeypatch.setenv(BIN_VARIABLE, str(tmp_path))
    (tmp_path / "aarch64").mkdir()
    _put(tmp_path / "rackprobe", OWN)
    return tmp_path


def _put(program: Path, content: bytes) -> None:
    program.write_bytes(content)
    program.chmod(0o755)


@USES
def test_a_server_is_given_the_rackprobe_of_its_machine(use: Callable[[ArmServer], None], programs: Path) -> None:
    _put(programs / "aarch64" / "rackprobe", ARM)
    server = ArmServer()
    for _ in range(2):
        with pytest.raises(LabError, match="is not run"):
            use(server)
    assert server.written == [ARM, ARM]
    # It stays the machine that it is.
    assert server.asked.count("uname") == 1


@USES
def test_there_is_no_rackprobe_for_every_machine(use: Callable[[ArmServer], None], programs: Path) -> None:
    server = ArmServer()
    with pytest.raises(ToolError, match=f"rackprobe for aarch64 is not at {programs}"):
        use(server)
    assert server.written == []
