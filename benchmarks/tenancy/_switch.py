"""The storage switch with an ideal drive: four tenants, 4 KiB random reads QD32 each, by fio.

Gimbal against no scheduling, and each against nbdkit's memory plugin that serves the same clients, measured in turns. A
ratio above 1 means the first did more. Needs fio and nbdkit.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from benchmarks._bench import paired
from benchmarks.bench_rackd import nbdkit, program
from benchmarks.tenancy._figure import Figure
from rackloop.errors import ToolError
from tests.storageswitch_process import running_switch

TENANTS = "abcd"
SHARE = 128 << 20
RUNTIME_S = 3.0
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


def figures(rounds: int) -> Sequence[Figure]:
    """Measure the three pairs in turns."""
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
            return lambda: fio(places, "--rw=randread", "--time_based", f"--runtime={RUNTIME_S}", "--ramp_time=0.3")

        found = []
        for label, one, two, target in (
            ("gimbal over none", gimbal, none, GIMBAL_OVER_NONE),
            ("none over nbdkit memory", none, plain, SWITCH_OVER_NBDKIT),
            ("gimbal over nbdkit memory", gimbal, plain, SWITCH_OVER_NBDKIT),
        ):
            pair = paired(reads(one), reads(two), rounds)
            spread = f"{pair.ratio_min:.2f}-{pair.ratio_max:.2f}"
            told = f"{pair.ratio:.2f} ({spread}; {pair.a / 1e3:.0f}k, {pair.b / 1e3:.0f}k)"
            found.append(Figure(f"switch, {label}", told, f"{target:.1f} times", pair.ratio >= target))
        return found
