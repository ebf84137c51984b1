"""How fast `rackloop trace convert` is, and whether its memory depends on the length of a trace.

``python benchmarks/bench_trace_convert.py [LINES]`` writes traces of that many requests (50 million by default) and of
a tenth to a temporary folder, which needs some 5 GB. Exits 1 where a plain trace is converted at less than 2 million
requests/s, or the longer one needs more memory than the shorter one by more than a tenth.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import polars

from rackloop.clock import RealClock
from rackloop_traces import Clock, Origin, columns, write_trace

LEAST_PER_S = 2_000_000
MOST_GROWTH = 1.1
LINES = 50_000_000
BATCH = 1_000_000
ORIGIN = Origin(1_577_808_000_000_000_000, Clock.UNIX)
# What is read and what is written; the first pair also at full length.
PAIRS = (
    ("alibaba.csv", "iolog"),
    ("msr.csv", "alibaba.csv"),
    ("systor17.csv", "tencent.csv"),
    ("spc", "cloudphysics.csv"),
    ("iolog", "spc"),
    ("iolog2", "msr.csv"),
)
COMPRESSED = (("alibaba.csv.gz", "iolog.gz"), ("alibaba.csv.zst", "iolog.zst"))


def made(lines: int) -> Iterator[polars.DataFrame]:
    """Requests of one volume: arrivals 20 us apart in the mean, 4 to 64 KiB, two thirds reads, on 1 TiB."""
    chance = np.random.default_rng(1)
    t_ns = 0
    for first in range(0, lines, BATCH):
        size = min(BATCH, lines - first)
        arrivals = t_ns + np.cumsum(chance.integers(0, 40, size)) * 1000
        t_ns = int(arrivals[-1])
        yield polars.DataFrame(
            {
                "t_ns": arrivals,
                "op": chance.integers(0, 3, size) // 2,
                "offset_bytes": chance.integers(0, 1 << 28, size) * 4096,
                "size_bytes": chance.integers(1, 17, size) * 4096,
                "volume": ["7"] * size,
                "response_ns": np.full(size, 100_000),
            },
            schema=columns(),
        )


def make(trace: Path, lines: int) -> None:
    write_trace(made(lines), trace, origin=ORIGIN)


def converted(source: Path, target: Path) -> tuple[float, float, float]:
    """Seconds, seconds of processor and peak resident MiB of one conversion, interpreter included."""
    clock = RealClock()
    began_ns = clock.now_ns()
    command = (sys.executable, "-m", "rackloop_cli.main", "trace", "convert", str(source), str(target))
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, command
    return (clock.now_ns() - began_ns) / 1e9, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main(lines: int) -> int:
    missed = False
    with tempfile.TemporaryDirectory(prefix="traces-") as folder:
        few = lines // 10

        def measured(source: str, target: str, count: int) -> tuple[float, float]:
            trace, out = Path(folder, f"in.{source}"), Path(folder, f"out.{target}")
            # In a process of its own, because one that is started begins with the peak of the one that starts it.
            making = get_context("spawn").Process(target=make, args=(trace, count))
            making.start()
            making.join()
            assert making.exitcode == 0
            took_s, busy_s, peak_mib = converted(trace, out)
            trace.unlink()
            out.unlink()
            speed = f"{count / took_s / 1e6:.2f} M/s, {count / busy_s / 1e6:.2f} M per second of one core"
            print(f"{source:>16} -> {target:<18} {count:>11,} requests {speed}, {peak_mib:.0f} MiB", flush=True)
            return count / took_s, peak_mib

        for source, target in PAIRS:
            per_s, peak_mib = measured(source, target, few)
            missed |= per_s < LEAST_PER_S
            if (source, target) == PAIRS[0]:
                long_per_s, long_peak_mib = measured(source, target, lines)
                missed |= long_per_s < LEAST_PER_S or long_peak_mib > peak_mib * MOST_GROWTH
        for source, target in COMPRESSED:
            measured(source, target, few)
    print(
        f"at least {LEAST_PER_S / 1e6:g} M/s of what is not compressed; memory grows by {MOST_GROWTH - 1:.0%} at most"
    )
    return int(missed)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1].replace("_", "")) if len(sys.argv) > 1 else LINES))
