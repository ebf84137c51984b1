"""Recordings of blktrace's, made here record by record, come through the real `blkparse` as requests."""

from __future__ import annotations

import gzip
import shutil
import struct
from pathlib import Path

import polars
import pytest
import zstandard

from rackloop.errors import BadInput, ToolError
from rackloop_traces import Op, open_trace

pytestmark = pytest.mark.skipif(shutil.which("blkparse") is None, reason="blkparse is not installed")

# struct blk_io_trace of linux/blktrace_api.h, version 7; the category of an action stands in its upper half.
MAGIC = 0x65617400 | 7
QUEUE, ISSUE, COMPLETE = (1 | 1 << 16 + 4, 7 | 1 << 16 + 6, 8 | 1 << 16 + 7)
READ, WRITE, FLUSH, SYNC, DISCARD = (1 << 16 + bit for bit in (0, 1, 2, 3, 13))
SDB = 8 << 20 | 16


def record(nth: int, time_ns: int, sector: int, size: int, action: int, *, cpu: int = 0, order: str = "<") -> bytes:
    return struct.pack(f"{order}IIQQIIIIIHH", MAGIC, nth, time_ns, sector, size, action, 1, SDB, cpu, 0, 0)


RECORDS = (
    (1000, 100, 4096, QUEUE | READ),
    (1500, 100, 4096, ISSUE | READ),
    (2000, 200, 8192, QUEUE | WRITE | SYNC),
    (2500, 100, 4096, COMPLETE | READ),
    (3000, 300, 65536, QUEUE | DISCARD),
    (2_000_001_000, 0, 0, QUEUE | FLUSH | WRITE),
)
REQUESTS = [
    (0, Op.READ, 51200, 4096, "8:16", None),
    (1000, Op.WRITE, 102400, 8192, "8:16", None),
    (2000, Op.TRIM, 153600, 65536, "8:16", None),
    (2_000_000_000, Op.FLUSH, 0, 0, "8:16", None),
]


def recording(order: str = "<") -> bytes:
    return b"".join(record(nth, *fields, order=order) for nth, fields in enumerate(RECORDS, 1))


def requests(path: Path) -> list[tuple[object, ...]]:
    trace = open_trace(path)
    assert trace.format.name == "blktrace"
    found = polars.concat(list(trace.batches())).rows()
    assert (trace.malformed.count, trace.doubts) == (0, ())
    return found


@pytest.mark.parametrize("encode", [bytes, gzip.compress, zstandard.compress])
def test_what_was_queued_is_read(encode: type[bytes], tmp_path: Path) -> None:
    path = tmp_path / "recording"
    path.write_bytes(encode(recording()))
    assert requests(path) == REQUESTS


def test_the_other_byte_order_is_read(tmp_path: Path) -> None:
    path = tmp_path / "recording"
    path.write_bytes(recording(">"))
    assert requests(path) == REQUESTS


def test_the_files_of_all_cpus_are_one_trace(tmp_path: Path) -> None:
    for cpu in (0, 1):
        mine = [record(nth, *fields, cpu=cpu) for nth, fields in enumerate(RECORDS[cpu::2], 1)]
        (tmp_path / f"sdb.blktrace.{cpu}").write_bytes(b"".join(mine))
    assert requests(tmp_path / "sdb.blktrace.0") == requests(tmp_path / "sdb.blktrace.1") == REQUESTS


def test_a_long_recording_is_streamed(tmp_path: Path) -> None:
    path = tmp_path / "recording.gz"
    count = 200_000
    path.write_bytes(
        gzip.compress(b"".join(record(nth, 1000 * nth, 8 * nth, 4096, QUEUE | READ) for nth in range(1, count + 1)), 1)
    )
    trace = open_trace(path)
    assert sum(frame.height for frame in trace.batches()) == count


def test_a_compressed_recording_cut_short_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "recording.gz"
    path.write_bytes(gzip.compress(recording() + bytes(range(256)) * 100)[:-9])
    with pytest.raises(BadInput, match="is cut short"):
        list(open_trace(path).batches())


def test_a_recording_of_nothing_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "recording"
    path.write_bytes(record(1, 1000, 100, 4096, COMPLETE | READ))
    with pytest.raises(BadInput, match="no request"):
        open_trace(path)


def test_without_blkparse_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "recording"
    path.write_bytes(recording())
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolError, match="install the package blktrace"):
        open_trace(path)
