"""A small file system with one identified file, which rackprobe mounts after each remap."""

from __future__ import annotations

import gzip
import shutil
import subprocess
import tempfile
from base64 import b64encode
from pathlib import Path

from rackloop.abilities import Executor, Host, WritableDrive
from rackloop.clock import Deadline
from rackloop.errors import DeadlineExceeded, LabError, NotSupported
from rackloop.lab import environment_for_programs
from rackloop.native import find_binary
from rackloop_drivers.failed_command import failure_of
from rackloop_drivers.host_tools import name_of
from rackloop_drivers.workload._rackprobe_results import Expected

FILE_SYSTEM = "ext4"
"""The type of the file system that is mounted."""
SECTOR_BEHIND = 4096
"""The address of the identified sector: the first behind the file system, which has 16 MiB."""

_MKFS = "mkfs.ext4"
_BYTES = SECTOR_BEHIND * 4096
_PLACES = "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin"
# Named, so that every machine makes the same, and every kernel since 3.18 mounts it.
_FEATURES = (
    "none,has_journal,ext_attr,resize_inode,dir_index,filetype,extent,64bit,flex_bg,sparse_super,large_file,huge_file,"
    "dir_nlink,extra_isize,metadata_csum"
)
# The drive is held by another process of ours, and a mkfs there could not claim it.
# A module is loaded when it is first asked for.
_KNOWN = 'grep -qw "$1" /proc/filesystems || modprobe --dry-run --quiet "$1"'
_COPY = 'base64 -d | gzip -dc | dd of="$1" bs=1M iflag=fullblock conv=notrunc,nocreat,fsync status=none'


def make_file_system(executor: Executor, drive: WritableDrive, expected: Expected, deadline: Deadline) -> None:
    """Overwrite the start of ``drive`` with a file system whose file ``first`` is its identified sector.

    It is made on this machine, and copied where ``executor`` runs commands. Raises NotSupported where no mkfs is here,
    LabError where it cannot be made or copied.
    """
    image = b64encode(gzip.compress(_image(expected, deadline))).decode()
    argv = ["sh", "-c", _COPY, "mountable", drive.device.probe_target()]
    done = executor.run(argv, deadline, stdin=image)
    # A pipe has the status of its last command, and each of the others says what it lacks.
    if done.status or done.stderr.strip():
        said = failure_of(done)
        raise LabError(f"{name_of(executor)}: no {FILE_SYSTEM} was written to {drive.drive_id}: {said}")


def find_mkfs() -> str:
    """The path of the program that makes the file system, on this machine. Raises NotSupported where it is not here."""
    mkfs = shutil.which(_MKFS) or shutil.which(_MKFS, path=_PLACES)
    if mkfs is None:
        raise NotSupported(f"{_MKFS} was not found on this machine: install its package e2fsprogs here")
    return mkfs


def require_mountable(host: Host, deadline: Deadline) -> None:
    """Return where the kernel of ``host`` mounts the file system, which rackprobe asks it for. Raises LabError."""
    known = host.run(["sh", "-c", _KNOWN, "known", FILE_SYSTEM], deadline)
    if known.status:
        raise LabError(f"the kernel of {host.name} has no {FILE_SYSTEM}, neither built in nor as a module")


def _image(expected: Expected, deadline: Deadline) -> bytes:
    mkfs = find_mkfs()
    with tempfile.TemporaryDirectory(prefix="rackloop-") as made:
        tree, image = Path(made) / "tree", Path(made) / "image"
        tree.mkdir()
        (tree / "first").write_bytes(bytes(4096))
        with image.open("wb") as file:
            file.truncate(_BYTES)
        identity = [*expected.options(), f"--allow-write={expected.serial}"]
        label = [str(find_binary("rackprobe")), "write", str(tree / "first"), *identity]
        for argv in (label, [mkfs, "-q", "-F", "-b", "4096", "-O", _FEATURES, "-d", str(tree), str(image)]):
            try:
                done = subprocess.run(
                    argv,
                    env=environment_for_programs(),
                    capture_output=True,
                    text=True,
                    timeout=deadline.remaining_s(),
                    check=False,
                )
            except subprocess.TimeoutExpired:
                raise DeadlineExceeded(f"no {FILE_SYSTEM} could be made in time: {argv[0]} was still at work") from None
            if done.returncode:
                raise LabError(f"no {FILE_SYSTEM} could be made: {argv[0]}: {done.stderr.strip()}")
        return image.read_bytes()
