"""An sshd on a server with one drive: what the kernel, udev and the tools say of it is made, its content is a file."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from rackloop_drivers.block import HostPath
from rackloop_drivers.host import SshHost
from rackloop_labs.mock_hosts._disk_links import disk_links
from rackloop_labs.mock_hosts._sysfs_ports import build_tree
from rackloop_labs.mock_hosts._tree import Entry, Link
from rackloop_labs.mock_hosts._view import AttachedDrive, HbaPort, HostView
from rackloop_labs.mock_hosts.tools import TOOLS
from tests.deadlines import CLOCK
from tests.sshd_process import Sshd, running_sshd
from tests.transcripts.guest import RecordedActs

MIB = 1 << 20
BYTES = 64 * MIB
# As the drive that ``minted`` describes.
SERIAL, WWN = "RL1", "5000c500a0000001"
NAME = "sdx"
PORT = HbaPort("p0", 0, 1, "5000c500000000aa", is_linked=True, phy_resets=0)
DRIVE = AttachedDrive(
    drive_id="d1",
    kernel_name=NAME,
    number=0,
    port=PORT,
    model="RL",
    serial=SERIAL,
    firmware="1.0",
    protocol="sata",
    wwn=WWN,
    eui64=None,
    nguid=None,
    size_bytes=BYTES,
    sector_bytes=512,
    is_rotational=False,
    counters={"power_cycles": 1, "power_on_ns": 3_600_000_000_000},
)
# Its commands see the server's own /sys and /dev/disk, and its tools before this machine's.
_COMMAND = """#!/bin/sh
export PATH={tools}:$PATH
exec bwrap --dev-bind / / --dev /dev --ro-bind {sys} /sys --bind {disk} /dev/disk {node} -- \\
    sh -c "$SSH_ORIGINAL_COMMAND"
"""
_TOOL = """#!/bin/sh
cat {answer}
exit {status}
"""


@dataclass(frozen=True)
class DriveServer:
    """The server, and the folder that its ``/sys`` (``sys``) and ``/dev/disk`` (``disk``) are in."""

    sshd: Sshd
    host: SshHost
    folder: Path

    @property
    def device(self) -> HostPath:
        """The drive as the server reaches it."""
        return HostPath(self.host, f"/dev/disk/by-path/{DRIVE.by_path}", CLOCK)

    @property
    def content(self) -> Path:
        """What is on the drive."""
        return self.folder / "disk" / "nodes" / NAME

    def swap(self, serial: str) -> None:
        """Have the kernel know another drive there, of which the tools have not heard."""
        before = build_tree(_view(DRIVE)).entries
        for path, entry in build_tree(_view(replace(DRIVE, serial=serial))).entries.items():
            if entry != before.get(path):
                _make(self.folder / "sys" / path, entry)

    def unplug(self) -> None:
        """Have the kernel know no drive any more."""
        shutil.rmtree(self.folder / "sys")
        (self.folder / "sys").mkdir()


@contextmanager
def running_drive_server(folder: Path, working_for: str = "-/-", node: Path | None = None) -> Iterator[DriveServer]:
    """The server for as long as the block lasts; ``node`` is the block device that its drive is, else it is a file."""
    if shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")
    _show(DRIVE, folder)
    content = folder / "disk" / "nodes" / NAME
    content.parent.mkdir()
    content.touch()
    with content.open("r+b") as file:
        file.truncate(BYTES)
    at_node = ""
    if node is not None:
        at_node = shlex.join(("--dev-bind", str(node), f"/dev/disk/nodes/{NAME}"))
        number = node.stat().st_rdev
        numbers = folder / "sys" / "dev" / "block"
        [shown] = numbers.iterdir()
        shown.rename(numbers / f"{os.major(number)}:{os.minor(number)}")
    tools = folder / "tools"
    tools.mkdir()
    view = _view(DRIVE)
    for tool, arguments in (("lsblk", ("-J", "-O", "-b")), ("smartctl", ("--json=c", "-x", f"/dev/{NAME}"))):
        answer = TOOLS[tool](arguments, view, RecordedActs())
        (tools / f"{tool}.txt").write_text(answer.stdout)
        _executable(tools / tool, _TOOL.format(answer=tools / f"{tool}.txt", status=answer.status))
    places = {name: shlex.quote(str(folder / name)) for name in ("tools", "sys", "disk")}
    _executable(folder / "command", _COMMAND.format(**places, node=at_node))
    with (
        running_sshd(more=f"ForceCommand {folder / 'command'}") as sshd,
        SshHost(sshd.access(), CLOCK, working_for) as host,
    ):
        yield DriveServer(sshd, host, folder)


def _view(drive: AttachedDrive) -> HostView:
    return HostView(
        server="srv1",
        boot_id="boot-1",
        up_s=20.0,
        ports=(PORT,),
        drives=(drive,),
        now=datetime(2026, 11, 20, tzinfo=UTC),
    )


def _show(drive: AttachedDrive, folder: Path) -> None:
    view = _view(drive)
    for top, entries in (("sys", build_tree(view).entries), ("disk", disk_links(view))):
        for path, entry in entries.items():
            _make(folder / top / path, entry)


def _make(path: Path, entry: Entry) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    if isinstance(entry, Link):
        path.symlink_to(entry.target)
    elif entry is None:
        path.mkdir()
    else:
        path.write_bytes(entry if isinstance(entry, bytes) else entry.encode())


def _executable(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)
