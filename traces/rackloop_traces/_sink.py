"""The output file of a trace: written under a temporary name and compressed as the final name's ending says."""

from __future__ import annotations

import os
import secrets
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

from rackloop.errors import BadInput

_GZIP_LEVEL = 1  # a trace is written once, and the level decides how long that takes


class _Encoder(Protocol):
    def compress(self, data: bytes, /) -> bytes: ...

    def flush(self) -> bytes: ...


class _Plain:
    """No compression."""

    def compress(self, data: bytes, /) -> bytes:
        return data

    def flush(self) -> bytes:
        return b""


def _encoder(path: Path) -> _Encoder:
    match path.suffix.lower():
        case ".gz":
            return zlib.compressobj(_GZIP_LEVEL, wbits=31)
        case ".zst":
            import zstandard

            return zstandard.ZstdCompressor().compressobj()
        case _:
            return _Plain()


def replace_with(path: Path, texts: Iterable[bytes]) -> None:
    """Put ``texts`` at ``path``, gzip or zstd where it ends with ``.gz`` or ``.zst``.

    What was there stays until all is written; where it is a link, the file that it leads to is replaced. Raises
    BadInput for a directory or a device, and where the disk refuses; whatever ends it early, nothing half done is left.
    """
    if path.is_dir():
        raise BadInput(f"{path} is a directory: name a file to write")
    if path.exists() and not path.is_file():
        raise BadInput(f"{path} is no regular file, and a trace is written by replacing one: name a file to write")
    encoder = _encoder(path)
    whole = Path(os.path.realpath(path))
    unfinished = whole.with_name(f".{whole.name}.{secrets.token_hex(4)}")
    try:
        with _writing(path), unfinished.open("xb") as file:
            for text in texts:
                file.write(encoder.compress(text))
            file.write(encoder.flush())
        with _writing(path):
            unfinished.replace(whole)
    except BaseException:
        # Where it could not even be made, such as below a file, that has been said already, by the name that was given.
        with suppress(OSError):
            unfinished.unlink()
        raise


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise BadInput(f"cannot write {path}: {error.strerror}; nothing is left of it") from error
