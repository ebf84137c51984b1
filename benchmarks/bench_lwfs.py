"""What LWFS costs per I/O beside a drive that is attached directly, in one run and in turns.

``python benchmarks/bench_lwfs.py`` serves one simulated drive without a timing model, and appends and reads records of
one block through a storage server, against raw writes (with a flush) and reads of one block through the same
connection. Then it moves the drive between two servers, and times how long a server takes to be able to serve it.
Exits 1 when a median of the rounds' ratios is above 3: a token is checked and a checksum made, and nothing more.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks._bench import paired  # noqa: E402 - the checkout is no package
from rackloop.abilities.blocks import BLOCK_BYTES  # noqa: E402
from rackloop.clock import RealClock  # noqa: E402
from rackloop_drivers.block import NbdExport  # noqa: E402
from rackloop_drivers.block.nbd_session import NbdSession  # noqa: E402
from rackloop_models.lwfs import HEADER_BYTES, KEY_BYTES, LwfsClient, MetadataService, StorageServer  # noqa: E402
from tests.rackd_process import running_rackd  # noqa: E402
from tests.writable_drive import minted  # noqa: E402

CLOCK = RealClock()
DRIVE_BYTES = 64 << 20
ROUNDS = 15
IOS = 300
MOVES = 300
LIMIT = 3.0
PAYLOAD = b"x" * (BLOCK_BYTES - HEADER_BYTES)


class Attached:
    """The rack-local service of a rack with one drive and two servers."""

    def __init__(self) -> None:
        self.server = "s1"

    def server_of(self, _drive_id: str) -> str:
        return self.server


def wall_s() -> float:
    return CLOCK.wall().timestamp()


def us_each(request: Callable[[], object]) -> float:
    """The mean time of a request, in microseconds."""
    began_ns = CLOCK.now_ns()
    for _ in range(IOS):
        request()
    return (CLOCK.now_ns() - began_ns) / IOS / 1e3


def main() -> int:
    results: dict[str, object] = {}
    with tempfile.TemporaryDirectory(prefix="lwfs-", dir="/tmp") as folder, running_rackd(Path(folder)) as rackd:
        export = NbdExport(rackd.nbd, "drive.d01", DRIVE_BYTES)
        with minted(export) as drive, NbdSession(drive, CLOCK) as session:
            metadata = MetadataService(lambda: bytes(KEY_BYTES))
            metadata.format_drive("rack", "d01", session)
            servers = {name: StorageServer(name, wall_s) for name in ("s1", "s2")}
            servers["s1"].attach("d01", session)
            metadata.create("file", "d01", DRIVE_BYTES // BLOCK_BYTES - 2)
            attached = Attached()
            file = LwfsClient(metadata, attached, servers, wall_s, keeps_servers=True).open("file")
            last = DRIVE_BYTES - BLOCK_BYTES
            address = file.append(PAYLOAD)

            def write_raw() -> None:
                session.write(last, bytes(BLOCK_BYTES))
                session.flush()

            ways: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
                "append": (lambda: file.append(PAYLOAD), write_raw),
                "read": (lambda: file.read(address), lambda: session.read(last, BLOCK_BYTES)),
            }
            for name, (through_lwfs, raw) in ways.items():
                both = paired(lambda one=through_lwfs: us_each(one), lambda one=raw: us_each(one), ROUNDS)  # type: ignore[misc]
                results[f"{name}_us_lwfs_over_direct"] = both.as_dict()
            taken_us = []
            for number in range(MOVES):
                source, target = ("s1", "s2") if number % 2 == 0 else ("s2", "s1")
                servers[source].detach("d01")
                began_ns = CLOCK.now_ns()
                servers[target].attach("d01", session)
                taken_us.append((CLOCK.now_ns() - began_ns) / 1e3)
            results["attach_us_p50"] = median(taken_us)
    print(json.dumps(results, indent=2))
    ratios = [result["ratio"] for result in results.values() if isinstance(result, dict)]
    return int(max(ratios) > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
