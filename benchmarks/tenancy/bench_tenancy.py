"""The figures of tenants that share drives: virtual time, schedulers, the storage switch, memory, and agreement.

    python benchmarks/tenancy/bench_tenancy.py [PART ...] [--rounds N] [--json FILE]

Runs all parts, or those named, and prints one table; exits 1 where a target is missed. Each part's file says what it
measures and how. Needs a release build of native/, SimPy, fio, nbdkit, and valgrind for instructions.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.tenancy import _memory, _schedulers, _switch, _virtual_time, agreement  # noqa: E402 - the checkout is no package

PARTS = {
    "virtual-time": _virtual_time.figures,
    "memory": _memory.figures,
    "schedulers": _schedulers.figures,
    "switch": _switch.figures,
    "agreement": agreement.figures,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    options = parser.parse_args()
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"no part is called {', '.join(sorted(unknown))}; give of {', '.join(PARTS)}")
    found = []
    print(f"load {' '.join(f'{load:.1f}' for load in os.getloadavg())}", flush=True)
    for name in options.parts or PARTS:
        for figure in PARTS[name](options.rounds):
            found.append(figure)
            print(figure.line(), flush=True)
    if options.json:
        options.json.write_text(json.dumps([asdict(figure) for figure in found], indent=2) + "\n")
    return int(any(figure.is_met is False for figure in found))


if __name__ == "__main__":
    sys.exit(main())
