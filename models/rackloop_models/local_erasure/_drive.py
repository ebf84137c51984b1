"""Sectors of a drive: large requests, and finding the sectors that fail in one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import cast

import numpy as np

from rackloop.abilities.blocks import Blocks, FailFastBlocks, IoFailed, PartwiseBlocks
from rackloop_models.erasure import Bytes
from rackloop_models.local_erasure._layout import SECTOR_BYTES
from rackloop_models.local_erasure._read_ahead import Found, ReadAhead
from rackloop_models.local_erasure._statistics import Statistics
from rackloop_models.local_erasure._write_behind import WriteBehind

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

    def __init__(
        self,
        blocks: Blocks | FailFastBlocks,
        statistics: Statistics,
        *,
        in_flight_bytes: int = 0,
        ahead_retries: bool = False,
    ) -> None:
        self._blocks = blocks
        self._ahead_retries = ahead_retries
        self._behind = WriteBehind(self._put, in_flight_bytes) if in_flight_bytes else None
        self.ahead = ReadAhead(self._read_piece, in_flight_bytes // SECTOR_BYTES, count=self._count)
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

    @property
    def writes_behind(self) -> bool:
        """Whether who writes goes on before the drive has it."""
        return self._behind is not None

    def read(self, first: int, count: int, *, retry: bool) -> bytes | None:
        """Sectors in one request, or None where one of them cannot be read."""
        held = self.ahead.take(first, count)
        if held is not None and not held.bad:
            return held.rows.tobytes()
        if held is not None and not retry:
            self._watchful_sectors = _WATCHFUL_SECTORS
            return None
        read = self._blocks.read if retry else self._read_once
        self.statistics.read_requests += 1
        self.statistics.read_sectors += count
        try:
            with self._asking(first, count):
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
        held = self.ahead.take(first, len(rows))
        if held is not None and not (retry and held.bad) and len(held.bad) < len(rows):
            rows[:] = held.rows
            return self._looked_at(rows, first, _runs_of_parts(sorted(held.bad)), spare)
        if self._partwise is not None and not retry and (fails or self.is_watchful):
            found = self._parts(self._partwise, rows, first, _PART_SECTORS)
            return self._looked_at(
                rows, first, [range(part, min(part + _PART_SECTORS, len(rows))) for part in found], spare
            )
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

    def _looked_at(self, rows: Bytes, first: int, failed_parts: Sequence[range], spare: int) -> list[int]:
        """The rows that cannot be read, of parts that failed."""
        given_up = sum(map(len, failed_parts))
        failed: list[int] = []
        for shared in failed_parts:
            # A look costs the platter's way round to it: no more of them than it takes.
            if given_up <= spare or self._partwise is None:
                failed += shared
                continue
            alone = self._parts(self._partwise, rows[shared.start : shared.stop], first + shared.start, 1)
            given_up -= len(shared) - len(alone)
            failed += [shared.start + row for row in alone]
        self._watchful_sectors = _WATCHFUL_SECTORS if failed else max(0, self._watchful_sectors - len(rows))
        return failed

    def _parts(self, blocks: PartwiseBlocks, rows: Bytes, first: int, sectors: int) -> list[int]:
        """The first rows of the parts that fail."""
        self.statistics.read_requests += -(-len(rows) // sectors)
        self.statistics.read_sectors += len(rows)
        with self._asking(first, len(rows)):
            parts = blocks.read_parts_failing_fast(first * SECTOR_BYTES, rows.data.cast("B"), sectors * SECTOR_BYTES)
        return [part * sectors for part in parts]

    def write(self, first: int, rows: Bytes) -> None:
        """Write the rows of a contiguous array to sectors that follow each other."""
        for at in range(0, len(rows), _REQUEST_SECTORS):
            part = rows[at : at + _REQUEST_SECTORS]
            self.statistics.write_requests += 1
            self.statistics.written_sectors += len(part)
            content = part.data.cast("B")
            self.ahead.forget(first + at, len(part))
            if self._behind is None:
                self._put((first + at) * SECTOR_BYTES, content)
            else:
                self._behind.write((first + at) * SECTOR_BYTES, content)

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
            with self._asking(sector, 1):
                return self._blocks.read(sector * SECTOR_BYTES, SECTOR_BYTES)
        except IoFailed as failure:
            if not failure.is_unreadable:
                raise
            return None

    def write_metadata(self, first: int, sectors: Sequence[bytes]) -> None:
        """Write metadata sectors that follow each other, once all data that were to be written before are."""
        self._settle()
        for at in range(0, len(sectors), _REQUEST_SECTORS):
            self.statistics.metadata_requests += 1
            self._put((first + at) * SECTOR_BYTES, memoryview(b"".join(sectors[at : at + _REQUEST_SECTORS])))

    def flush(self) -> None:
        """Return when what was written stays."""
        self._settle()
        self._blocks.flush()

    def stop(self) -> None:
        """Read nothing ahead any more, until more of a stream is asked for; what is to be written is written."""
        self.ahead.clear()
        self._settle()

    def end(self) -> None:
        """Read and write nothing any more but what is asked for, with no threads; what waits to be written, does not.

        For a drive that is another's, or is done with.
        """
        self.ahead.end()
        behind, self._behind = self._behind, None
        if behind is not None:
            behind.discard()
            behind.end()

    def _settle(self) -> None:
        if self._behind is not None:
            self._behind.drain()

    @contextmanager
    def _asking(self, first: int, count: int) -> Iterator[None]:
        """While sectors are read for a caller: what is to be written to them is, and before what is not."""
        if self._behind is not None:
            self._behind.settle(first * SECTOR_BYTES, count * SECTOR_BYTES)
        with self.ahead.giving_way():
            yield

    def _read_piece(self, first: int, count: int) -> Found | None:
        """Read sectors ahead: in one go, or in parts where sectors failed lately or one does now."""
        offset, length = first * SECTOR_BYTES, count * SECTOR_BYTES
        if self._behind is not None:
            self._behind.settle(offset, length)
        partwise = None if self._ahead_retries else self._partwise
        if partwise is None or not self.is_watchful:
            try:
                content = (self._blocks.read if self._ahead_retries else self._read_once)(offset, length)
                return Found(np.frombuffer(content, np.uint8).reshape(-1, SECTOR_BYTES), requests=1)
            except IoFailed as failure:
                if partwise is None or not failure.is_unreadable:
                    return None
        rows = np.empty((count, SECTOR_BYTES), np.uint8)
        parts = partwise.read_parts_failing_fast(offset, rows.data.cast("B"), _PART_SECTORS * SECTOR_BYTES)
        if parts:
            self._watchful_sectors = _WATCHFUL_SECTORS
        bad = (row for part in parts for row in range(part * _PART_SECTORS, min((part + 1) * _PART_SECTORS, count)))
        return Found(rows, frozenset(bad), -(-count // _PART_SECTORS))

    def _count(self, found: Found) -> None:
        self.statistics.read_requests += found.requests
        self.statistics.read_sectors += len(found.rows)
        self.statistics.ahead_sectors += len(found.rows)

    def _put(self, offset: int, content: memoryview) -> None:
        # Blocks write any buffer of bytes; only their annotation is narrower.
        self._blocks.write(offset, cast("bytes", content))


def _runs_of_parts(rows: Sequence[int]) -> list[range]:
    """Rows that follow each other, as ranges no longer than a part."""
    found: list[range] = []
    for row in rows:
        if found and found[-1].stop == row and len(found[-1]) < _PART_SECTORS:
            found[-1] = range(found[-1].start, row + 1)
        else:
            found.append(range(row, row + 1))
    return found
