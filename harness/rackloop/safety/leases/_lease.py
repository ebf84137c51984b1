"""Leases, requests in the queue, and the errors that say how either is lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from rackloop.errors import LabError
from rackloop.lab import Parts
from rackloop.safety.leases._holder import Holder


@dataclass(frozen=True)
class Lease:
    """The right to work on ``parts`` of ``lab``. ``token`` is higher than every one given for the lab before.

    ``until`` is when it ends unless a heartbeat comes; for one bound to a person it ends then. ``within`` names the
    lease it is a part of, where it is one. Times are those of the store, told by the asking machine's wall clock.
    """

    id: str
    lab: str
    holder: Holder
    parts: Parts
    token: int
    granted_at: datetime
    until: datetime
    purpose: str
    priority: int
    within: str | None = None

    def __str__(self) -> str:
        purpose = f" for {self.purpose}" if self.purpose else ""
        until = "" if self.holder.process else f" until {_minute(self.until)}"
        since = _minute(self.granted_at)
        return f"{self.parts.short} held by {self.holder}{purpose} since {since}{until} (lease {self.id})"


@dataclass(frozen=True)
class Ticket:
    """A place in the queue of a lab. ``lease`` is there once it was granted.

    ``held_up_by`` says, one sentence each, what it waits for: leases that overlap it, and who asked before.
    """

    id: str
    lab: str
    holder: Holder
    parts: Parts
    purpose: str
    priority: int
    asked_at: datetime
    lease: Lease | None = None
    held_up_by: tuple[str, ...] = ()


@dataclass(frozen=True)
class Attempt:
    """A request to the destructive guard for a drive. It was granted where there are no ``reasons``."""

    drive: str
    lease: str | None
    who: str
    at: datetime
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Theft:
    """A lease that was ended by another holder, who wanted its parts."""

    lease: str
    previous_holder: str
    new_holder: str
    parts: Parts
    at: datetime
    why: str


class LeaseLost(LabError):
    """The lease is over: its time is up, its holder ended it, or another took it. Nothing may be done under it."""


class RackLeased(LabError):
    """Other holders have the parts. ``held_up_by`` names each in a sentence; ``options`` what else may be asked."""

    def __init__(
        self, lab: str, held_up_by: Sequence[str], *, waited_s: float = 0.0, options: Sequence[str] = ()
    ) -> None:
        self.held_up_by = tuple(held_up_by)
        self._told = lab, waited_s
        waited = f" after {waited_s:g} s" if waited_s else ""
        super().__init__(
            f"lab {lab} is not free{waited}: {'; '.join(held_up_by)}; "
            f"{''.join(f'{option}, ' for option in options) or 'ask for it later, '}or see `rackloop lab status {lab}`"
        )

    def offering(self, *options: str) -> RackLeased:
        """The same, with what the verb that was given offers to do, such as ``take it over (--steal)``."""
        lab, waited_s = self._told
        return RackLeased(lab, self.held_up_by, waited_s=waited_s, options=options)


def _minute(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")
