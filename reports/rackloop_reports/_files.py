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


def write_atomically(path: Path, data: str | bytes) -> None:
    """Put ``data`` at ``path`` by writing beside it and renaming. Raises BadInput where the disk refuses."""
    body = data.encode() if isinstance(data, str) else data
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
