"""Drives of a simulated rack, broken and mended through rackd's control socket."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rackloop.clock import Deadline
from rackloop.errors import BadInput, LabError, NotSupported
from rackloop_drivers.rackd import RackdControl, RackdRefused

_KINDS = frozenset({"corrupt", "crash_on_remap", "dead", "hang", "media_error", "slow"})
_WRONG_INPUT = frozenset({"bad_request", "out_of_range", "unknown_drive"})
# A fault that somebody gave rackd without a key goes by its number.
_NUMBERED = "#"


class RackdBreakable:
    """A drive of a simulated rack as a Breakable. Faults and their parameters are those of ``docs/reference/rackd.md``.

    A fault that was made without a key is in ``standing`` as ``#`` and its number, and can be mended by that.
    """

    kinds = _KINDS

    def __init__(self, control: RackdControl, drive: str) -> None:
        self._control = control
        self._drive = drive

    def break_as(self, key: str, fault: Mapping[str, Any], deadline: Deadline) -> None:
        """Break the drive under ``key``; requests that end from now on meet the fault.

        Raises NotSupported for another kind, BadInput for parameters that make no sense.
        """
        if fault.get("kind") not in _KINDS:
            ways = ", ".join(sorted(_KINDS))
            raise NotSupported(f"drive {self._drive} cannot be broken as {fault.get('kind')!r}, only as {ways}")
        self._ask("fault", deadline, fault=dict(fault), key=key)

    def mend(self, key: str, deadline: Deadline) -> None:
        """End the fault that stands under ``key``, if one does."""
        number = key.removeprefix(_NUMBERED)
        if key.startswith(_NUMBERED) and number.isdecimal():
            self._control.request("clear_fault", deadline, fault_id=int(number))
        else:
            self._ask("clear_fault", deadline, key=key)

    def standing(self, deadline: Deadline) -> dict[str, Mapping[str, Any]]:
        """The faults the drive has now, by key; those that used themselves up are gone."""
        return standing_by_drive(self._control, deadline).get(self._drive, {})

    def _ask(self, op: str, deadline: Deadline, **fields: Any) -> None:
        try:
            self._control.request(op, deadline, drive=self._drive, **fields)
        except RackdRefused as refusal:
            raise (BadInput if refusal.code in _WRONG_INPUT else LabError)(str(refusal)) from refusal


def standing_by_drive(control: RackdControl, deadline: Deadline) -> dict[str, dict[str, Mapping[str, Any]]]:
    """The faults that drives of a simulated rack have now, by drive and key; drives that are well are left out."""
    found: dict[str, dict[str, Mapping[str, Any]]] = {}
    for known in control.request("faults", deadline)["faults"]:
        key = str(known.get("key") or f"{_NUMBERED}{known['fault_id']}")
        found.setdefault(known["drive"], {})[key] = known["fault"]
    return found
