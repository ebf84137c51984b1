"""Blocks in a file of this machine, on which stores lie where there is no rack."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import Self

from rackloop.abilities.blocks import require_inside


class FileBlocks:
    """Blocks in a file, which is made and grown to ``size_bytes``. A context manager.

    Raises OSError as the file system does.
    """

    def __init__(self, path: Path, size_bytes: int) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if os.fstat(self._descriptor).st_size < size_bytes:
                os.ftruncate(self._descriptor, size_bytes)
        except OSError:
            os.close(self._descriptor)
            raise
        self.size_bytes = size_bytes

    def read(self, offset: int, length: int) -> bytes:
        """The bytes there. Raises ValueError beyond the end."""
        require_inside(offset, length, self.size_bytes)
        return os.pread(self._descriptor, length, offset)

    def write(self, offset: int, data: bytes) -> None:
        """Put bytes there. Raises ValueError beyond the end."""
        require_inside(offset, len(data), self.size_bytes)
        written = os.pwrite(self._descriptor, data, offset)
        if written != len(data):
            raise OSError(f"{written} of {len(data)} bytes were written; is the file system full?")

    def flush(self) -> None:
        """Return when what was written is on the file's storage."""
        os.fdatasync(self._descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._descriptor)
