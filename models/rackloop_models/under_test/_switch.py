"""Our storage switch as a box that tenants share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from rackloop.safety import TenantRegion
from rackloop_oracles.fairness import TenantExport


class RunningSwitch(Protocol):
    """A storage switch that answers; see ``rackloop_drivers.storage_switch``."""

    def require_running(self) -> None: ...
    def close(self) -> None: ...


class SwitchUnderTest:
    """The storage switch ``running`` on ``server``, which schedules by ``scheduler``; its name is that.

    ``regions`` are its tenants' of each drive, by the drive.
    """

    def __init__(
        self, running: RunningSwitch, scheduler: str, server: str, regions: Mapping[str, Sequence[TenantRegion]]
    ) -> None:
        self.name = scheduler
        self.exports = tuple(TenantExport(server, drive, region) for drive, of in regions.items() for region in of)
        self._running = running

    def require_serving(self) -> None:
        """Raise ToolError where the switch has ended by itself."""
        self._running.require_running()

    def close(self) -> None:
        """End the switch."""
        self._running.close()
