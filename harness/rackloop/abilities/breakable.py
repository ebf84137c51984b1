"""Parts of a rack that can be broken on purpose, and mended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from rackloop.clock import Deadline


@runtime_checkable
class Breakable(Protocol):
    """A part of a rack that can be broken on purpose, in the ways of ``kinds``, and mended.

    A fault is plain JSON: its ``kind`` and that kind's parameters. It stands under a key its maker chose; to break
    under a key that stands already does nothing, nor does to mend one that does not, so both may be repeated.
    ``standing`` is read from the equipment: what is broken now, by key; a fault that ended by itself is not there.
    ``break_as`` raises NotSupported for another kind, BadInput for parameters that make no sense.
    """

    @property
    def kinds(self) -> frozenset[str]: ...
    def break_as(self, key: str, fault: Mapping[str, Any], deadline: Deadline) -> None: ...
    def mend(self, key: str, deadline: Deadline) -> None: ...
    def standing(self, deadline: Deadline) -> dict[str, Mapping[str, Any]]: ...


@runtime_checkable
class RecallsFaults(Protocol):
    """A Breakable that is told by ``recall`` what the journal says was broken, by key, before any of it is mended."""

    def recall(self, faults: Mapping[str, Mapping[str, Any]]) -> None: ...


@runtime_checkable
class FaultRegister(Protocol):
    """Says at once the faults that stand on many breakable ``parts``, by their names and keys; the others are well.

    ``standing`` raises NotConnected where nothing answers that could say it.
    """

    @property
    def parts(self) -> frozenset[str]: ...
    def standing(self, deadline: Deadline) -> dict[str, dict[str, Mapping[str, Any]]]: ...
