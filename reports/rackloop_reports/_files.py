"""Atomic replacement of files."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rackloop.errors import BadInput


@contextmanager
def writing(place: Path) -> Iterator[None]:
    """Turn a disk's refusal into BadInput: where reports go was the caller's choice."""
    try:
        yield
    except OSError as error:
        raise BadInput(
            f"cannot write {error.filename or place}: {error.strerror}; make room, or report from a copy that you may "
            "write to"
        ) from error


def utf8(text: str) -> bytes:
    """``text`` for a file; of a path that is not UTF-8, such as one of the command line, Python's way to write it."""
    return text.encode(errors="backslashreplace")


def write_atomically(path: Path, data: str | bytes) -> None:
    """Put ``data`` at ``path`` by writing beside it and renaming. Raises BadInput where the disk refuses."""
    body = utf8(data) if isinstance(data, str) else data
    with writing(path):
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(body)
            Path(name).chmod(0o644)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
