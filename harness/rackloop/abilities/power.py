"""Power of servers, drives and boxes, and what management controllers note."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, runtime_checkable

from rackloop.clock import Deadline


@runtime_checkable
class PowerPort(Protocol):
    """Feeds one server, drive or box."""

    def turn_on(self, deadline: Deadline) -> None: ...
    def turn_off(self, deadline: Deadline) -> None: ...
    def is_on(self, deadline: Deadline) -> bool: ...


@dataclass(frozen=True)
class SystemEvent:
    """An entry of a system event log. ``at`` is None where the controller did not know the time."""

    number: int
    at: datetime | None
    sensor: str
    text: str
    severity: str = ""


@runtime_checkable
class SystemEventLog(Protocol):
    """Events noted by a server's management controller (SEL), oldest first; ``now`` is the controller's own clock."""

    def events(self, deadline: Deadline) -> list[SystemEvent]: ...
    def now(self, deadline: Deadline) -> datetime: ...
