"""The agreement of virtual and real time: f-Util of tenants in drivesim, and by fio through the storage switch.

    python benchmarks/tenancy/agreement.py [--scheduler gimbal ...] [--seconds N] [--json FILE]

The same drive model, filled in the same order, serves the same tenants twice: in virtual time, and behind the storage
switch as its in-process drive, whose completions come at the model's own times by the wall clock. The drive is the NVMe
profile slowed down to four dies that take 4 milliseconds for a page, about 1,000 reads a second, so that two cores can
keep up with fio and the switch. Two tenants read 4 KiB at random and two 64 KiB.

f-Util is a tenant's bandwidth over an equal share of what it has alone; a run for each kind alone comes first. They
agree where no tenant differs by more than 5 %. Where the machine did not keep up in one of the runs, the answer is
unknown and there is no figure: completions were late by more than 5 % of the mean latency, or for more than 5 % of the
time work waited for a core (the load witness of the harness). The exit status is 0 where they agree, 1 where they
differ, and 3 where it is not known. Needs fio and a release build of native/.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.bench_rackd import program  # noqa: E402 - the checkout is no package
from benchmarks.tenancy._drivesim import FILL, run, timing  # noqa: E402
from benchmarks.tenancy._figure import Figure  # noqa: E402
from rackloop.clock import RealClock  # noqa: E402
from rackloop.errors import EXIT_LAB_FAILED, ToolError  # noqa: E402
from rackloop.measurement import Cause, Verdict, exit_code, worst  # noqa: E402
from rackloop_fixtures.session.load_witness import LoadWitness  # noqa: E402
from rackloop_oracles.fairness import TOLERANCE, Agreement, Lateness, RealRun, agreement, f_util  # noqa: E402
from tests.storageswitch_process import running_switch  # noqa: E402

SIZE = 256 << 20
SLOWED = {"channels": 2, "dies_per_channel": 2, "read_us": 4000, "write_buffer_kib": 1024}
REST: Mapping[str, Any] = {"kind": "idle", "name": "rest", "seconds": 10.0}
WARM_UP_S = 1.0
SCHEDULERS: Mapping[str, Mapping[str, Any]] = {
    "none": {"kind": "none"},
    "parda": {"kind": "parda"},
    "flashfq": {"kind": "flashfq"},
    # Nine tenths of what the slower drive reads, of which nothing is promised.
    "reflex": {
        "kind": "reflex",
        "curve": [{"p95_us": 100_000, "tokens_per_s": 900, "read_only_tokens_per_s": 900}],
    },
    # Thresholds in proportion to the slower drive.
    "gimbal": {"kind": "gimbal", "thresh_min_us": 16000, "thresh_max_us": 96000, "rate_min_mib_s": 1},
}


@dataclass(frozen=True)
class Load:
    """Random reads of one size at a depth."""

    name: str
    block_bytes: int
    depth: int


LOADS = (
    Load("small-1", 4 << 10, 16),
    Load("small-2", 4 << 10, 16),
    Load("large-1", 64 << 10, 8),
    Load("large-2", 64 << 10, 8),
)
SHARE = SIZE // len(LOADS)


def model() -> dict[str, Any]:
    """The slowed drive."""
    return timing() | SLOWED


def virtual(scheduler: Mapping[str, Any], loads: Sequence[Load], seconds: float) -> dict[str, float]:
    """Bandwidths by tenant in virtual time."""
    tenants = [
        {
            "tenant": {"name": load.name},
            "pattern": "random",
            "block_bytes": load.block_bytes,
            "arrivals": {"depth": load.depth},
            "region": {"offset": LOADS.index(load) * SHARE, "length": SHARE},
        }
        for load in loads
    ]
    experiment = {
        "kind": "tenants",
        "name": "together",
        "scheduler": scheduler,
        "seconds": seconds,
        "warm_up_s": WARM_UP_S,
        "tenants": tenants,
    }
    result = run([FILL, REST, experiment], SIZE, model()).result
    return {tenant["name"]: tenant["total"]["bytes_per_s"] for tenant in result["tenants"]}


def real(
    name: str, scheduler: Mapping[str, Any], loads: Sequence[Load], seconds: float
) -> tuple[dict[str, float], RealRun]:
    """Bandwidths by tenant in real time, and what the machine was doing. Raises ToolError where fio fails."""
    config = {
        "schema": 1,
        "drive": {
            "kind": "model",
            "timing": model(),
            "bytes": SIZE,
            "sector_bytes": 512,
            "seed": 1,
            "prepare": [FILL, REST],
        },
        "scheduler": scheduler,
        "tenants": [{"name": load.name} for load in LOADS],
    }
    command = [
        program("fio"),
        "--output-format=json",
        "--ioengine=nbd",
        "--rw=randread",
        # As drivesim draws: with its map, fio reads the last blocks of a pass that are left, beside each other.
        "--norandommap",
        "--time_based",
        "--randseed=7",
    ]
    command += [f"--size={SHARE}", f"--runtime={seconds}", f"--ramp_time={WARM_UP_S}"]
    with running_switch(config) as switch:
        for load in loads:
            command += [f"--name={load.name}", f"--uri={switch.uri(load.name)}"]
            command += [f"--bs={load.block_bytes}", f"--iodepth={load.depth}"]
        witness = LoadWitness(RealClock())
        witness.start()
        witness.begin()
        done = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        load_seen = witness.so_far()
        witness.stop()
        late = switch.state()["drives"][0]["lateness_ns"]
    jobs = json.loads(done[done.index("{") :])["jobs"]
    if failed := [job["jobname"] for job in jobs if job["error"]]:
        raise ToolError(f"fio met errors: {', '.join(failed)}")
    latency_ns = np.average(
        [job["read"]["lat_ns"]["mean"] for job in jobs], weights=[job["read"]["total_ios"] for job in jobs]
    )
    lateness = Lateness(late["p50"], late["p99"], late["max"])
    bandwidths = {job["jobname"]: float(job["read"]["bw_bytes"]) for job in jobs}
    return bandwidths, RealRun(name, lateness, float(latency_ns), load_seen)


def shares(alone: Mapping[str, float], together: Mapping[str, float]) -> dict[str, float]:
    """f-Util by tenant."""
    names = [load.name for load in LOADS]
    found = f_util(np.array([alone[name] for name in names]), np.array([together[name] for name in names]))
    return dict(zip(names, map(float, found), strict=True))


def compared(schedulers: Sequence[str], seconds: float) -> dict[str, tuple[Agreement, dict[str, float]]]:
    """For each scheduler the agreement, and f-Util by tenant in virtual time."""
    first_of_kind = {load.block_bytes: load for load in reversed(LOADS)}
    virtual_alone, real_alone, runs = {}, {}, []
    for load in first_of_kind.values():
        [(_, in_virtual)] = virtual(SCHEDULERS["none"], [load], seconds).items()
        bandwidths, conditions = real(f"{load.name} alone", SCHEDULERS["none"], [load], seconds)
        runs.append(conditions)
        for other in LOADS:
            if other.block_bytes == load.block_bytes:
                virtual_alone[other.name], real_alone[other.name] = in_virtual, bandwidths[load.name]
    found = {}
    for name in schedulers:
        virtual_shares = shares(virtual_alone, virtual(SCHEDULERS[name], LOADS, seconds))
        bandwidths, conditions = real(f"together, {name}", SCHEDULERS[name], LOADS, seconds)
        judged = agreement(virtual_shares, shares(real_alone, bandwidths), [*runs, conditions])
        found[name] = judged, virtual_shares
    return found


def figures(_rounds: int) -> Sequence[Figure]:
    """Agreement with Gimbal and without a scheduler, as the table of the benchmark has it."""
    rows = []
    for name, (judged, _) in compared(("none", "gimbal"), 30.0).items():
        told = ", ".join(f"{difference:+.1%}" for difference in judged.differences.values()) or "unknown"
        if judged.reason:
            print(f"{name}: {judged.reason}")
        is_met = {Verdict.PASS: True, Verdict.FAIL: False}.get(judged.verdict)
        rows.append(Figure(f"f-Util in real over virtual time, {name}", told, f"within {TOLERANCE:.0%}", is_met))
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scheduler", action="append", choices=sorted(SCHEDULERS), help="may be repeated")
    parser.add_argument("--seconds", type=float, default=30.0, help="measured time of each run")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the verdicts there")
    options = parser.parse_args()
    if not 0.5 <= options.seconds <= 3600:
        parser.error(f"--seconds is {options.seconds:g}; give 0.5 to 3600")
    print(f"load {os.getloadavg()[0]:.1f}")
    try:
        found = compared(options.scheduler or ("none", "gimbal"), options.seconds)
    except ToolError as error:
        print(error, file=sys.stderr)
        return EXIT_LAB_FAILED
    for name, (judged, in_virtual) in found.items():
        print(f"{name}: {judged.verdict}{f' ({judged.reason})' if judged.reason else ''}")
        for tenant, difference in judged.differences.items():
            print(f"  {tenant:8} f-Util {in_virtual[tenant]:.3f} in virtual time, {difference:+.1%} in real time")
    if options.json:
        document = {
            name: {
                "verdict": judged.verdict,
                "reason": judged.reason,
                "virtual": in_virtual,
                "differences": dict(judged.differences),
            }
            for name, (judged, in_virtual) in found.items()
        }
        options.json.write_text(json.dumps(document, indent=2) + "\n")
    return exit_code(worst(judged.verdict for judged, _ in found.values()), [Cause.PRODUCT])


if __name__ == "__main__":
    sys.exit(main())
