"""The counters of a store since it was opened."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Statistics:
    """Counts since the store was opened. Requests of the drive write 1 MiB at most, and read 4 MiB."""

    read_requests: int = 0
    """Requests to the drive that read user or redundancy sectors."""
    read_sectors: int = 0
    """User and redundancy sectors that were read from the drive."""
    ahead_sectors: int = 0
    """Those of them that were read before they were asked for."""
    write_requests: int = 0
    """Requests to the drive that wrote user or redundancy sectors."""
    written_sectors: int = 0
    """User and redundancy sectors that were written to the drive."""
    metadata_requests: int = 0
    """Requests to the drive that read or wrote metadata."""
    cached_sectors: int = 0
    """User sectors asked for that were in the cache."""
    degraded_reads: int = 0
    """Reads in which a sector failed and was decoded, or read again."""
    failed_sectors: int = 0
    """Sectors of data that failed when they were first read."""
    decodes: int = 0
    """Codewords that were decoded."""
    decoded_sectors: int = 0
    """Sectors that came out of decoding."""
    retried_sectors: int = 0
    """Failed sectors that the drive was told to read with retries of its own."""
    redundancy_writes: int = 0
    """Groups whose redundancy was written."""
    encodes: int = 0
    """Redundancy computed from a group that was in memory, as when it was filled in one go."""
    progressive_updates: int = 0
    """Redundancy that was added to as a group grew (eq. 10)."""
    direct_updates: int = 0
    """Redundancy computed anew after reading the rest of the group from the drive."""
    indirect_updates: int = 0
    """Redundancy changed by difference (eq. 11)."""
    update_read_sectors: int = 0
    """Sectors that were read to bring redundancy up to date."""
    sync_writes: int = 0
    """Writes that were put down before their redundancy."""
    moved_groups: int = 0
    """Groups that were moved because there was no room to grow behind them."""
    commits: int = 0
    """Times that metadata were committed."""
    metadata_repairs: int = 0
    """Replicas of metadata sectors that could not be read, were wrong or were old, and were written again."""
    recovered_groups: int = 0
    """Groups that were found unprotected when the store was opened."""
