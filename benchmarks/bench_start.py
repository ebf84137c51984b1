"""How long `./rackloop` takes to start, once everything is installed, and how much of it is the wrapper.

``python benchmarks/bench_start.py`` prints medians of 20 starts and exits 1 when the help takes 400 ms or longer, or
the wrapper 20 ms or longer.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
from pathlib import Path

from rackloop.clock import RealClock

ROOT = Path(__file__).resolve().parents[1]
PYTHON = ROOT / ".rackloop" / "venv" / "bin" / "python"
ROUNDS = 20
HELP_MS = 400.0
WRAPPER_MS = 20.0


def median_ms(*command: str | Path) -> float:
    clock = RealClock()
    took = []
    for _ in range(ROUNDS):
        began_ns = clock.now_ns()
        subprocess.run(command, check=True, capture_output=True)
        took.append((clock.now_ns() - began_ns) / 1e6)
    return statistics.median(took)


def main() -> int:
    subprocess.run([ROOT / "rackloop", "--version"], check=True, capture_output=True)
    help_ms = median_ms(ROOT / "rackloop", "--help")
    wrapped_ms = median_ms(ROOT / "rackloop", "--version")
    wrapper_ms = wrapped_ms - median_ms(PYTHON, "-P", "-m", "rackloop_cli.main", "--version")
    print(f"./rackloop --help: {help_ms:.0f} ms (below {HELP_MS:g} ms)")
    print(f"./rackloop before Python: {wrapper_ms:.1f} ms (below {WRAPPER_MS:g} ms)")
    return int(help_ms >= HELP_MS or wrapper_ms >= WRAPPER_MS)


if __name__ == "__main__":
    sys.exit(main())
