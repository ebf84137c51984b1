"""The bytes of a trace: plain, gzip or zstd by their first bytes, whole lines at a time."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Protocol

from rackloop.errors import BadInput

BLOCK_BYTES = 8 << 20
_READ_BYTES = 64 << 10
_LONGEST_LINE_BYTES = 1 << 20
_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"


class CutShort(BadInput):
    """A compressed file ends before its stream does; what stood before the cut has been read."""


class _Decoder(Protocol):
    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, /) -> bytes: ...


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn the system's errors from reading ``path`` into BadInput."""
    try:
        yield
    except FileNotFoundError:
        raise BadInput(f"no such trace: {path}") from None
    except IsADirectoryError:
        raise BadInput(f"{path} is a directory: name one trace file") from None
    except PermissionError:
        raise BadInput(f"{path} may not be read by this user") from None
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from error


def chunks(path: Path) -> Iterator[bytes]:
    """The trace's bytes in small pieces, decompressed. Raises BadInput as :func:`reading`, CutShort at a cut."""
    with reading(path), path.open("rb") as file:
        magic = file.read(4)
        file.seek(0)
        if magic.startswith(_GZIP):
            yield from _decompressed(file, path, "gzip", lambda: zlib.decompressobj(wbits=31), zlib.error)
        elif magic == _ZSTD:
            import zstandard

            yield from _decompressed(
                file,
                path,
                "zstd",
                lambda: zstandard.ZstdDecompressor(max_window_size=1 << 31).decompressobj(),
                zstandard.ZstdError,
            )
        else:
            while chunk := file.read(_READ_BYTES):
                yield chunk


def _decompressed(
    file: IO[bytes], path: Path, kind: str, new_decoder: Callable[[], _Decoder], broken: type[Exception]
) -> Iterator[bytes]:
    """The decoded bytes of one stream after another, as ``gzip`` and ``zstd`` concatenate them."""
    decoder = new_decoder()
    while chunk := file.read(_READ_BYTES):
        while chunk:
            if decoder.eof:
                decoder = new_decoder()
            try:
                decoded = decoder.decompress(chunk)
            except broken as error:
                raise BadInput(f"{path} is damaged: its {kind} data cannot be decoded ({error})") from error
            if decoded:
                yield decoded
            chunk = decoder.unused_data
    if not decoder.eof:
        raise CutShort(f"{path} is cut short: its {kind} data ends in the middle")


def blocks(pieces: Iterator[bytes], path: Path) -> Iterator[bytes]:
    """``pieces`` joined to blocks of whole lines, each ended by a newline but the file's last line perhaps.

    Lines end with LF or CR LF. Raises BadInput where one is longer than a mebibyte. What is whole before an error in
    ``pieces`` is given first.
    """
    parts: list[bytes] = []
    held = 0
    cut: CutShort | None = None
    try:
        for piece in pieces:
            parts.append(piece)
            held += len(piece)
            if held < BLOCK_BYTES:
                continue
            block = b"".join(parts)
            end = block.rfind(b"\n") + 1
            if len(block) - end > _LONGEST_LINE_BYTES:
                raise BadInput(f"{path} has a line of more than {_LONGEST_LINE_BYTES >> 20} MiB: this is no text trace")
            yield _unix(block[:end])
            parts = [block[end:]]
            held = len(parts[0])
    except CutShort as error:
        cut = error
    last = b"".join(parts)
    if cut:
        last = last[: last.rfind(b"\n") + 1]
    if last:
        yield _unix(last)
    if cut:
        raise cut


def _unix(block: bytes) -> bytes:
    return block.replace(b"\r\n", b"\n") if b"\r" in block else block
