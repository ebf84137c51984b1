"""A clock whose time of day a test sets."""

from __future__ import annotations

from datetime import datetime, timedelta

from rackloop.clock import VirtualClock


class SetClock(VirtualClock):
    """A virtual clock whose time of day is ``set_by`` ahead."""

    set_by = timedelta()

    def wall(self) -> datetime:
        return super().wall() + self.set_by
