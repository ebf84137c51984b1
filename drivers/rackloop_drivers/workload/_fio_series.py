"""fio's interval logs as series on the run's clock.

Throughput comes from the latency histograms' counts and not from fio's bandwidth log: that one has no entry for an
interval in which nothing was transferred, and none either for one that fio's sampling thread missed under load, so
that its gaps cannot be read.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rackloop.errors import ToolError


class Sample(NamedTuple):
    """A value and when its interval ended, in seconds after the run started."""

    t_s: float
    value: float


class LogEntry(NamedTuple):
    """A line of a log: when its interval ended in milliseconds of the Unix epoch, a value, 0 read, 1 write, 2 trim."""

    unix_ms: int
    value: int
    direction: int


def parse_latency_log(text: str) -> list[LogEntry]:
    """The entries of a latency log: nanoseconds. Raises ToolError for what is not one."""
    return [LogEntry(unix_ms, value, direction) for unix_ms, value, direction, *_ in _rows(text)]


def parse_histogram_log(text: str) -> list[LogEntry]:
    """The entries of a histogram log as bytes: I/Os of all bins times the block size. Raises ToolError likewise."""
    return [
        LogEntry(unix_ms, block_bytes * sum(counts), direction)
        for unix_ms, direction, block_bytes, *counts in _rows(text)
    ]


def throughput(threads: Sequence[Sequence[LogEntry]], began_unix_s: float, interval_s: float) -> tuple[Sample, ...]:
    """Bytes per second of all threads together, each sample the mean since the one before.

    The samples lie an interval apart while I/O completes; a stall is one long span with little in it.
    """
    curves = [_Transferred(entries, interval_s) for entries in threads if entries]
    samples: list[Sample] = []
    last_ms, last_bytes = 0.0, 0.0
    for window in _windows(threads, interval_s):
        now_ms = window[-1].unix_ms
        now_bytes = sum(curve.by(now_ms) for curve in curves)
        span_ms = now_ms - last_ms if samples else interval_s * 1000
        samples.append(Sample(now_ms / 1000 - began_unix_s, (now_bytes - last_bytes) / span_ms * 1000))
        last_ms, last_bytes = now_ms, now_bytes
    return tuple(samples)


def longest_latency(
    threads: Sequence[Sequence[LogEntry]], began_unix_s: float, interval_s: float
) -> tuple[Sample, ...]:
    """The longest completion latency in seconds of each interval in which I/O completed.

    A stall shows as missing intervals followed by its length, at the moment when it ended: when the first I/O after
    it closed the interval that had been open.
    """
    return tuple(
        Sample(window[0].unix_ms / 1000 - began_unix_s, max(entry.value for entry in window) / 1e9)
        for window in _windows(threads, interval_s)
    )


class _Transferred:
    """The bytes that one thread had transferred by a moment, taken as even between two entries of its log."""

    def __init__(self, entries: Sequence[LogEntry], interval_s: float) -> None:
        self._times: list[float] = [entries[0].unix_ms - interval_s * 1000]
        self._bytes: list[float] = [0.0]
        for entry in entries:
            total = self._bytes[-1] + entry.value
            # After a stall fio closes several intervals within a millisecond.
            if entry.unix_ms <= self._times[-1]:
                self._bytes[-1] = total
            else:
                self._times.append(entry.unix_ms)
                self._bytes.append(total)

    def by(self, unix_ms: float) -> float:
        after = bisect_right(self._times, unix_ms)
        if after in (0, len(self._times)):
            return self._bytes[after - 1] if after else 0.0
        share = (unix_ms - self._times[after - 1]) / (self._times[after] - self._times[after - 1])
        return self._bytes[after - 1] + share * (self._bytes[after] - self._bytes[after - 1])


def _windows(threads: Sequence[Sequence[LogEntry]], interval_s: float) -> Iterator[list[LogEntry]]:
    """The log entries of the threads for the same interval; their starts lie within a quarter of one."""
    window: list[LogEntry] = []
    for entry in sorted(entry for entries in threads for entry in entries):
        if window and entry.unix_ms - window[0].unix_ms > interval_s * 250:
            yield window
            window = []
        window.append(entry)
    if window:
        yield window


def require_whole_lines(log: str) -> None:
    """Raise ToolError where a log of fio's breaks off: the number that it ends with may be the half of one."""
    if log and not log.endswith("\n"):
        raise ToolError(f"fio's log breaks off after {log[-40:]!r}: did the disk fill up?")


def _rows(text: str) -> Iterator[list[int]]:
    require_whole_lines(text)
    for line in text.splitlines():
        try:
            row = [int(field) for field in line.split(",")]
        except ValueError:
            row = []
        if len(row) < 3:
            raise ToolError(f"fio's log holds {line[:80]!r}, which is not numbers with commas: did the disk fill up?")
        yield row
