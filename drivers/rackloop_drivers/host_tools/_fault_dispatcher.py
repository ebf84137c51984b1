"""Several kinds of :class:`~rackloop_drivers.host_tools.Breaking` of one thing, as one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rackloop.clock import Deadline
from rackloop.errors import LabError
from rackloop_drivers.host_tools._host_faults import Breaking


class FaultDispatcher:
    """A :class:`~rackloop_drivers.host_tools.Breaking` that makes a fault by the one of ``ways`` that has its kind."""

    def __init__(self, *ways: Breaking) -> None:
        self._by_kind = {kind: way for way in ways for kind in way.kinds}

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of all."""
        return frozenset(self._by_kind)

    def prepare(self, fault: Mapping[str, Any], deadline: Deadline) -> dict[str, Any]:
        """See :class:`~rackloop_drivers.host_tools.Breaking`."""
        return self._by_kind[fault["kind"]].prepare(fault, deadline)

    def start(self, note: Mapping[str, Any], deadline: Deadline) -> None:
        """See :class:`~rackloop_drivers.host_tools.Breaking`."""
        self._of(note).start(note, deadline)

    def stands(self, note: Mapping[str, Any], deadline: Deadline) -> bool:
        """See :class:`~rackloop_drivers.host_tools.Breaking`."""
        return self._of(note).stands(note, deadline)

    def end(self, note: Mapping[str, Any], deadline: Deadline) -> None:
        """See :class:`~rackloop_drivers.host_tools.Breaking`."""
        self._of(note).end(note, deadline)

    def _of(self, note: Mapping[str, Any]) -> Breaking:
        kind = note["fault"]["kind"]
        if kind not in self._by_kind:
            raise LabError(f"its note tells of {kind!r}, which this version cannot end; heal by that which wrote it")
        return self._by_kind[kind]
