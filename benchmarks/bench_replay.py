"""How faithful the timing of a replay through real fio is, on an ideal drive that stamps every arrival.

``python benchmarks/bench_replay.py [--own-only]`` starts a rackd with an ideal drive and replays the busiest stretch
of 60 s at its own rate, then the whole trace 100 times as fast: the real trace where it lies beside the checkout, else
the shipped demo trace. Prints both latenesses; exits 1 when p99 at the trace's own rate is more than 1 ms.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import polars as pl

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from rackloop_drivers.block import NbdExport  # noqa: E402
from rackloop_drivers.host import LocalExecutor  # noqa: E402
from rackloop_drivers.workload import Fio, FioReplay, Planned, RunningReplay, Stretch, plan_requests  # noqa: E402
from rackloop_fixtures.rack.replays import at_the_drive  # noqa: E402
from rackloop_traces import Trace, open_trace  # noqa: E402
from rackloop_traces.lateness import Lateness  # noqa: E402
from tests.deadlines import CLOCK, soon  # noqa: E402
from tests.rackd_process import drive, running_rackd, small_rack  # noqa: E402
from tests.writable_drive import minted  # noqa: E402

SIZE = 1 << 30
STRETCH_S = 60.0
LIMIT_S = 1e-3
REAL_TRACE = ROOT.parent / "shared" / "data" / "cloudphysics_vm.csv.gz"


def busiest(trace: Trace) -> float:
    """The second at which the 60 s with the most requests begin, among those that begin with a minute."""
    minutes = pl.concat(batch.select(minute=pl.col("t_ns") // round(STRETCH_S * 1e9)) for batch in trace.batches())
    return float(minutes["minute"].value_counts(sort=True)["minute"][0]) * STRETCH_S


def replayed(planned: Planned) -> tuple[Lateness, str]:
    """The lateness at the drive, and what fio's preparation said of itself."""
    rack = small_rack() | {"drives": [drive(1, bytes=SIZE)]}
    with (
        tempfile.TemporaryDirectory(prefix="replay-", dir="/tmp") as folder,
        running_rackd(Path(folder), rack) as rackd,
        LocalExecutor(CLOCK) as executor,
        minted(NbdExport(rackd.nbd, "drive.d01", SIZE)) as writable,
    ):
        control = rackd.connect()
        control.record_io("d01", soon(60))
        with RunningReplay(Fio(executor, CLOCK), FioReplay(device=writable, planned=planned), soon(60)) as running:
            result = running.wait(soon(planned.span_s + 120))
        recorded = control.recorded_io("d01", soon(60))
        control.close()
    assert not recorded.lost
    assert not result.job.total_err
    priority = "real-time priority" if running.is_real_time else "ordinary priority"
    return at_the_drive(planned, recorded, running.began_ns), priority


def shown(what: str, planned: Planned) -> float:
    """Replay, print the lateness, and return its p99."""
    lateness, priority = replayed(planned)
    late_s = lateness.late_s
    p50, p99, p999 = (late_s.quantile(q) * 1e6 for q in (0.5, 0.99, 0.999))
    print(f"{what}: {lateness.due} requests in {planned.span_s:.1f} s, fio at {priority}")
    print(f"  lateness p50 {p50:.0f} us, p99 {p99:.0f} us, p99.9 {p999:.0f} us, longest {late_s.maximum * 1e6:.0f} us")
    print(f"  drift {lateness.drift * 1e6:.1f} us a second, {lateness.missing} missing; {'; '.join(planned.remarks())}")
    return late_s.quantile(0.99)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--own-only", action="store_true", help="leave out the replay at 100 times the rate")
    arguments = parser.parse_args()
    path = REAL_TRACE if REAL_TRACE.exists() else ROOT / "traces" / "demo.csv.gz"
    trace = open_trace(path)
    print(f"{path.name}: {trace.format.title}")
    own = Stretch(from_s=busiest(trace), duration_s=STRETCH_S, fold=True)
    p99_s = shown("its own rate", plan_requests(trace.batches(), own, region_bytes=SIZE))
    if not arguments.own_only:
        shown("100x", plan_requests(trace.batches(), Stretch(speed=100, fold=True), region_bytes=SIZE))
    return int(p99_s > LIMIT_S)


if __name__ == "__main__":
    sys.exit(main())
