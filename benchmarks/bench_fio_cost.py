"""What a fio run through the harness costs over the same fio alone.

``python benchmarks/bench_fio_cost.py [REPEATS]`` alternates the two on one nbdkit, so that whatever else the machine
does falls on both, and prints the median of each, their ratio and the median of the paired differences. Exits 1 when
that is more than 0.2 s.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from rackloop.clock import Deadline, RealClock
from rackloop_drivers.block import NbdExport
from rackloop_drivers.host import LocalExecutor
from rackloop_drivers.workload import Fio, FioJob, FioRun, ReadWrite

CLOCK = RealClock()
RUNTIME_S = 0.5
LIMIT_S = 0.2


def soon() -> Deadline:
    return Deadline.after(CLOCK, 60)


def main(repeats: int) -> int:
    with tempfile.TemporaryDirectory(prefix="fio-", dir="/tmp") as folder, LocalExecutor(CLOCK) as executor:
        socket = Path(folder) / "nbd.sock"
        executor.start(("nbdkit", "--foreground", "--exit-with-parent", "--unix", str(socket), "memory", "64M"))
        while not socket.exists():
            CLOCK.sleep_until_ns(CLOCK.now_ns() + 10_000_000)
        export = NbdExport(socket, "", 64 << 20)
        job = FioJob(name="read", device=export, rw=ReadWrite.RANDREAD, iodepth=8, runtime_s=RUNTIME_S)
        run = FioRun(jobs=(job,), seed=1, interval_s=0.1)
        fio = Fio(executor, CLOCK)
        job_file = executor.put_text("alone.fio", run.job_file(f"{folder}/alone"))

        def alone() -> None:
            argv = ("fio", "--readonly", "--output-format=json+", f"--output={folder}/alone.json", job_file)
            assert executor.run(argv, soon()).status == 0

        def harness() -> None:
            assert fio.run(run, soon()).total_err == 0

        def timed(what: Callable[[], None]) -> float:
            began_ns = CLOCK.now_ns()
            what()
            return (CLOCK.now_ns() - began_ns) / 1e9

        timed(harness)
        pairs = [(timed(alone), timed(harness)) for _ in range(repeats)]
    alone_s, harness_s = (statistics.median(column) for column in zip(*pairs, strict=True))
    cost_s = statistics.median(through - by_itself for by_itself, through in pairs)
    print(f"{repeats} pairs: fio alone {alone_s:.3f} s, through the harness {harness_s:.3f} s")
    print(f"ratio {harness_s / alone_s:.3f}, cost {cost_s * 1000:.1f} ms (at most {LIMIT_S * 1000:g} ms)")
    return int(cost_s > LIMIT_S)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 15))
