"""An md array as a system under test."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from rackloop.abilities.blocks import Blocks
from rackloop.clock import Clock, Deadline
from rackloop_models.under_test._md import MdArray, MdStatus
from rackloop_models.under_test._md_layout import md_stripe
from rackloop_oracles.recovery import BlockSystem, Place, RecoveryState, SilentCorruption, Stripe


class MdSystem(BlockSystem):
    """An md array as a system under test: its blocks, its state and where its stripes lie, from sysfs.

    The kernel rebuilds by itself once there is a spare; ``repair`` waits for that, ``rebuild_s`` at most. With
    ``rebuild_kib_per_s`` it lets a frozen array do so, and no faster. md compares
    nothing when it reads: silent corruption is not covered. A write that is not acknowledged may leave parts of both
    in one block. To forget takes root. ``size_bytes`` takes less than all of the array. A member that is not a drive
    itself lies on one of ``drives``, by its kernel name: that, and where it begins there.
    """

    def __init__(
        self,
        blocks: Blocks,
        array: MdArray,
        clock: Clock,
        *,
        rebuild_s: float,
        rebuild_kib_per_s: int | None = None,
        size_bytes: int | None = None,
        drives: Mapping[str, tuple[str, int]] | None = None,
    ):
        status = array.status()
        m = status.m
        super().__init__(
            blocks,
            array.name,
            state=array,
            k=None if m is None else status.raid_disks - m,
            m=m,
            size_bytes=size_bytes,
            silent_corruption=SilentCorruption.NOT_COVERED,
        )
        self._array = array
        self._clock = clock
        self._rebuild_s = rebuild_s
        self._rebuild_kib_per_s = rebuild_kib_per_s
        self._drives = drives or {}
        self._status: MdStatus | None = status

    def recovery_state(self) -> RecoveryState:
        """The state by the kernel."""
        self._status = self._array.status()
        return self._status.recovery_state()

    def places(self, address: int) -> Stripe | None:
        """The place of a block's stripe, as of the last repair, the last ``forget`` or ``recovery_state``.

        None where that is not known: see ``docs/reference``.
        """
        if self._status is None:
            self._status = self._array.status()
        stripe = md_stripe(self._status, address)
        return stripe and replace(stripe, units=tuple(map(self._on_drive, stripe.units)))

    def _on_drive(self, unit: Place) -> Place:
        drive, begins = self._drives.get(unit.drive, (unit.drive, 0))
        return Place(drive, begins + unit.offset, unit.length)

    def repair(self, pause: Callable[[], None]) -> None:
        """Wait for the kernel. Raises DeadlineExceeded, ToolError where it does not do as it is told."""
        if self._rebuild_kib_per_s is not None:
            self._array.rebuild(most_kib_per_s=self._rebuild_kib_per_s)
        self._status = self._array.wait_idle(Deadline.after(self._clock, self._rebuild_s), pause)

    def forget(self) -> None:
        """Have the kernel drop what it holds in memory. Raises ToolError, without root for one."""
        self._array.drop_caches()
        self._status = None
