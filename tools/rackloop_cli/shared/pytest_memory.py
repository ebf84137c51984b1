"""Pytest's memory of the tests that failed, by which --lf and --ff choose, kept from run to run of a lab."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rackloop.lab import state_root

_KEPT_IN = "pytest"
_PREFIX = "rackloop-pytest-"
_LOCK = "owner.lock"
# Pytest's own layout: values of its cache.
_VALUES = Path("v") / "cache"


class PytestMemory:
    """The memory of one session of pytest, in a folder of its own until it is to be kept.

    A session that was refused, or did nothing, leaves the machine as it was.
    """

    def __init__(self, kept: Path, folder: Path) -> None:
        self._kept = kept
        self._folder = folder

    @property
    def option(self) -> str:
        """The option of pytest that says where it is."""
        return f"-ocache_dir={self._folder}"

    def keep(self) -> None:
        """Have later sessions know it; where it cannot be written they know what those before have left."""
        with suppress(OSError):
            shutil.copytree(self._folder / _VALUES, self._kept / _VALUES, dirs_exist_ok=True)


@contextmanager
def pytest_memory(name: str) -> Iterator[PytestMemory]:
    """The memory of earlier sessions of this name, for one more."""
    kept = state_root() / _KEPT_IN / name
    _remove_left_behind()
    with tempfile.TemporaryDirectory(prefix=_PREFIX) as made, _owned(Path(made)):
        folder = Path(made) / "cache"
        with suppress(OSError):
            shutil.copytree(kept, folder)
        yield PytestMemory(kept, folder)


@contextmanager
def _owned(folder: Path) -> Iterator[None]:
    """Lock a folder while the block runs; the kernel ends the lock with this process, however that ends."""
    unnamed = folder / "owner.new"
    fd = os.open(unnamed, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        # Where /tmp knows no locks the file keeps its other name, and the folder is left behind as it was.
        with suppress(OSError):
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Named once it is held: a file of this name that is not locked is of a process that is gone.
            unnamed.rename(folder / _LOCK)
        yield
    finally:
        os.close(fd)


def _remove_left_behind() -> None:
    """Remove the folders of this user's sessions that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError):
            about = folder.lstat()
            if stat.S_ISDIR(about.st_mode) and about.st_uid == os.getuid():
                _remove_unowned(folder)


def _remove_unowned(folder: Path) -> None:
    """Remove a folder whose lock can be had. Raises OSError where it has no lock, or a process holds it."""
    fd = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder)
    finally:
        os.close(fd)
