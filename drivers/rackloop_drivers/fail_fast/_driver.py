"""A drive of a server that is told to fail fast, and given its own setting back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rackloop.abilities import Host
from rackloop.clock import Deadline
from rackloop.drive_identifiers import normal_text
from rackloop.errors import BadInput, GuardRefused, LabError
from rackloop_drivers.fail_fast._limits import LIMITS, Limit
from rackloop_drivers.host_tools import NoDriveThere, identify_drive, own_name

FAIL_FAST = "fail_fast"
_LEAST_S = 0.001
_MOST_S = 60.0


class FailFast:
    """:class:`~rackloop_drivers.host_tools.Breaking` of a drive's error recovery; its one kind is ``fail_fast``.

    ``within_s`` limits how long the drive tries to read a sector: rounded up to tenths of a second where the drive
    counts in those. ``device`` is as :class:`~rackloop_drivers.drive.HostDrive` takes it; a drive there with another
    serial than ``serial`` is refused with GuardRefused. The setting that was there is noted before, and given back to
    that drive alone, by a name that leads to no other; it stands until then, or until the drive loses its power. Where
    drives ``move``, as a switch gives them to other servers, one that is not there has it still; else it was unplugged
    once another is in its place, and has lost it. Raises NotSupported where the drive has no such setting, LabError
    where it does not take it, has no name of its own, or may have it and is not there.
    """

    kinds = frozenset({FAIL_FAST})

    def __init__(self, host: Host, device: str, *, serial: str, move: bool) -> None:
        self._host = host
        self._device = device
        self._serial = serial
        self._move = move

    def prepare(self, fault: Mapping[str, Any], deadline: Deadline) -> dict[str, Any]:
        """See :class:`~rackloop_drivers.host_tools.Breaking`."""
        within_s = _within_s(fault)
        seen = identify_drive(self._host, self._device, deadline)
        if normal_text(seen.identity.serial) != normal_text(self._serial):
            why = f"the serial is described as {self._serial}, its drive has {seen.identity.serial}"
            raise GuardRefused(f"{self._host.name}:{self._device}", [why])
        node = own_name(self._host, seen, deadline)
        # What is found by its own name is the drive that was seen, wherever it is by now.
        limit = LIMITS[seen.identity.protocol](self._host, node)
        before = limit.read(deadline)
        return {
            "node": node,
            "serial": seen.identity.serial,
            "protocol": seen.identity.protocol,
            "before": before,
            "limited": limit.limited(before, within_s),
        }

    def start(self, note: Mapping[str, Any], deadline: Deadline) -> None:
        """See :class:`~rackloop_drivers.host_tools.Breaking`."""
        if (limit := self._limit(note, deadline)) is None:
            raise self._gone(note)
        _set(limit, note["limited"], deadline)

    def stands(self, note: Mapping[str, Any], deadline: Deadline) -> bool:
        """See :class:`~rackloop_drivers.host_tools.Breaking`."""
        limit, before = self._limit(note, deadline), note["before"]
        return limit is not None and limit.read(deadline) != before

    def end(self, note: Mapping[str, Any], deadline: Deadline) -> None:
        """See :class:`~rackloop_drivers.host_tools.Breaking`."""
        limit, before = self._limit(note, deadline), note["before"]
        if limit is not None and limit.read(deadline) != before:
            _set(limit, before, deadline)

    def _limit(self, note: Mapping[str, Any], deadline: Deadline) -> Limit | None:
        """The limit of the noted drive; None where it has lost its power since. Raises LabError where it is gone."""
        if self._serial_at(note["node"], deadline) == normal_text(note["serial"]):
            return LIMITS[note["protocol"]](self._host, note["node"])
        if self._move or self._serial_at(self._device, deadline) in {None, normal_text(note["serial"])}:
            raise self._gone(note)
        return None

    def _serial_at(self, device: str, deadline: Deadline) -> str | None:
        """The serial of the drive there; None where none is."""
        try:
            return normal_text(identify_drive(self._host, device, deadline).identity.serial)
        except NoDriveThere:
            return None

    def _gone(self, note: Mapping[str, Any]) -> LabError:
        return LabError(
            f"{self._host.name}:{self._device}: drive {note['serial']} was told to fail fast here, and {note['node']} "
            f"does not lead to it any more; its own setting is {note['before']}"
        )


def _set(limit: Limit, setting: str, deadline: Deadline) -> None:
    limit.write(setting, deadline)
    if (now := limit.read(deadline)) != setting:
        raise LabError(f"{limit.where}: the drive was told to limit its error recovery to {setting}, and has {now}")


def _within_s(fault: Mapping[str, Any]) -> float:
    """The limit that a fault asks for. Raises BadInput where it makes no sense."""
    match fault:
        case {"within_s": bool()}:
            pass
        case {"within_s": int() | float() as within_s} if len(fault) == 2 and _LEAST_S <= within_s <= _MOST_S:
            return float(within_s)
    given = ", ".join(f"{name} {value!r}" for name, value in fault.items() if name != "kind") or "nothing"
    raise BadInput(f"{FAIL_FAST} takes within_s, in seconds, from {_LEAST_S} to {_MOST_S:g}; not {given}")
