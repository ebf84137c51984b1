"""What one client of rackd that erases gigabytes, or one that reads no answers, costs the others and the machine.

Run with ``python benchmarks/bench_rackd_stall.py [--json FILE] [--rounds N] [--runtime SECONDS]``. Needs a release
build of native/. The latency of 4 KiB random reads, one at a time, of a drive beside a client of another drive, and
alone, in turns within one run; a ratio of 1 is a client that nobody notices.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from rackloop.clock import Deadline, RealClock  # noqa: E402 - the checkout is no package
from rackloop.lab import load_profile  # noqa: E402
from rackloop.seed import stream  # noqa: E402
from tests.nbd_wire import NO_HOLE, READ, TRIM, WRITE_ZEROES, NbdWire  # noqa: E402
from tests.rackd_process import RunningRackd, drive, running_rackd, small_rack  # noqa: E402

SIZE = 4 << 30
LONGEST = (4 << 30) - 4096
CLOCK = RealClock()
LOADS = {
    "write-zeroes of 1 GiB, no hole": (WRITE_ZEROES, 1 << 30, NO_HOLE),
    "trims of 4 GiB": (TRIM, LONGEST, 0),
}
# The documented room of a client, and what rackd takes by itself.
MOST_BYTES = (256 << 20) + (64 << 20)


def latencies_ns(rackd: RunningRackd, runtime_s: float, seed: int) -> list[int]:
    """Random 4 KiB reads of the second drive, one after the other."""
    places = stream(seed, "stall")
    found = []
    with NbdWire(rackd.nbd, "drive.d02") as wire:
        until = Deadline.after(CLOCK, runtime_s)
        while not until.is_over():
            offset = places.randrange(SIZE // 4096) * 4096
            began_ns = CLOCK.now_ns()
            wire.read(offset, 4096)
            found.append(CLOCK.now_ns() - began_ns)
    return sorted(found)


def beside(rackd: RunningRackd, load: tuple[int, int, int], runtime_s: float, seed: int) -> list[int]:
    """The same beside a client that keeps the first drive at ``load``."""
    command, length, flags = load
    over = threading.Event()

    def keep_busy() -> None:
        with NbdWire(rackd.nbd, "drive.d01") as wire:
            while not over.is_set():
                wire.plain(command, 0, length, flags)

    client = threading.Thread(target=keep_busy)
    client.start()
    found = latencies_ns(rackd, runtime_s, seed)
    over.set()
    client.join()
    return found


def compared(rackd: RunningRackd, load: tuple[int, int, int], runtime_s: float, seed: int) -> dict[str, float]:
    """One round."""
    alone = latencies_ns(rackd, runtime_s, seed)
    busy = beside(rackd, load, runtime_s, seed)
    row: dict[str, float] = {}
    for key, quantile in (("p50", 0.5), ("p99", 0.99), ("worst", 1.0)):
        row |= {f"busy_{key}_ms": quantile_ms(busy, quantile), f"alone_{key}_ms": quantile_ms(alone, quantile)}
    return row | {"ratio_p99": row["busy_p99_ms"] / row["alone_p99_ms"]}


def memory_bytes(rackd: RunningRackd, runtime_s: float) -> int:
    """The most memory that rackd has while a client asks for 1 MiB reads and takes no answer."""
    with NbdWire(rackd.nbd, "drive.d01") as wire:
        wire.socket.settimeout(runtime_s / 10)
        until = Deadline.after(CLOCK, runtime_s)
        while not until.is_over():
            # A socket that takes nothing more is what is wanted.
            with suppress(TimeoutError):
                wire.send(READ, 0, 1 << 20)
        status = Path(f"/proc/{rackd.process.pid}/status").read_text()
        with suppress(OSError):
            wire.socket.shutdown(socket.SHUT_RDWR)
    return int(status.partition("VmHWM:")[2].split()[0]) << 10


def quantile_ms(found: list[int], quantile: float) -> float:
    return found[int(quantile * (len(found) - 1))] / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--runtime", type=float, default=2.0, metavar="SECONDS")
    options = parser.parse_args()
    model: dict[str, Any] = {"timing": dict(load_profile("nvme-ssd").timing), "bytes": SIZE}
    config = small_rack() | {"drives": [drive(1, **model), drive(2, **model)]}
    figures: dict[str, dict[str, float]] = {}
    print(f"{'':32} {'p50':>8} {'alone':>8} {'p99':>8} {'alone':>8} {'worst':>8} {'alone':>8} ms   ratio of p99")
    with tempfile.TemporaryDirectory(prefix="bench", dir="/tmp") as name:
        for label, load in LOADS.items():
            with running_rackd(Path(name), config) as rackd:
                rows = [compared(rackd, load, options.runtime, seed) for seed in range(options.rounds)]
            row = {key: statistics.median(one[key] for one in rows) for key in rows[0]}
            figures[label] = row
            columns = " ".join(f"{row[key]:8.2f}" for key in row if key.endswith("_ms"))
            print(f"{label:32} {columns}      {row['ratio_p99']:.2f}")
        with running_rackd(Path(name), config) as rackd:
            most = memory_bytes(rackd, 5 * options.runtime)
    figures["a client that reads no answers"] = {"bytes": most}
    print(f"{'a client that reads no answers':32} {most / 2**20:8.0f} MiB at most, load {os.getloadavg()[0]:.1f}")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")
    if most > MOST_BYTES:
        sys.exit(f"rackd took {most >> 20} MiB for a client that reads no answers; {MOST_BYTES >> 20} MiB are promised")


if __name__ == "__main__":
    main()
