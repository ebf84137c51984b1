"""Traces by name: a file, or one of the samples that are shipped."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from rackloop.data import data_path
from rackloop.errors import BadInput
from rackloop.names import guess


def find_trace(name: str | Path) -> Path:
    """The trace that ``name`` means: a file, relative to the current directory, or one of those shipped.

    A shipped one goes by its name to the first dot, as ``demo``. Raises BadInput where there is neither.
    """
    path = Path(name).expanduser()
    # Where a folder may not be entered, or a name is too long for a file, there is none.
    with suppress(OSError):
        if path.exists():
            return path
    shipped = {file.name.partition(".")[0]: file for file in sorted(data_path("traces").iterdir())}
    if str(name) in shipped:
        return shipped[str(name)]
    raise BadInput(
        f"there is no trace {str(name)!r}, neither a file nor one of those shipped; {guess(str(name), shipped)}"
    )
