"""The virtual lab: a rack of QEMU guests on this machine, opened as a physical rack is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from rackloop.errors import DescriptionError
from rackloop.lab import Lab
from rackloop_labs._lab_process import LabProcess
from rackloop_labs.described import require_described
from rackloop_labs.readiness import unready
from rackloop_labs.virtual_rack.described_rack import as_equipment
from rackloop_labs.virtual_rack.guest_cache import GuestCache, SavedGuest


class VirtualLab(LabProcess):
    """Builds the guests of ``lab``, and brings them up and down."""

    module: ClassVar[str] = "rackloop_labs.virtual_labd"
    up_s: ClassVar[float] = 300.0

    def build(self, say: Callable[[str], None]) -> tuple[SavedGuest, bool]:
        """Build what its guests are resumed from, where it is not there; that, and whether it had to be built.

        ``say`` is told of each step. Raises BadInput where this machine lacks what it takes, or the description says
        what no virtual rack can have, LabError where packages cannot be had or the guest does not boot.
        """
        self._require_virtual()
        return GuestCache(self.clock).build(say)

    def up(self, *, leashed: bool = False, seed: int | None = None) -> Any:
        """As every lab. Raises LabError, too, where its guests are not built."""
        self._require_virtual()
        if not self.is_up():
            GuestCache(self.clock).require(self.lab.name)
        return super().up(leashed=leashed, seed=seed)

    def described(self) -> Lab:
        """The description that the code for physical racks opens.

        Raises LabError where the lab is not up, BadInput where it was brought up from another description.
        """
        require_described(self.lab, self.state)
        return as_equipment(self.lab, self.state.endpoints())

    def _require_virtual(self) -> None:
        if problems := unready(self.lab):
            raise DescriptionError(problems)
