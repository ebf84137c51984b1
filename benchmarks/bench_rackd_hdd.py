"""What rackd makes of a rack of busy hard disks: how many requests they serve, and how far off their time they answer.

Run with ``python benchmarks/bench_rackd_hdd.py [--json FILE] [--drives N] [--depth N] [--runtime SECONDS]
[--profile NAME]``. Needs fio and a release build of native/. The timing error is what lies between the moment at which
the drive's model completes a request and the moment at which rackd has sent the answer.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from rackloop.clock import Deadline, RealClock  # noqa: E402 - the checkout is no package
from rackloop.errors import ToolError  # noqa: E402
from rackloop.lab import load_profile  # noqa: E402
from tests.rackd_process import RunningRackd, drive, running_rackd, small_rack  # noqa: E402

SIZE = 8 << 30
CLOCK = RealClock()


def fio(rackd: RunningRackd, drives: int, depth: int, runtime_s: float) -> dict[str, float]:
    """Random 4 KiB reads on all drives at once: requests a second of all, and their mean latency."""
    path = shutil.which("fio")
    if path is None:
        raise ToolError("fio is not installed: apt-get install fio")
    command = [path, "--ioengine=nbd", "--rw=randread", "--bs=4k", f"--iodepth={depth}", f"--size={SIZE}", "--thread"]
    command += ["--time_based", f"--runtime={runtime_s}", "--output-format=json", "--group_reporting", "--randseed=7"]
    for number in range(1, drives + 1):
        command += [f"--name=job{number}", f"--uri={rackd.uri(f'drive.d{number:02}')}"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    read = json.loads(text[text.index("{") :])["jobs"][0]["read"]
    return {"iops": read["iops"], "latency_mean_us": read["lat_ns"]["mean"] / 1e3}


def processor_s(pid: int) -> float:
    """The processor time that a process has used (proc_pid_stat(5): utime and stime)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    parser.add_argument("--drives", type=int, default=64)
    parser.add_argument("--depth", type=int, default=4)
    parser.add_argument("--runtime", type=float, default=10.0, metavar="SECONDS")
    parser.add_argument("--profile", default="sata-hdd")
    options = parser.parse_args()
    profile = load_profile(options.profile)
    alone: dict[str, Any] = {"rotational": profile.is_rotational, "timing": dict(profile.timing)}
    drives = [drive(number, bytes=SIZE, **alone) | {"port": None} for number in range(1, options.drives + 1)]
    with (
        tempfile.TemporaryDirectory(prefix="bench", dir="/tmp") as name,
        running_rackd(Path(name), small_rack() | {"drives": drives}) as rackd,
    ):
        control = rackd.connect()
        began_ns = CLOCK.now_ns()
        figures = fio(rackd, options.drives, options.depth, options.runtime)
        wall_s = (CLOCK.now_ns() - began_ns) / 1e9
        late_ns = control.request("stats", Deadline.after(CLOCK, 10))["lateness"]
        figures["processors"] = processor_s(rackd.process.pid) / wall_s
        control.close()
    figures |= {f"error_{quantile}_us": late_ns[quantile] / 1e3 for quantile in ("p50", "p99", "max")}
    print(f"{options.drives} drives of {profile.name}, 4 KiB random reads, QD{options.depth} each")
    print(
        f"{'requests of all drives':30} {figures['iops']:13,.0f} IOPS, {figures['latency_mean_us']:,.0f} us on average"
    )
    for quantile in ("p50", "p99", "max"):
        error_us = figures[f"error_{quantile}_us"]
        share = error_us / figures["latency_mean_us"]
        print(f"{f'timing error {quantile}':30} {error_us:13,.1f} us, {share:.2%} of the average latency")
    print(f"{'rackd uses':30} {figures['processors']:13.2f} of {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
