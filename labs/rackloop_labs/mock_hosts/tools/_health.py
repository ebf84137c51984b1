"""A drive's counters in rackd, in the terms that the health logs of all three protocols share.

What rackd does not know stays at one value: a temperature of 35 degrees Celsius, no time over a temperature limit, all
of the spare blocks.
"""

from __future__ import annotations

from dataclasses import dataclass

from rackloop_labs.mock_hosts._view import AttachedDrive

TEMPERATURE_C = 35
_USUAL_RPM = 7200
RATED_ERASES = 3000  # program and erase cycles that TLC flash is sold for
READ_ERROR_THRESHOLD = 6  # the normalized read error rate at which a drive says of itself that it is failing

_NS_PER_HOUR = 3_600_000_000_000


@dataclass(frozen=True)
class DriveHealth:
    """The health of a drive: counts since it left the factory, ``percentage_used`` 0 to 255 of the rated wear."""

    media_errors: int
    reallocated_sectors: int
    power_on_minutes: int
    power_cycles: int
    reads: int
    writes: int
    bytes_read: int
    bytes_written: int
    link_resets: int
    erase_count: int
    percentage_used: int
    unreadable_at_first: int
    reread_blocks: int

    @property
    def power_on_hours(self) -> int:
        """Whole hours with power."""
        return self.power_on_minutes // 60

    @property
    def read_error_rate(self) -> int:
        """100 for a drive that never failed to read, less with each media error, at least 1."""
        return max(1, 100 - self.media_errors)

    @property
    def is_failing(self) -> bool:
        """Whether the drive says that it is about to fail."""
        return self.read_error_rate <= READ_ERROR_THRESHOLD


def drive_health(drive: AttachedDrive) -> DriveHealth:
    """The health of a drive by rackd's ``drive_stats``; counters that are missing are 0."""
    counters = drive.counters
    erase_count = counters.get("erase_count_mean", 0)
    return DriveHealth(
        media_errors=counters.get("media_errors", 0),
        reallocated_sectors=counters.get("reallocated_sectors", 0),
        power_on_minutes=counters.get("power_on_ns", 0) * 60 // _NS_PER_HOUR,
        power_cycles=counters.get("power_cycles", 0),
        reads=counters.get("reads", 0),
        writes=counters.get("writes", 0),
        bytes_read=counters.get("bytes_read", 0),
        bytes_written=counters.get("bytes_written", 0),
        link_resets=counters.get("phy_resets", 0),
        erase_count=erase_count,
        percentage_used=min(255, erase_count * 100 // RATED_ERASES),
        unreadable_at_first=counters.get("read_errors", 0),
        reread_blocks=counters.get("read_retries", 0),
    )


def rotation_rate(drive: AttachedDrive) -> tuple[int, str]:
    """The speed of rotation of a drive as a number, 0 for flash, and in the words of smartctl."""
    rpm = (drive.rpm or _USUAL_RPM) if drive.is_rotational else 0
    return rpm, f"{rpm} rpm" if rpm else "Solid State Device"
