"""Slots and PHYs of servers on a rack with a switch: what they take away is what the live map joins to their port."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from rackloop.clock import Deadline
from rackloop.errors import DeadlineExceeded, GuardRefused, LabError
from rackloop.lab import Lab
from rackloop.portmap import PortMap
from rackloop_drivers.host_tools import Breaking
from rackloop_labs.host_parts import HostPart


class BreakingOf(Protocol):
    """The maker of what breaks a place."""

    def __call__(self, drives: Sequence[str], /, *, awaited: bool = True) -> Breaking:
        """Its breaking for these drives, whose end waits for a drive to be there only where one is awaited."""
        ...


class AtLivePort:
    """:class:`~rackloop_drivers.host_tools.Breaking` of a PHY or a slot: of the drive that ``live`` joins there.

    ``make`` gives what breaks it for the drives that are there. A port that is joined to nothing is a LabError; a drive
    that is not marked ``scratch: true``, and one that the map has elsewhere, are refused with GuardRefused.
    """

    def __init__(
        self,
        lab: Lab,
        place: HostPart,
        live: Callable[[Deadline], PortMap],
        make: BreakingOf,
    ) -> None:
        self._lab = lab
        self._place = place
        self._live = live
        self._make = make
        self._whatever = make(())
        self.kinds = self._whatever.kinds

    def prepare(self, fault: Mapping[str, Any], deadline: Deadline) -> dict[str, Any]:
        """See :class:`~rackloop_drivers.host_tools.Breaking`."""
        there, where = self._there(deadline), f"{self._place.server}.{self._place.port}"
        if not there:
            raise LabError(f"the switch joins {where} to nothing now: there is no drive to take away")
        chosen = there if self._place.drive is None else [self._place.drive]
        for drive in chosen:
            reasons = [] if drive in there else [f"the switch does not join it to {where} now"]
            if not self._lab.drives[drive].scratch:
                reasons.append(f"it is at {where} now and not marked scratch: true; its content may be worth keeping")
            if reasons:
                raise GuardRefused(drive, reasons)
        return self._make(chosen).prepare(fault, deadline)

    def start(self, note: Mapping[str, Any], deadline: Deadline) -> None:
        """See :class:`~rackloop_drivers.host_tools.Breaking`."""
        self._whatever.start(note, deadline)

    def stands(self, note: Mapping[str, Any], deadline: Deadline) -> bool:
        """See :class:`~rackloop_drivers.host_tools.Breaking`."""
        return self._whatever.stands(note, deadline)

    def end(self, note: Mapping[str, Any], deadline: Deadline) -> None:
        """See :class:`~rackloop_drivers.host_tools.Breaking`; no drive is awaited where the port has none now."""
        if self._there(deadline):
            self._whatever.end(note, deadline)
            return
        try:
            self._make((), awaited=False).end(note, deadline)
        except DeadlineExceeded:
            # It was told, and no drive came.
            if deadline.is_over():
                raise

    def _there(self, deadline: Deadline) -> list[str]:
        """The drives that the switch joins to the port now, those behind an expander too."""
        number = self._lab.switch_port(self._place.server, self._place.port)
        far = self._live(deadline).peer_of(number)
        return [] if far is None else [name for name in self._lab.drives if self._lab.wired_port(name) == far]
