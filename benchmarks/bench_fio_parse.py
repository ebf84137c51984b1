"""How long the results of 1,000 fio jobs take to parse.

``python benchmarks/bench_fio_parse.py [ROUNDS]`` has one fio run 1,000 jobs of 2,000 requests each on its null engine,
with latency bins in its report, and prints the median time to make typed results of that report. Exits 1 when that is
more than 2 s.
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

from rackloop.clock import Deadline, RealClock
from rackloop_drivers.host import LocalExecutor
from rackloop_drivers.workload._fio_result import last_document, parse_jobs

CLOCK = RealClock()
JOBS = 1000
LIMIT_S = 2.0
JOB_FILE = f"""[global]
thread=1
ioengine=null
rw=randrw
size=8m
bs=4k
group_reporting=1
new_group=1
continue_on_error=all
{"".join(f"[job{number}]{chr(10)}" for number in range(JOBS))}"""


def main(rounds: int) -> int:
    with LocalExecutor(CLOCK) as executor:
        path = executor.put_text("many.fio", JOB_FILE)
        report = Path(path).with_suffix(".json")
        argv = ("fio", "--output-format=json+", f"--output={report}", path)
        assert executor.run(argv, Deadline.after(CLOCK, 300)).status == 0
        printed = report.read_text()
    took_s = []
    for _ in range(rounds):
        began_ns = CLOCK.now_ns()
        jobs = parse_jobs(last_document(printed))
        took_s.append((CLOCK.now_ns() - began_ns) / 1e9)
    assert len(jobs) == JOBS
    bins = sum(len(transfer.latency_s.values) for job in jobs for transfer in job.transfers.values())
    median_s = statistics.median(took_s)
    print(f"{JOBS} jobs, {len(printed) / 1e6:.1f} MB of JSON, {bins} latency bins")
    print(f"parsed in {median_s:.3f} s, median of {rounds} (at most {LIMIT_S:g} s)")
    return int(median_s > LIMIT_S)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 5))
