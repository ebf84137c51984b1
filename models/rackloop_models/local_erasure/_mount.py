"""A store as a folder of this machine, through FUSE (https://github.com/libfuse/libfuse) by its binding mfusepy."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress
from ctypes.util import find_library
from errno import ECONNABORTED, ENOTCONN
from pathlib import Path
from threading import Event, Thread, main_thread
from typing import Any

from rackloop.clock import Clock
from rackloop.errors import BadInput, LabError, NotSupported, ToolError
from rackloop_models.local_erasure._errors import StoreInUse
from rackloop_models.local_erasure._file_system import FileSystem
from rackloop_models.local_erasure._idle import IDLE_S, IdleWork
from rackloop_models.local_erasure._store import LocalStore

_LARGEST_REQUEST = 1 << 20
_READ_AHEAD_KIB = 1024
# Threads that are kept when there is less to do, each with a buffer of the largest request.
_THREADS = 4
_LOOK_S = 0.25
# What libfuse's main function returns where its loop was ended by a signal.
_ENDED_BY_SIGNAL = 8


def require_mount_point(directory: Path, device: Path = Path("/dev/fuse")) -> None:
    """Return where a store can be mounted at ``directory``; what a killed mount left there is cleaned up first.

    Raises BadInput where it is no empty folder, NotSupported where this machine has no FUSE.
    """
    if not device.exists():
        raise NotSupported(
            f"a store cannot be mounted here: there is no {device}; load the kernel's module (modprobe fuse), or give "
            "the container the device; get, put and scrub do without"
        )
    _clean_up(directory)
    try:
        held = next(directory.iterdir(), None)
    except FileNotFoundError:
        raise BadInput(f"the mount point {directory} is not there; make the folder first") from None
    except OSError as error:
        raise BadInput(f"the mount point {directory} cannot be used: {error.strerror}; give an empty folder") from None
    if directory.is_mount():
        raise BadInput(f"something is mounted at {directory} already; give another folder, or `umount {directory}`")
    if held is not None:
        raise BadInput(f"the mount point {directory} is not empty, it has {held.name}; give an empty folder")


def serve_files(
    store: LocalStore,
    directory: Path,
    clock: Clock,
    *,
    name: str = "store",
    idle_s: float = IDLE_S,
    is_over: Callable[[], bool] = lambda: False,
    on_ready: Callable[[], None] = lambda: None,
    on_trouble: Callable[[str], None] = lambda _text: None,
) -> None:
    """Serve the files of ``store`` at ``directory``, and return once they are unmounted.

    By `umount`, SIGINT or SIGTERM, or once ``is_over``, asked four times a second, says so, or once another has taken
    the store. ``on_ready`` is called when the files are there; ``name`` is what `df` shows. Each error of the drive or
    the store that a program gets as EIO is told to ``on_trouble``. When nothing was asked for in ``idle_s``, redundancy
    that is to follow synchronous writes does so, and what is only in memory is written. The store stays open: all that
    was written is on the drive once it is flushed or closed.

    Called from the main thread, as it is signals that end it. Raises as :func:`require_mount_point`, ToolError where
    libfuse 3 is not installed, LabError where it cannot mount.
    """
    require_mount_point(directory)
    binding = _binding()
    troubles, has_begun = _Troubles(on_trouble), Event()
    files = _ServedFiles(store, clock, troubles, has_begun)
    files.remove_leftovers()
    beside = _BackgroundWork(directory, IdleWork(files, idle_s), troubles, is_over)
    thread = Thread(target=beside.run, args=(has_begun, on_ready), name=f"beside {directory}", daemon=True)
    thread.start()
    try:
        binding(
            files,
            str(directory),
            foreground=True,
            fsname=name.replace(",", "_"),
            subtype="rackloop",
            default_permissions=True,
            auto_unmount=True,
            max_idle_threads=_THREADS,
        )
    except RuntimeError as error:
        if not (has_begun.is_set() and error.args == (_ENDED_BY_SIGNAL,)):
            raise LabError(f"libfuse cannot mount at {directory} and returned {error}; what it said is above") from None
    finally:
        beside.has_ended.set()
        has_begun.set()
        thread.join()
        _clean_up(directory)


class _Troubles:
    """The troubles with the drive or the store, each thing told once; whether the store is another's now."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._told: set[str] = set()
        self.is_lost = False

    def __call__(self, text: str, error: Exception) -> None:
        """Tell of an error."""
        if text not in self._told:
            self._told.add(text)
            self._tell(text)
        self.is_lost = self.is_lost or isinstance(error, StoreInUse)


class _ServedFiles(FileSystem):
    """A file system that agrees with the kernel on large requests, and says when it has begun."""

    def __init__(self, store: LocalStore, clock: Clock, troubles: _Troubles, has_begun: Event) -> None:
        super().__init__(store, clock, on_trouble=troubles)
        self._has_begun = has_begun

    def init_with_config(self, conn_info: Any, config_3: Any) -> None:  # noqa: ARG002 - as the binding calls it
        """Called by libfuse when the files are mounted, before any other call."""
        conn_info.max_write = _LARGEST_REQUEST
        conn_info.max_readahead = _LARGEST_REQUEST
        self._has_begun.set()


class _BackgroundWork:
    """Background work of a mount: the store's in idle moments, and the check whether to end."""

    def __init__(self, directory: Path, work: IdleWork, troubles: _Troubles, is_over: Callable[[], bool]) -> None:
        self._directory = directory
        self._work = work
        self._troubles = troubles
        self._is_over = is_over
        self.has_ended = Event()

    def run(self, has_begun: Event, on_ready: Callable[[], None]) -> None:
        """Go on until files are served no longer, or end that."""
        has_begun.wait()
        if self.has_ended.is_set():
            return
        with suppress(OSError):
            _read_ahead(self._directory)
        on_ready()
        has_more = False
        while not self.has_ended.wait(0 if has_more else _LOOK_S):
            try:
                if self._troubles.is_lost or self._is_over():
                    # As from a terminal: libfuse's loop is in the main thread, and listens to nothing else.
                    signal.pthread_kill(main_thread().ident or 0, signal.SIGTERM)
                    return
                has_more = self._work.step()
            except Exception as error:  # noqa: BLE001 - whatever it is, files are served on
                has_more = False
                self._troubles(f"in the background: {error}", error)


def _binding() -> Any:
    """The binding's main loop, on libfuse 3, whose calls have all that renameat2(2) says."""
    if find_library("fuse3") is None:
        raise ToolError("libfuse 3 is not installed: install fuse3; get, put and scrub do without")
    # The binding would take libfuse 2 where both are there.
    os.environ.setdefault("FUSE_LIBRARY_NAME", "fuse3")
    import mfusepy  # type: ignore[import-untyped]

    def rename(self: Any, old: bytes, new: bytes, flags: int) -> int:
        """As the binding's own, which drops the flags: of two files that are to be exchanged one would be lost."""
        return int(self.operations.rename(os.fsdecode(old), os.fsdecode(new), flags))

    return type("Binding", (mfusepy.FUSE,), {"rename_fuse_3": rename})


def _read_ahead(directory: Path) -> None:
    """Have the kernel read far ahead; it takes root to say so. Raises OSError."""
    device = directory.stat().st_dev
    knob = Path(f"/sys/class/bdi/{os.major(device)}:{os.minor(device)}/read_ahead_kb")
    knob.write_text(str(_READ_AHEAD_KIB), encoding="ascii")


def _clean_up(directory: Path) -> None:
    """Unmount a file system without a server from a mount point."""
    try:
        # Not what the kernel may remember: it is to ask.
        os.statvfs(directory)
    except OSError as error:
        if error.errno in (ENOTCONN, ECONNABORTED):
            unmount(directory)


def unmount(directory: Path) -> None:
    """Have nothing be mounted at ``directory``, also where its server is gone. Raises LabError, ToolError."""
    try:
        done = subprocess.run(("fusermount3", "-u", "-z", str(directory)), capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise ToolError("fusermount3 is not installed: install fuse3") from None
    # libfuse's own helper may have been first.
    if done.returncode and is_mounted(directory):
        raise LabError(f"{directory} cannot be unmounted: {done.stderr.strip()}")


def is_mounted(directory: Path) -> bool:
    """Whether anything is mounted there, also where its server is gone."""
    try:
        return directory.is_mount()
    except OSError:
        return True
