"""Several things to end, of which one that fails keeps no other from being ended."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rackloop.errors import LabError


def complaints(ends: Iterable[Callable[[], object]]) -> list[str]:
    """Call all of ``ends``, one after the other; the messages of those that raised LabError."""
    said: list[str] = []
    for end in ends:
        try:
            end()
        except LabError as error:
            said.append(str(error))
    return said
