"""`rackloop store LAB put` and `get`: files between this machine and the store of a drive."""

from __future__ import annotations

import os
import secrets
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from rackloop.errors import EXIT_INTERRUPTED, EXIT_PASS, BadInput
from rackloop.units import counted
from rackloop_cli.shared.interruption import interruptible
from rackloop_cli.shared.output import say
from rackloop_cli.shared.progress import watched
from rackloop_cli.store.session import (
    HALF_PUT,
    Reached,
    StoreRequest,
    opened,
    remove_if_there,
    room_for_data,
    size,
    tell,
)
from rackloop_models.local_erasure import LocalStore, NoRoom, NoSuchFile, require_name

STANDARD = "-"
"""The name of standard input and standard output."""

_PIECE_BYTES = 4 << 20


def put(request: StoreRequest, source: str, name: str | None) -> int:
    """Copy a file of this machine into a store, in place of one of that name once all of it is on the drive."""
    if name is None and source == STANDARD:
        raise BadInput("what comes from standard input has no name; give one with --name")
    name = Path(source).name if name is None else name
    with _source(source) as (reading, length):
        _require_name(name)
        with opened(request, "store put") as (drive, store):
            _require_place(store, name)
            room = room_for_data(store)
            if length is not None and length > room:
                raise NoRoom(
                    f"{source} has {size(length)}, and {request.drive} has room for {size(room)}; remove files"
                )
            written = _put(drive, store, _reading(reading, source), length, name)
    say(f"{name}: {size(written)} are on {request.drive}")
    return EXIT_PASS


def get(request: StoreRequest, name: str, target: str) -> int:
    """Copy a file of a store to this machine; nothing is left there of one that cannot be read whole."""
    if target == STANDARD:
        return _show(request, name)
    with _writing_to(target):
        path = _target(target, name)
    with interruptible(), _half(path) as write:
        written, degraded = _get(request, name, write)
    say(f"{path}: {size(written)}{_of_degraded(degraded)}")
    return EXIT_PASS


def _put(drive: Reached, store: LocalStore, read: Callable[[], bytes], length: int | None, name: str) -> int:
    """Put all that ``read`` gives into a file; returns the number of bytes. It may be interrupted while it reads."""
    written = 0
    try:
        with drive.in_order():
            file = store.create(HALF_PUT)
        with watched("put", length, in_percent=True) as advance:
            while piece := read():
                with drive.in_order():
                    file.write(written, piece)
                drive.interruption.check()
                written += len(piece)
                advance(written)
        with drive.in_order():
            file.sync()
            drive.interruption.check()
            store.rename(HALF_PUT, name)
            store.flush()
    except BaseException:
        if not drive.blocks.is_gone:
            with drive.in_order():
                remove_if_there(store, HALF_PUT)
        raise
    return written


def _show(request: StoreRequest, name: str) -> int:
    """Copy a file to standard output, and nothing else."""
    sys.stdout.flush()
    try:
        _, degraded = _get(request, name, _standard_output, is_watched=not sys.stdout.isatty())
    except BrokenPipeError:
        return EXIT_INTERRUPTED
    if degraded:
        tell(f"{name}{_of_degraded(degraded)}")
    return EXIT_PASS


def _get(
    request: StoreRequest, name: str, write: Callable[[bytes], object], *, is_watched: bool = True
) -> tuple[int, int]:
    """Pass all of a file to ``write``; returns the number of bytes and of degraded reads."""
    with opened(request, "store get") as (drive, store):
        file, written = store.open(name), 0
        with watched("get", file.size_bytes, in_percent=True, is_shown=is_watched) as advance:
            while True:
                with drive.in_order():
                    piece = file.read(written, _PIECE_BYTES)
                drive.interruption.check()
                if not piece:
                    return written, store.statistics.degraded_reads
                write(piece)
                written += len(piece)
                advance(written)


def _standard_output(piece: bytes) -> None:
    _write(sys.stdout.fileno(), piece, "standard output")


@contextmanager
def _source(source: str) -> Iterator[tuple[BinaryIO, int | None]]:
    """The file to read, and its length where that is known. Raises BadInput."""
    if source == STANDARD:
        if sys.__stdin__ is None:
            raise BadInput("standard input cannot be read: it is closed")
        yield sys.stdin.buffer, None
        return
    try:
        reading = open(source, "rb")  # noqa: PTH123, SIM115 - a path would lose a trailing slash; closed below
        status = os.fstat(reading.fileno())
    except OSError as error:
        raise BadInput(f"{source} cannot be read: {error.strerror}") from None
    with reading:
        yield reading, status.st_size if stat.S_ISREG(status.st_mode) else None


def _reading(reading: BinaryIO, source: str) -> Callable[[], bytes]:
    def read() -> bytes:
        try:
            return reading.read(_PIECE_BYTES)
        except OSError as error:
            raise BadInput(f"{source} cannot be read: {error.strerror}; nothing of it was kept") from None

    return read


def _target(target: str, name: str) -> Path:
    """The file that is to be written, within ``target`` where that is a folder. Raises BadInput."""
    path = Path(target) / name.rpartition("/")[2] if Path(target).is_dir() else Path(target)
    whole = _behind_links(path)
    # A trailing slash says folder, and a path is without it.
    folder = Path(target) if target.endswith("/") else whole.parent
    if not folder.is_dir():
        raise BadInput(
            f"{target} cannot be written: {folder} is no folder"
            if folder.exists()
            else f"{target} cannot be written: there is no folder {folder}; make it first"
        )
    if whole.is_dir():
        raise BadInput(f"{path} is a folder; give another name for the file")
    if whole.exists() and not whole.is_file():
        raise BadInput(f"{path} is neither a file nor a folder; give one of these, or - for standard output")
    return path


@contextmanager
def _half(path: Path) -> Iterator[Callable[[bytes], object]]:
    """A function that writes to a temporary file, which replaces ``path`` where the block succeeds."""
    whole = _behind_links(path)
    # In a folder of many users, or of many machines, no name that may be there already.
    half = whole.with_name(f".rackloop-get-{secrets.token_hex(8)}.half")
    try:
        with _writing_to(path):
            # Without a buffer, which would have something left to write when what is full is closed.
            writing = half.open("xb", buffering=0)
        with writing:
            yield lambda piece: _write(writing.fileno(), piece, path)
            with _writing_to(path):
                if whole.exists():
                    half.chmod(stat.S_IMODE(whole.stat().st_mode))
                half.replace(whole)
    finally:
        with suppress(OSError):
            half.unlink()


def _behind_links(path: Path) -> Path:
    """The target of a link, which is written in place of the link."""
    return Path(os.path.realpath(path))


def _write(descriptor: int, piece: bytes, path: Path | str) -> None:
    left = memoryview(piece)
    with _writing_to(path):
        while left:
            left = left[os.write(descriptor, left) :]


@contextmanager
def _writing_to(path: Path | str) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise BadInput(f"{path} cannot be written: {error.strerror}") from None


def _require_name(name: str) -> None:
    """Raise BadInput where no file may be called so."""
    require_name(name)
    if name == HALF_PUT:
        raise BadInput(f"a file of a store cannot be called {name!r}; give another --name")


def _require_place(store: LocalStore, name: str) -> None:
    """Raise BadInput where the store has no folder for a file of that name, or a folder that is called so."""
    folder = name.rpartition("/")[0]
    if not store.is_folder(folder):
        raise NoSuchFile(f"no folder of the store is named {folder!r}; make it first, where the store is mounted")
    if store.is_folder(name):
        raise BadInput(f"{name!r} is a folder of the store; give another --name")


def _of_degraded(reads: int) -> str:
    return f", {counted(reads, 'read')} of sectors that failed" if reads else ""
