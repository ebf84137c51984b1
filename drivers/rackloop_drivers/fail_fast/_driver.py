"""A drive of a server that is told to fail fast, and given its own setting back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rackloop.abilities import Host
from rackloop.clock import Deadline
from rackloop.drive_identifiers import normal_text
from rackloop.errors import BadInput, LabError
from rackloop_drivers.fail_fast._limits import LIMITS, Limit
from rackloop_drivers.host_tools import identify_drive

FAIL_FAST = "fail_fast"
_LEAST_S = 0.001
_MOST_S = 60.0


class FailFast:
    """:class:`~rackloop_drivers.host_tools.Breaking` of a drive's error recovery; its one kind is ``fail_fast``.

    ``within_s`` limits how long the drive tries to read a sector: rounded up to tenths of a second where the drive
    counts in those. ``device`` is as :class:`~rackloop_drivers.drive.HostDrive` takes it. The setting that was there is
    noted before, and given back to that drive alone; it stands until then, or until the drive loses its power. Raises
    NotSupported where the drive has no such setting, LabError where it does not take it.
    """

    kinds = frozenset({FAIL_FAST})

    def __init__(self, host: Host, device: str) -> None:
        self._host = host
        self._device = device

    def prepare(self, fault: Mapping[str, Any], deadline: Deadline) -> dict[str, Any]:
        """See :class:`~rackloop_drivers.host_tools.Breaking`."""
        within_s = _within_s(fault)
        seen = identify_drive(self._host, self._device, deadline)
        limit = LIMITS[seen.identity.protocol](self._host, seen.device)
        before = limit.read(deadline)
        return {
            "serial": seen.identity.serial,
            "protocol": seen.identity.protocol,
            "before": before,
            "limited": limit.limited(before, within_s),
        }

    def start(self, note: Mapping[str, Any], deadline: Deadline) -> None:
        """See :class:`~rackloop_drivers.host_tools.Breaking`."""
        self._set(note, note["limited"], deadline)

    def stands(self, note: Mapping[str, Any], deadline: Deadline) -> bool:
        """See :class:`~rackloop_drivers.host_tools.Breaking`."""
        before: str = note["before"]
        return self._limit(note, deadline).read(deadline) != before

    def end(self, note: Mapping[str, Any], deadline: Deadline) -> None:
        """See :class:`~rackloop_drivers.host_tools.Breaking`."""
        if self.stands(note, deadline):
            self._set(note, note["before"], deadline)

    def _set(self, note: Mapping[str, Any], setting: str, deadline: Deadline) -> None:
        limit = self._limit(note, deadline)
        limit.write(setting, deadline)
        if (now := limit.read(deadline)) != setting:
            raise LabError(f"{limit.where}: the drive was told to limit its error recovery to {setting}, and has {now}")

    def _limit(self, note: Mapping[str, Any], deadline: Deadline) -> Limit:
        """The limit of the noted drive. Raises LabError where another is there."""
        seen = identify_drive(self._host, self._device, deadline)
        if normal_text(seen.identity.serial) != normal_text(note["serial"]):
            raise LabError(
                f"{self._host.name}:{self._device}: drive {note['serial']} was told to fail fast here and is not here "
                f"any more; its own setting is {note['before']}"
            )
        return LIMITS[note["protocol"]](self._host, seen.device)


def _within_s(fault: Mapping[str, Any]) -> float:
    """The limit that a fault asks for. Raises BadInput where it makes no sense."""
    match fault:
        case {"within_s": bool()}:
            pass
        case {"within_s": int() | float() as within_s} if len(fault) == 2 and _LEAST_S <= within_s <= _MOST_S:
            return float(within_s)
    given = ", ".join(f"{name} {value!r}" for name, value in fault.items() if name != "kind") or "nothing"
    raise BadInput(f"{FAIL_FAST} takes within_s, in seconds, from {_LEAST_S} to {_MOST_S:g}; not {given}")
