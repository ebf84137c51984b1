"""The cost of each scheduler of tenants for a request of 4 KiB: nanoseconds, and instructions by callgrind.

The bench ``cost`` of the crate ``schedulers`` is built and run: 16 tenants keep 32 requests each outstanding, seven
reads to three writes, in virtual time. The cost of a request is that of its arrival, its dispatch and its completion,
and of the queue that stands for a drive; the row ``none`` shows how much that is. Nanoseconds are the least of seven
rounds of a million requests; instructions, where there is valgrind, those of 50,000 requests after 20,000 others.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from benchmarks.tenancy._figure import Figure

MANIFEST = Path(__file__).resolve().parents[2] / "native" / "Cargo.toml"
CARGO = ("cargo", "bench", "--quiet", "--locked", "--manifest-path", MANIFEST, "--package", "schedulers")
GIMBAL_NS = 300.0
WARM_UP, MEASURED = 20_000, 50_000


def built() -> Path:
    """The bench, as it was built."""
    command = (*CARGO, "--bench", "cost", "--no-run", "--message-format", "json")
    lines = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    messages = [json.loads(line) for line in lines]
    (executable,) = (found for message in messages if (found := message.get("executable")))
    return Path(executable)


def instructions(bench: Path, kind: str) -> float:
    """Instructions of a request, by the difference of two runs."""

    def run(requests: int) -> int:
        callgrind = ("valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null")
        done = subprocess.run((*callgrind, bench, kind, str(requests)), check=True, capture_output=True, text=True)
        (collected,) = re.findall(r"Collected : (\d+)", done.stderr)
        return int(collected)

    return (run(WARM_UP + MEASURED) - run(WARM_UP)) / MEASURED


def figures(_rounds: int) -> Sequence[Figure]:
    """All five; the bench has rounds of its own."""
    bench = built()
    nanoseconds: dict[str, float] = json.loads(subprocess.run(bench, check=True, stdout=subprocess.PIPE).stdout)
    found = []
    for kind, spent_ns in nanoseconds.items():
        count = f"{instructions(bench, kind):,.0f} instructions" if shutil.which("valgrind") else "no valgrind"
        target = ("quoted", None) if kind != "gimbal" else (f"{GIMBAL_NS:.0f} ns", spent_ns <= GIMBAL_NS)
        found.append(Figure(f"scheduler {kind}, a request of 4 KiB", f"{spent_ns:.0f} ns, {count}", *target))
    return found
