"""All faults of one server: its panics, and those of which it keeps a note itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rackloop.abilities import Breakable
from rackloop.clock import Deadline
from rackloop.errors import NotSupported
from rackloop_drivers.crash._crash import HostCrash


class ServerFaults:
    """A :class:`~rackloop.abilities.Breakable` of a server that panics as ``crash`` does, and is broken as ``others``.

    One that is crashed, or has no power, cannot be asked for its notes: nothing else stands there then.
    """

    def __init__(self, crash: HostCrash, others: Breakable) -> None:
        self._crash = crash
        self._others = others

    @property
    def kinds(self) -> frozenset[str]:
        """The ways in which it can be broken."""
        return self._crash.kinds | self._others.kinds

    def break_as(self, key: str, fault: Mapping[str, Any], deadline: Deadline) -> None:
        """Break it under ``key``. Raises as the part does whose kind it is, NotSupported for another kind."""
        kind = fault.get("kind")
        part = next((part for part in (self._crash, self._others) if kind in part.kinds), None)
        if part is None:
            ways = ", ".join(sorted(self.kinds))
            raise NotSupported(f"the server cannot be broken as {kind!r}, only as {ways}")
        part.break_as(key, fault, deadline)

    def mend(self, key: str, deadline: Deadline) -> None:
        """Mend what stands under ``key``, if anything does. Its power is cut for none but a panic that is known.

        Raises LabError for a server that has power and does not answer, and is not known to have panicked.
        """
        if self._crash.knows(key):
            self._crash.mend(key, deadline)
        elif self._crash.can_be_asked(deadline):
            self._crash.give_settings_back(key, deadline)
            self._others.mend(key, deadline)

    def recall(self, faults: Mapping[str, Mapping[str, Any]]) -> None:
        """Learn which keys are those of panics."""
        self._crash.recall(faults)

    def standing(self, deadline: Deadline) -> dict[str, Mapping[str, Any]]:
        """The standing faults, by key."""
        if (crashed := self._crash.crashed(deadline)) or not self._crash.answers(deadline):
            return crashed
        return {**self._crash.settings.standing(deadline), **self._others.standing(deadline)}
