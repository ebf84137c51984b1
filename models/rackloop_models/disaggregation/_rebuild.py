"""The time to restore a server's data by copies over the network.

It is what the traditional approach costs: after a time in which nothing is heard of a server its drives are given up,
and what was on them is read from its other copies and written elsewhere. With D drives of C bytes each, filled to a
share u, on S sources and W writers with drives of rates r and w, and B bytes/s of network that repair may use:

    T = window + D * C * u / min(S * r, B, W * w)

HDFS gives a DataNode up after 2 * dfs.namenode.heartbeat.recheck-interval + 10 * dfs.heartbeat.interval, which is
10 min 30 s by default (hdfs-default.xml).
"""

from __future__ import annotations

from dataclasses import dataclass

HDFS_WINDOW_S = 630.0


@dataclass(frozen=True)
class Rebuild:
    """The figures of a rebuild: bytes, bytes/s and seconds. ``filled`` is the share of the drives that holds data."""

    drives: int
    drive_bytes: float
    filled: float
    sources: int
    source_bytes_per_s: float
    writers: int
    writer_bytes_per_s: float
    network_bytes_per_s: float
    window_s: float = HDFS_WINDOW_S

    @property
    def copied_bytes(self) -> float:
        """The bytes to copy."""
        return self.drives * self.drive_bytes * self.filled

    @property
    def bytes_per_s(self) -> float:
        """The speed of copying: the slowest of reading, carrying and writing."""
        return min(
            self.sources * self.source_bytes_per_s,
            self.network_bytes_per_s,
            self.writers * self.writer_bytes_per_s,
        )

    @property
    def seconds(self) -> float:
        """From the failure until everything is there again."""
        return self.window_s + self.copied_bytes / self.bytes_per_s
