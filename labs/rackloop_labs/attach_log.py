"""The log of drives that come to server ports and go: what tells of it differs, what it tells does not."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from rackloop.abilities import Applied
from rackloop.clock import Deadline
from rackloop.record import Stage


class AttachLog(Protocol):
    """Drives coming and going, from when it is opened. Safe to ask from several threads."""

    def stages(self, applied: Applied, switch_port: int, deadline: Deadline, *, until: str = "online") -> list[Stage]:
        """The stages of the circuit that a map change gave to a server's ``switch_port``, in order of time.

        Waits until the drive is online, or for another stage, or until the deadline; a stage not seen is absent.
        """
        ...

    def first_loss(
        self, events: Collection[str], places: Collection[tuple[str, str]], drives: Collection[str], since_ns: int
    ) -> Stage | None:
        """The first of ``events`` since a moment that was of one of these server ports or drives; None where none was.

        They are ``phy_down`` and ``offline`` of a port, ``io_error`` and ``crashed`` of a drive, and ``held_timeout``,
        which no place is known of. A log knows of some of them only.
        """
        ...
