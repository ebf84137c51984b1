"""Remarks and refusals that the trace verbs share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from rackloop.errors import BadInput

if TYPE_CHECKING:
    from rackloop_traces import Malformed

_SHOWN_LINES = 5


def malformed_remarks(malformed: Malformed) -> Iterator[str]:
    """The number of malformed lines and the first of them, a line each; nothing where there are none."""
    if malformed.count:
        yield f"malformed: {malformed.count:,} of {malformed.total_lines:,} lines left out"
        yield from (f"  {line}" for line in malformed.first[:_SHOWN_LINES])
        if malformed.count > _SHOWN_LINES:
            yield f"  and {malformed.count - _SHOWN_LINES:,} more"


def require_new(out: Path, *, force: bool) -> None:
    """Raise BadInput where the file ``out`` is there and is not to be replaced."""
    if out.is_file() and not force:
        raise BadInput(f"{out} is there already: name another file, or replace it with --force")
