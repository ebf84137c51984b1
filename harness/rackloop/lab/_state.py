"""The state of a lab on this machine: its store, its endpoints, its log, and whether it is up."""

from __future__ import annotations

import fcntl
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rackloop.clock import Deadline, RealClock
from rackloop.errors import BadInput, LabError

# A Unix socket's path has 108 bytes on Linux, and the longest name below a lab's directory takes a few of them.
_LONGEST_DIRECTORY = 108 - len("/control.sock\0")
# Whoever asks whether a lab is up has its lock for microseconds.
_ASKED_S = 0.5
_AGAIN_S = 5e-3
# proc_pid_mountinfo(5)
_MOUNTS = Path("/proc/self/mountinfo")
_NETWORK_FILE_SYSTEMS = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ceph", "lustre", "beegfs", "gfs2", "ocfs2"}
_NETWORK_FILE_SYSTEMS |= {"9p", "fuse.sshfs", "fuse.glusterfs", "fuse.ceph", "fuse.rclone"}


def state_root() -> Path:
    """``$RACKLOOP_STATE_HOME``, else ``rackloop`` below the user's state directory (XDG base directories)."""
    chosen = os.environ.get("RACKLOOP_STATE_HOME")
    if chosen:
        return Path(chosen)
    from platformdirs import user_state_path

    return user_state_path("rackloop")


@dataclass(frozen=True)
class LabState:
    """The state directory of one lab: kept between runs; what ``up`` makes in it goes with ``down``."""

    directory: Path

    @classmethod
    def of(cls, lab_name: str, *, root: Path | None = None, mounts: Path = _MOUNTS) -> LabState:
        """The state of the lab named so, its directory made if need be.

        ``mounts`` tells what file system the directory is on. Raises BadInput where it cannot be made, where its path
        is too long for a Unix socket, and where other machines share it: neither SQLite's write-ahead log nor a lock
        keeps them apart.
        """
        directory = (root or state_root()) / "labs" / lab_name
        if len(os.fsencode(directory)) > _LONGEST_DIRECTORY:
            raise BadInput(
                f"{directory} is too long for Unix sockets ({_LONGEST_DIRECTORY} bytes at most): "
                "set RACKLOOP_STATE_HOME to a shorter directory"
            )
        try:
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            shared = _network_file_system(directory.stat().st_dev, mounts)
        except OSError as error:
            raise BadInput(
                f"cannot make the lab's state directory {directory}: {error.strerror}; set RACKLOOP_STATE_HOME"
            ) from error
        if shared is not None:
            raise BadInput(
                f"the lab's state directory {directory} is on {shared}, which other machines may have mounted too, and "
                "its store would be damaged there: set RACKLOOP_STATE_HOME to a local disk"
            )
        return cls(directory)

    @property
    def store(self) -> Path:
        """The SQLite store: the undo journal and the fencing tokens."""
        return self.directory / "store.sqlite"

    @property
    def endpoints_file(self) -> Path:
        """The output of ``lab status --json``, written by the lab once it is up."""
        return self.directory / "endpoints.json"

    @property
    def log(self) -> Path:
        """The log of the lab's processes."""
        return self.directory / "labd.log"

    def last_words(self) -> str:
        """The last line that the lab's processes said, or that they said nothing."""
        lines = self.log.read_text(errors="replace").strip().splitlines() if self.log.exists() else []
        return lines[-1] if lines else f"it said nothing; see {self.log}"

    @property
    def history(self) -> Path:
        """Results of earlier runs, for trends in reports."""
        return self.directory / "history.jsonl"

    def take(self, what: str = "labd") -> int | None:
        """Take a lock of the lab for as long as the returned descriptor stays open; None where another process has it.

        ``labd`` is held by the process that is the lab while it is up, ``up`` by one that brings it up, ``run`` by the
        one run that may work on it. It is the kernel's (flock), so it ends with its holder however that ends. A process
        that asks whether it is held keeps it for a moment, which is waited out. Raises BadInput where the directory
        cannot be written, or its file system knows no locks.
        """
        lock = self.directory / f"{what}.lock"
        try:
            fd = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise BadInput(f"cannot open {lock}: {error.strerror}; set RACKLOOP_STATE_HOME") from error
        deadline = Deadline.after(RealClock(), _ASKED_S)
        has_it = False
        try:
            has_it = deadline.poll(lambda: _locked(fd, fcntl.LOCK_EX, lock), every_s=_AGAIN_S)
        finally:
            if not has_it:
                os.close(fd)
        return fd if has_it else None

    def is_held(self) -> bool:
        """Whether a living process holds the lab's lock, that is, the lab is up or coming up.

        Any number may ask at once, and none of them keeps the lab from coming up.
        """
        lock = self.directory / "labd.lock"
        try:
            fd = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise BadInput(f"cannot open {lock}: {error.strerror}; set RACKLOOP_STATE_HOME") from error
        try:
            return not _locked(fd, fcntl.LOCK_SH, lock)
        finally:
            os.close(fd)

    def endpoints(self) -> dict[str, Any]:
        """The endpoints of the running lab. Raises LabError where it is not up."""
        if not self.is_held() or not self.endpoints_file.exists():
            raise LabError(
                f"lab {self.directory.name} is not up: start it with `rackloop lab up {self.directory.name}`"
            )
        found: dict[str, Any] = json.loads(self.endpoints_file.read_text())
        return found


def _locked(fd: int, how: int, lock: Path) -> bool:
    """Whether the lock could be had at once. Raises BadInput where the file system has none."""
    try:
        fcntl.flock(fd, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise BadInput(
            f"cannot lock {lock}: {error.strerror}; set RACKLOOP_STATE_HOME to a directory on a local disk"
        ) from error
    return True


def _network_file_system(device: int, mounts: Path) -> str | None:
    """The kind of file system that ``device`` is, where it is one that several machines share."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    number = f"{os.major(device)}:{os.minor(device)}"
    for line in lines:
        # Optional fields end with a hyphen; after it comes the kind of file system.
        before, hyphen, after = line.partition(" - ")
        if hyphen and before.split()[2:3] == [number] and (kind := after.split()[0]) in _NETWORK_FILE_SYSTEMS:
            return kind
    return None
