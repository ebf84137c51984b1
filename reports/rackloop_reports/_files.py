"""Files that are either the old ones or the new ones, never halves."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from rackloop.errors import BadInput


def write_atomically(path: Path, data: str | bytes) -> None:
    """Put ``data`` at ``path`` by writing beside it and renaming.

    Raises BadInput where the disk refuses, since the place was the caller's choice.
    """
    body = data.encode() if isinstance(data, str) else data
    try:
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(body)
            Path(name).chmod(0o644)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise BadInput(
            f"cannot write {path}: {error.strerror}; make room, or report from a copy you may write to"
        ) from error
