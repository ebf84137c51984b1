"""Names of the files that a host keeps in its private folder."""

from __future__ import annotations

from rackloop.errors import BadInput


def require_file_name(name: str) -> None:
    """Raises BadInput where ``name`` is not that of a file alone, without folders."""
    if not name or "/" in name or name in {".", ".."}:
        raise BadInput(f"{name!r} is not a file name: give one without folders")
