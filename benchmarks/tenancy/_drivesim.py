"""Runs of drivesim, with the processor time and the memory that they took."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rackloop.errors import ToolError
from rackloop.lab import load_profile
from rackloop.native import find_binary

PROFILE = "nvme-ssd"
GIB = 1 << 30
FILL: Mapping[str, Any] = {
    "kind": "load",
    "name": "fill",
    "pattern": "sequential",
    "read_percent": 0,
    "block_bytes": 128 << 10,
    "arrivals": {"depth": 32},
    "until": {"passes": 1},
}
WARM_UP_S = 0.1


@dataclass(frozen=True)
class Run:
    """A run of drivesim: its last result, processor time, and largest resident memory."""

    result: Mapping[str, Any]
    processor_s: float
    peak_bytes: int

    @property
    def requests(self) -> int:
        """Requests of all tenants in the measured time."""
        return sum(tenant["total"]["requests"] for tenant in self.result["tenants"])


def timing() -> dict[str, Any]:
    """The model of the NVMe drive."""
    return dict(load_profile(PROFILE).timing)


def tenants(count: int, seconds: float, size: int, scheduler: str = "gimbal", depth: int = 32) -> dict[str, Any]:
    """So many tenants that keep 4 KiB random reads outstanding, each in a region of its own."""
    share = size // count // 4096 * 4096
    return {
        "kind": "tenants",
        "name": "tenants",
        "scheduler": {"kind": scheduler},
        "seconds": seconds,
        "warm_up_s": WARM_UP_S,
        "tenants": [
            {
                "tenant": {"name": f"t{number}"},
                "pattern": "random",
                "block_bytes": 4096,
                "arrivals": {"depth": depth},
                "region": {"offset": number * share, "length": share},
            }
            for number in range(count)
        ],
    }


def run(experiments: Sequence[Mapping[str, Any]], size: int, model: Mapping[str, Any] | None = None) -> Run:
    """Put a new drive of ``size`` through experiments, the NVMe one unless ``model`` is another.

    Raises ToolError where drivesim fails.
    """
    document = {
        "schema": 1,
        "timing": timing() if model is None else model,
        "bytes": size,
        "sector_bytes": 512,
        "seed": 1,
        "experiments": list(experiments),
    }
    with tempfile.TemporaryFile("w+") as given, tempfile.TemporaryFile("w+") as printed:
        json.dump(document, given)
        given.seek(0)
        process = subprocess.Popen([str(find_binary("drivesim"))], stdin=given, stdout=printed)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise ToolError(f"drivesim ended with status {process.returncode}")
        printed.seek(0)
        last = printed.read().splitlines()[-1]
    return Run(json.loads(last), usage.ru_utime + usage.ru_stime, usage.ru_maxrss << 10)
