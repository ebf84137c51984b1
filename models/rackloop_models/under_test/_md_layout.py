"""The places of an md array's stripes on its drives."""

from __future__ import annotations

from rackloop_models.under_test._md import MdStatus
from rackloop_oracles.recovery import SECTOR_BYTES, Place, Stripe

# ``ALGORITHM_LEFT_SYMMETRIC`` of the kernel's drivers/md/raid5.h, what mdadm makes unless it is told otherwise.
_LEFT_SYMMETRIC = 2
_MIRRORED_BYTES = 65536


def md_stripe(status: MdStatus, address: int) -> Stripe | None:
    """The stripe of the block of 4096 bytes at ``address``: by slots, a slot without a drive being ``slotN``.

    Of a RAID5 or RAID6 in the left-symmetric layout, and of a RAID1, of which 64 KiB are called a stripe. None of any
    other, and while it is reshaped.
    """
    drives, m = status.raid_disks, status.m
    if status.layout is None or not m or drives <= m:
        return None
    unit = status.chunk_bytes
    if status.level == "raid1":
        unit = _MIRRORED_BYTES
    elif status.level not in {"raid5", "raid6"} or status.layout != _LEFT_SYMMETRIC or unit % SECTOR_BYTES:
        return None
    blocks = (drives - m) * unit // SECTOR_BYTES
    number = address // blocks
    by_slot = {member.slot: member for member in status.members}
    units = []
    for slot in _slots(status.level, drives, m, number):
        member = by_slot.get(slot)
        name, begins = (member.name, member.offset_bytes) if member else (f"slot{slot}", 0)
        units.append(Place(name, begins + number * unit, unit))
    return Stripe(str(number), range(number * blocks, (number + 1) * blocks), tuple(units), drives - m)


def _slots(level: str, drives: int, m: int, number: int) -> list[int]:
    """The slots of a stripe's units, data before parity: parity moves back by a drive each stripe, data follows it."""
    if level == "raid1":
        return list(range(drives))
    parity = drives - 1 - number % drives
    turn = [(parity + step) % drives for step in range(drives)]
    return turn[m:] + turn[:m]
