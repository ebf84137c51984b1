"""Our storage switch as a box that tenants share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from rackloop.safety import TenantRegion
from rackloop_oracles.fairness import TenantExport


class RunningSwitch(Protocol):
    """A storage switch that answers; see ``rackloop_drivers.storage_switch``."""

    def require_running(self) -> None: ...
    def close(self) -> None: ...


class SwitchUnderTest:
    """The storage switch ``running`` on ``server`` in front of ``drive``, which schedules by ``scheduler``.

    ``regions`` are its tenants', each with the export of its name. Its name is that of the scheduler.
    """

    def __init__(
        self, running: RunningSwitch, scheduler: str, server: str, drive: str, regions: Sequence[TenantRegion]
    ) -> None:
        self.name = scheduler
        self.exports = tuple(TenantExport(server, drive, region) for region in regions)
        self._running = running

    def require_serving(self) -> None:
        """Raise ToolError where the switch has ended by itself."""
        self._running.require_running()

    def close(self) -> None:
        """End the switch."""
        self._running.close()
