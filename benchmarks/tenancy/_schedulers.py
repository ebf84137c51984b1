"""The cost of each scheduler of tenants for a request of 4 KiB: nanoseconds, and instructions by callgrind.

``python benchmarks/bench_schedulers.py`` builds the bench ``cost`` of the crate ``schedulers`` and runs it: 16 tenants
keep 32 requests each outstanding, seven reads to three writes, in virtual time. The cost of a request is that of its
arrival, its dispatch and its completion, and of the queue that stands for a drive; the row ``none`` shows how much that
is. Nanoseconds are the least of seven rounds of a million requests, instructions those of 50,000 requests after 20,000
others.

Prints a table and exits 1 when Gimbal takes more than 300 ns. ``--json FILE`` writes the figures. Without valgrind
there are no instructions.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

MANIFEST = Path(__file__).resolve().parents[1] / "native" / "Cargo.toml"
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


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    bench = built()
    nanoseconds: dict[str, float] = json.loads(subprocess.run(bench, check=True, stdout=subprocess.PIPE).stdout)
    figures: dict[str, dict[str, float | None]] = {}
    print(f"{'scheduler':12} {'ns':>8} {'instructions':>14}   load {os.getloadavg()[0]:.1f}")
    for kind, spent_ns in nanoseconds.items():
        count = instructions(bench, kind) if shutil.which("valgrind") else None
        figures[kind] = {"ns": spent_ns, "instructions": count}
        print(f"{kind:12} {spent_ns:8.1f} {'no valgrind' if count is None else f'{count:,.0f}':>14}")
    met = nanoseconds["gimbal"] <= GIMBAL_NS
    print(f"gimbal: {nanoseconds['gimbal']:.0f} ns of at most {GIMBAL_NS:.0f}: {'met' if met else 'MISSED'}")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")
    return int(not met)


if __name__ == "__main__":
    sys.exit(main())
