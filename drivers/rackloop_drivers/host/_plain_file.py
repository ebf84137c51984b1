"""Files that are read whole: a pipe would be waited for, and a device such as /dev/zero be read for ever."""

from __future__ import annotations

from pathlib import Path

from rackloop.errors import BadInput


def require_plain_file(what: str, path: Path) -> None:
    """Raise BadInput where ``path``, a ``what``, is there and no file; OSError where that cannot be told."""
    if path.exists() and not path.is_file():
        raise BadInput(f"the {what} {path} is a directory, a pipe or a device; give it as a file")
