"""Breakable parts whose every fault is in the undo journal before it is made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rackloop.abilities import Breakable
from rackloop.clock import Deadline
from rackloop.record.acts import BreakPart, MendPart
from rackloop.safety.undo._recorder import ActRecorder


class JournalledBreakable:
    """A Breakable whose faults the journal can mend. ``name`` is what the lab calls the part.

    A fault that is mended here still stands in the journal until it is undone, which then finds nothing to mend.
    """

    def __init__(self, part: Breakable, name: str, recorder: ActRecorder) -> None:
        self._part = part
        self._name = name
        self._recorder = recorder

    @property
    def kinds(self) -> frozenset[str]:
        """The ways it can be broken in."""
        return self._part.kinds

    def break_as(self, key: str, fault: Mapping[str, Any], deadline: Deadline) -> None:
        """Break it, having journalled that ``key`` is to be mended. Raises LinkKept for a drive that keeps its link."""
        if kept := self._recorder.kept_links:
            kept.require_part(self._name, fault)
        self._recorder.perform(
            self._name, BreakPart(key, fault), [MendPart(key)], lambda: self._part.break_as(key, fault, deadline)
        )

    def mend(self, key: str, deadline: Deadline) -> None:
        """Mend what stands under ``key``. Raises LeaseLost where the lease is over: its next holder heals the rack."""
        self._recorder.require_lease()
        self._part.mend(key, deadline)

    def standing(self, deadline: Deadline) -> dict[str, Mapping[str, Any]]:
        """The faults that stand now, by key."""
        return self._part.standing(deadline)


class JournalledBreakables(Mapping[str, Breakable]):
    """The breakable parts of a rack, by name, each journalled when it is asked for: a test breaks few of many."""

    def __init__(self, parts: Mapping[str, Breakable], recorder: ActRecorder) -> None:
        self._parts = parts
        self._recorder = recorder

    def __getitem__(self, name: str) -> JournalledBreakable:
        """The part ``name``. Raises KeyError where there is none."""
        return JournalledBreakable(self._parts[name], name, self._recorder)

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)
