"""What a local erasure-coded store costs beside raw I/O on the same file, in turns, and how long a scrub takes.

``python benchmarks/bench_local_erasure.py [GIB]`` keeps a drive of 10 GiB, or of as many as are said, in a file in the
page cache, formatted with the (1014, 9) and then with the (250, 5) code. It writes and reads whole groups, and in
requests of 1 MiB, against raw requests of 1 MiB to the same file; then it fills the drive, makes 1,000 of its sectors
fail at the first read, and scrubs it. Exits 1 when the store takes over twice the time of raw I/O for whole groups, or
a sector is not repaired.
"""

from __future__ import annotations

import errno
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks._bench import paired  # noqa: E402 - the checkout is no package
from rackloop.abilities.blocks import BLOCK_BYTES, IoFailed  # noqa: E402
from rackloop.clock import RealClock  # noqa: E402
from rackloop.seed import stream  # noqa: E402
from rackloop_drivers.block.file_blocks import FileBlocks  # noqa: E402
from rackloop_models.local_erasure import Layout, LocalStore, StoredFile, format_drive  # noqa: E402

CLOCK = RealClock()
LIMIT = 2.0
ROUNDS = 7
REQUEST = 1 << 20
MEASURED = 256 << 20
BAD_SECTORS = 1_000
PROMISED = ("write_group_over_raw", "read_group_over_raw")


class FailingSectors:
    """A file some of whose sectors fail at their first read, until they are written."""

    def __init__(self, blocks: FileBlocks) -> None:
        self._blocks = blocks
        self.bad: set[int] = set()
        self.size_bytes = blocks.size_bytes
        self.read, self.flush = blocks.read, blocks.flush

    def read_failing_fast(self, offset: int, length: int) -> bytes:
        sectors = range(offset // BLOCK_BYTES, (offset + length) // BLOCK_BYTES)
        if self.bad and not self.bad.isdisjoint(sectors):
            raise IoFailed("a sector cannot be read", errno.EIO)
        return self._blocks.read(offset, length)

    def write(self, offset: int, data: bytes) -> None:
        if self.bad:
            self.bad -= set(range(offset // BLOCK_BYTES, (offset + len(data)) // BLOCK_BYTES))
        self._blocks.write(offset, data)


def seconds(work: Callable[[], object]) -> float:
    began_ns = CLOCK.now_ns()
    work()
    return (CLOCK.now_ns() - began_ns) / 1e9


def in_requests(request: Callable[[int, int], object], length: int) -> float:
    """The time of so many bytes, in requests of ``length``, whole ones only: as seconds for MEASURED bytes."""
    count = MEASURED // length

    def all_of_them() -> None:
        for number in range(count):
            request(number * length, length)

    return seconds(all_of_them) * MEASURED / (count * length)


def beside_raw(store: LocalStore, drive: FailingSectors, file: StoredFile) -> dict[str, Any]:
    """Ratios of the store's times over raw ones, 1 is the same."""
    content = stream(1).randbytes(8 << 20)
    group = store.layout.k * BLOCK_BYTES
    raw_at = drive.size_bytes - MEASURED

    def write(at: int, length: int) -> None:
        file.write(at, memoryview(content)[:length])

    def anew(length: int) -> float:
        file.truncate(0)
        return in_requests(write, length) + seconds(store.flush)

    def raw_write(at: int, length: int) -> None:
        drive.write(raw_at + at, content[:length])

    def raw() -> float:
        return in_requests(raw_write, REQUEST) + seconds(drive.flush)

    found: dict[str, dict[str, Any]] = {}
    for name, length in (("group", group), ("mib", REQUEST)):
        found[f"write_{name}_over_raw"] = paired(lambda size=length: anew(size), raw, ROUNDS).as_dict()  # type: ignore[misc]
        found[f"read_{name}_over_raw"] = paired(
            lambda size=length: in_requests(file.read, size),  # type: ignore[misc]
            lambda: in_requests(lambda at, size: drive.read(raw_at + at, size), REQUEST),
            ROUNDS,
        ).as_dict()
    return found


def scrub(store: LocalStore, drive: FailingSectors, file: StoredFile) -> dict[str, Any]:
    """Fill the drive, spoil sectors of it, and scrub it."""
    content = stream(2).randbytes(store.layout.k * BLOCK_BYTES)
    groups = store.free_bytes() // ((store.layout.k + store.layout.m) * BLOCK_BYTES) * 99 // 100

    def fill() -> None:
        for group in range(groups):
            file.write(group * len(content), content)

    filled_s = seconds(fill)
    store.flush()
    chance = stream(3)
    drive.bad = {
        chance.choice(store.places(file.name, group)) // BLOCK_BYTES
        for group in chance.choices(range(groups), k=BAD_SECTORS)
    }
    bad = len(drive.bad)
    reports = []
    spent_s = seconds(lambda: reports.append(store.scrub()))
    (report,) = reports
    return {
        "bytes": groups * (store.layout.k + store.layout.m) * BLOCK_BYTES,
        "filled_s": filled_s,
        "scrub_s": spent_s,
        "bad_sectors": bad,
        "repaired_sectors": report.repaired_sectors,
        "is_clean": report.is_clean and not drive.bad,
    }


def main(size_bytes: int) -> int:
    results: dict[str, dict[str, dict[str, Any]]] = {}
    with tempfile.TemporaryDirectory(prefix="local-erasure-", dir="/tmp") as folder:
        for ph, codeword in ((1e-3, 1023), (1e-3, 255)):
            layout = Layout.for_failure_probability(ph, codeword)
            path = Path(folder) / "drive"
            with FileBlocks(path, size_bytes) as blocks:
                drive = FailingSectors(blocks)
                format_drive(drive, layout, files=64)
                with LocalStore(drive, CLOCK) as store:
                    file = store.create("file")
                    found = beside_raw(store, drive, file)
                    file.truncate(0)
                    store.flush()
                    results[f"({layout.k}, {layout.m})"] = found | {"scrub": scrub(store, drive, file)}
            path.unlink()
    print(json.dumps(results, indent=2))
    slow = any(result[name]["ratio"] > LIMIT for result in results.values() for name in PROMISED)
    return int(slow or not all(result["scrub"]["is_clean"] for result in results.values()))


if __name__ == "__main__":
    sys.exit(main((int(sys.argv[1]) if len(sys.argv) > 1 else 10) << 30))
