"""A drive as one file, served as a store is and without one: what FUSE and its binding take by themselves.

Run as a process by benchmarks: ``python -m benchmarks._fuse_floor FOLDER SERVER EXPORT DRIVE_BYTES FILE_BYTES``. It
says ``ready`` once the file is there, and ends as a mount does.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, cast

from rackloop.clock import RealClock
from rackloop_drivers.block import NbdExport
from rackloop_drivers.block.nbd_session import NbdSession
from rackloop_drivers.open_blocks import open_blocks
from rackloop_models.local_erasure import SECTOR_BYTES, FileStatus, LocalStore, serve_files
from tests.writable_drive import minted

NAME = "file"


class _DriveAsFile:
    """The first bytes of a drive as a file of a store: each request is passed on as it comes."""

    def __init__(self, blocks: NbdSession, size_bytes: int) -> None:
        self._blocks = blocks
        self.size_bytes = size_bytes

    def read(self, offset: int, length: int) -> bytes:
        return self._blocks.read(offset, min(length, self.size_bytes - offset))

    def write(self, offset: int, data: bytes) -> None:
        self._blocks.write(offset, data)

    def sync(self) -> None:
        self._blocks.flush()

    def set_modified(self, modified_ns: int) -> None:
        """Nothing: nobody asks."""

    def close(self) -> None:
        """Nothing: nothing is read ahead."""


class _NoStore:
    """As much of a store as it takes to serve one file."""

    def __init__(self, file: _DriveAsFile) -> None:
        self._file = file

    def names(self) -> list[str]:
        return [NAME]

    def folders(self) -> list[str]:
        return []

    def is_folder(self, name: str) -> bool:
        return not name

    def stat(self, name: str) -> FileStatus:  # noqa: ARG002 - as a store is asked
        return FileStatus(self._file.size_bytes, self._file.size_bytes // SECTOR_BYTES, 1, 0, 0)

    def open(self, name: str) -> _DriveAsFile:  # noqa: ARG002 - as a store is asked
        return self._file

    def protect(self, *, at_most_groups: int) -> int:  # noqa: ARG002 - as a store is asked
        return 0

    def flush(self) -> None:
        self._file.sync()


def main(folder: str, server: str, export: str, drive_bytes: str, file_bytes: str) -> None:
    clock = RealClock()
    device = NbdExport(Path(server), export, int(drive_bytes))
    with minted(device) as permit, open_blocks(permit, clock, within_s=30.0) as blocks:
        store = _NoStore(_DriveAsFile(cast("NbdSession", blocks), int(file_bytes)))
        serve_files(
            cast("LocalStore", cast("Any", store)), Path(folder), clock, on_ready=lambda: print("ready", flush=True)
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
