"""The storage switch with an ideal drive: four tenants, 4 KiB random reads QD32 each, by fio.

Gimbal against no scheduling, and each against nbdkit's memory plugin that serves the same clients, measured in turns.

    python benchmarks/bench_storageswitch.py [--json FILE] [--rounds N] [--runtime SECONDS]

Needs fio, nbdkit and a release build of native/. A ratio above 1 means the first did more. It fails below the targets.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks._bench import paired  # noqa: E402 - the checkout is no package
from benchmarks.bench_rackd import nbdkit, program  # noqa: E402
from rackloop.errors import ToolError  # noqa: E402
from tests.storageswitch_process import running_switch  # noqa: E402

TENANTS = "abcd"
SHARE = 128 << 20
GIMBAL_OVER_NONE = 0.9
SWITCH_OVER_NBDKIT = 1.0

Places = Sequence[tuple[str, int]]
"""For each tenant the URI of its export, and where its share begins there."""


def fio(places: Places, *options: str) -> float:
    """Reads a second of all tenants together."""
    command = [program("fio"), "--output-format=json", "--ioengine=nbd", "--bs=4k", "--iodepth=32", "--randseed=7"]
    command += ["--continue_on_error=all", f"--size={SHARE}", "--group_reporting", *options]
    for name, (uri, offset) in zip(TENANTS, places, strict=True):
        command += [f"--name={name}", f"--uri={uri}", f"--offset={offset}"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    result = json.loads(text[text.index("{") :])["jobs"][0]
    if result["total_err"]:
        raise ToolError(f"fio met {result['total_err']} errors")
    return float(result["read"]["iops"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--runtime", type=float, default=3.0, metavar="SECONDS")
    options = parser.parse_args()
    figures: dict[str, object] = {"load": os.getloadavg()}
    with ExitStack() as servers:

        def switch(kind: str) -> Places:
            config = {
                "schema": 1,
                "drive": {"kind": "memory", "bytes": len(TENANTS) * SHARE},
                "scheduler": {"kind": kind},
                "tenants": [{"name": name} for name in TENANTS],
            }
            running = servers.enter_context(running_switch(config))
            return [(running.uri(name), 0) for name in TENANTS]

        none, gimbal = switch("none"), switch("gimbal")
        folder = Path(servers.enter_context(tempfile.TemporaryDirectory(prefix="bench", dir="/tmp")))
        other = servers.enter_context(nbdkit(folder))
        plain = [(other, number * SHARE) for number in range(len(TENANTS))]
        for places in (none, gimbal, plain):
            fio(places, "--rw=write")

        def reads(places: Places) -> Callable[[], float]:
            return lambda: fio(
                places, "--rw=randread", "--time_based", f"--runtime={options.runtime}", "--ramp_time=0.3"
            )

        missed = False
        for label, one, two, target in (
            ("gimbal over none", gimbal, none, GIMBAL_OVER_NONE),
            ("none over nbdkit", none, plain, SWITCH_OVER_NBDKIT),
            ("gimbal over nbdkit", gimbal, plain, SWITCH_OVER_NBDKIT),
        ):
            found = paired(reads(one), reads(two), options.rounds)
            figures[label] = found.as_dict()
            missed = missed or found.ratio < target
            spread = f"{found.ratio_min:.2f}-{found.ratio_max:.2f}"
            rates = f"{found.a:10,.0f} {found.b:10,.0f} {found.ratio:6.2f}"
            print(f"{label:20} {rates}   {spread}   at least {target}", flush=True)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
