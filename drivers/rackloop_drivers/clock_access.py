"""The way to the port at which a host's clock is shown, data only."""

from __future__ import annotations

from dataclasses import dataclass

CLOCK_PORT = 6170
"""The TCP port of a host at which rackprobe shows its clock."""


@dataclass(frozen=True)
class ClockAccess:
    """The place where the TCP port is reached at which rackprobe shows its host's clock: ``listens_at`` there."""

    host: str
    port: int
    listens_at: int = CLOCK_PORT
