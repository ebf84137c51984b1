"""Sectors of a drive: large requests, and finding the sectors that fail in one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from rackloop.blocks import Blocks, FailFastBlocks, IoFailed, PartwiseBlocks
from rackloop_models.erasure._field import Bytes
from rackloop_models.local_erasure._layout import SECTOR_BYTES
from rackloop_models.local_erasure._statistics import Statistics

_REQUEST_SECTORS = 256
# What is read in one request need not be put together; but where one fails, all of it is read again.
_LONG_REQUEST_SECTORS = 1024
# Requests that fail cost what lies behind the failed sector in them: the platter has gone on by then. So where sectors
# fail, requests are small and many are in flight; for so many sectors, or groups of a code or two, since the last one.
_PART_SECTORS = 4
_WATCHFUL_SECTORS = 4096


class Drive:
    """A drive as sectors. ``fails_fast`` says whether it can be told not to retry, ``read_sectors`` how long reads are.

    An unreadable sector is one whose read ends in EIO, EREMOTEIO, ENODATA or EILSEQ. Another error is the lab's, a link
    that is gone for instance, and no reason to decode anything: it passes through.
    """

    def __init__(self, blocks: Blocks | FailFastBlocks, statistics: Statistics) -> None:
        self._blocks = blocks
        self._read_once = blocks.read_failing_fast if isinstance(blocks, FailFastBlocks) else blocks.read
        self.fails_fast = isinstance(blocks, FailFastBlocks)
        self._partwise = blocks if isinstance(blocks, PartwiseBlocks) else None
        self._watchful_sectors = 0
        self.read_sectors = _LONG_REQUEST_SECTORS if self._partwise is None else _REQUEST_SECTORS
        self.sectors = blocks.size_bytes // SECTOR_BYTES
        self.statistics = statistics

    @property
    def is_watchful(self) -> bool:
        """Whether sectors failed lately on a drive that says which parts do: read_into does well with these."""
        return self._watchful_sectors > 0

    def read(self, first: int, count: int, *, retry: bool) -> bytes | None:
        """Sectors in one request, or None where one of them cannot be read."""
        read = self._blocks.read if retry else self._read_once
        self.statistics.read_requests += 1
        self.statistics.read_sectors += count
        try:
            return read(first * SECTOR_BYTES, count * SECTOR_BYTES)
        except IoFailed as failure:
            if not failure.is_unreadable:
                raise
            if not retry and self._partwise is not None:
                self._watchful_sectors = _WATCHFUL_SECTORS
            return None

    def read_into(self, rows: Bytes, first: int, *, retry: bool, fails: bool = False, spare: int = 0) -> list[int]:
        """Read sectors into the rows of an array; the rows that cannot be read.

        A request that fails is halved until it is known which sectors do; one that ``fails`` is known to. Where sectors
        failed lately, requests are small instead, and up to ``spare`` sectors that share one with a failed sector are
        given up with it.
        """
        if self._partwise is not None and not retry and (fails or self.is_watchful):
            return self._read_parts(self._partwise, rows, first, spare)
        if fails and len(rows) == 1:
            return [0]
        if fails:
            half = len(rows) // 2
            later = self.read_into(rows[half:], first + half, retry=retry)
            return self.read_into(rows[:half], first, retry=retry) + [half + row for row in later]
        failed: list[int] = []
        length = self.read_sectors
        pending = [(at, min(at + length, len(rows))) for at in range(0, len(rows), length)][::-1]
        while pending:
            start, stop = pending.pop()
            content = self.read(first + start, stop - start, retry=retry)
            if content is not None:
                rows[start:stop] = np.frombuffer(content, np.uint8).reshape(-1, SECTOR_BYTES)
            elif stop - start == 1:
                failed.append(start)
            else:
                middle = (start + stop) // 2
                pending += [(middle, stop), (start, middle)]
        return failed

    def _read_parts(self, blocks: PartwiseBlocks, rows: Bytes, first: int, spare: int) -> list[int]:
        found = self._parts(blocks, rows, first, _PART_SECTORS)
        sharing = {part: range(part, min(part + _PART_SECTORS, len(rows))) for part in found}
        given_up = sum(map(len, sharing.values()))
        failed: list[int] = []
        for part, shared in sharing.items():
            # A look costs the platter's way round to it: no more of them than it takes.
            if given_up <= spare:
                failed += shared
                continue
            alone = [part + row for row in self._parts(blocks, rows[shared.start : shared.stop], first + part, 1)]
            given_up -= len(shared) - len(alone)
            failed += alone
        self._watchful_sectors = _WATCHFUL_SECTORS if failed else max(0, self._watchful_sectors - len(rows))
        return failed

    def _parts(self, blocks: PartwiseBlocks, rows: Bytes, first: int, sectors: int) -> list[int]:
        """The first rows of the parts that fail."""
        self.statistics.read_requests += -(-len(rows) // sectors)
        self.statistics.read_sectors += len(rows)
        parts = blocks.read_parts_failing_fast(first * SECTOR_BYTES, rows.data.cast("B"), sectors * SECTOR_BYTES)
        return [part * sectors for part in parts]

    def write(self, first: int, rows: Bytes) -> None:
        """Write the rows of a contiguous array to sectors that follow each other."""
        for at in range(0, len(rows), _REQUEST_SECTORS):
            part = rows[at : at + _REQUEST_SECTORS]
            self.statistics.write_requests += 1
            self.statistics.written_sectors += len(part)
            self._write(first + at, part.data.cast("B"))

    def read_metadata(self, first: int, count: int) -> list[bytes | None]:
        """Metadata sectors, None where one cannot be read at the first attempt."""
        rows = np.empty((count, SECTOR_BYTES), np.uint8)
        before = self.statistics.read_requests, self.statistics.read_sectors
        failed = set(self.read_into(rows, first, retry=False))
        self.statistics.metadata_requests += self.statistics.read_requests - before[0]
        self.statistics.read_requests, self.statistics.read_sectors = before
        return [None if row in failed else content.tobytes() for row, content in enumerate(rows)]

    def retry_metadata(self, sector: int) -> bytes | None:
        """A metadata sector, read with the drive's own retries, or None."""
        self.statistics.metadata_requests += 1
        try:
            return self._blocks.read(sector * SECTOR_BYTES, SECTOR_BYTES)
        except IoFailed as failure:
            if not failure.is_unreadable:
                raise
            return None

    def write_metadata(self, first: int, sectors: Sequence[bytes]) -> None:
        """Write metadata sectors that follow each other."""
        for at in range(0, len(sectors), _REQUEST_SECTORS):
            self.statistics.metadata_requests += 1
            self._write(first + at, memoryview(b"".join(sectors[at : at + _REQUEST_SECTORS])))

    def flush(self) -> None:
        """Return when what was written stays."""
        self._blocks.flush()

    def _write(self, first: int, content: memoryview) -> None:
        # Blocks write any buffer of bytes; only their annotation is narrower.
        self._blocks.write(first * SECTOR_BYTES, cast("bytes", content))
