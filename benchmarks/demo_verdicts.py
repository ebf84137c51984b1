"""Verdicts of `rackloop demo` on a quiet machine, on a busy one, and with slowed drive models.

    python benchmarks/demo_verdicts.py --quiet 20 --busy 10 --slow 10 --slow-busy 10

Expected: pass on a quiet machine; pass on a busy one, or unknown where the reason of each unknown test names the
machine; fail, cause product, with drives that come online three times later than specified. Ends with status 1 for any
other verdict.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rackloop.native import BIN_VARIABLE, find_binary

SLOWER = 3.0
SPREAD = 0.05
"""How much sooner or later than its model says a simulated drive may be online, as a share."""
# What docs/reference/rackd.md says of the stacks, in milliseconds.
ONLINE_MS = {"vanilla": 200.0, "no_timeouts": 90.0, "warm_port": 10.0, "comreset": 1.0}
# A rackd whose stacks take SLOWER times their time.
SLOW_RACKD = """#!{python}
import json, os, sys
path = sys.argv[sys.argv.index("--config") + 1]
config = json.load(open(path))
config["stacks"] = json.loads('{stacks}')
json.dump(config, open(path, "w"))
os.execv("{rackd}", ["{rackd}", *sys.argv[1:]])
"""
BY_THE_MACHINE = "unknown, by the machine"
AS_IT_SHOULD = {"quiet": {"pass"}, "busy": {"pass", BY_THE_MACHINE}, "slow": {"fail, product"}}
AS_IT_SHOULD["slow-busy"] = AS_IT_SHOULD["slow"]


def main() -> None:
    """Run each requested series and print a table of its verdicts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    for series in AS_IT_SHOULD:
        parser.add_argument(f"--{series}", type=int, default=0, metavar="N", help=f"so many demos {series}")
    parser.add_argument("--plan", help="another plan than the demo's, such as one with fabric/remap_latency alone")
    options = vars(parser.parse_args())
    is_good = True
    for series, fits in AS_IT_SHOULD.items():
        verdicts: Counter[str] = Counter()
        for number in range(1, options[series.replace("-", "_")] + 1):
            verdict, reason = demo(options["plan"], is_slow="slow" in series, is_busy="busy" in series)
            verdicts[verdict] += 1
            is_good &= verdict in fits
            print(f"{series} {number}: {verdict}{reason}", flush=True)
        if verdicts:
            print(f"{series:>10}: " + ", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common()))
    sys.exit(not is_good)


def demo(plan: str | None, *, is_slow: bool, is_busy: bool) -> tuple[str, str]:
    """The verdict of a demo with the cause of the first test that decided it, and that test's reason."""
    with tempfile.TemporaryDirectory(prefix="rl-", dir="/tmp") as home, busy_cores() if is_busy else at_rest():
        environment = os.environ | {"RACKLOOP_STATE_HOME": home}
        if is_slow:
            environment[BIN_VARIABLE] = str(slowed(Path(home) / "bin"))
        out = Path(home) / "out"
        asked = ["demo"] if plan is None else ["run", plan, "--lab", "mock"]
        line = [sys.executable, "-m", "rackloop_cli.main", *asked, "--out", str(out)]
        ended = subprocess.run(line, check=False, capture_output=True, text=True, env=environment)
        try:
            summary = json.loads((out / "summary.json").read_text())
        except OSError:
            return "no summary", f" ({ended.stderr.strip()[-200:]})"
    return told(summary)


def told(summary: dict[str, Any]) -> tuple[str, str]:
    """The verdict of a run, with its cause, and the reason of the test that decided it.

    Unknown is by the machine only where that is what the reason of each such test names.
    """
    if summary["verdict"] == "pass":
        return "pass", ""
    deciding = [test for test in summary["tests"] if test["verdict"] == summary["verdict"]]
    others = [test for test in deciding if test["cause"] != "harness" or "machine" not in (test["reason"] or "")]
    first = (others or deciding)[0]
    verdict = f"{summary['verdict']}, {first['cause']}"
    if summary["verdict"] == "unknown" and not others:
        verdict = BY_THE_MACHINE
    return verdict, f" ({first['id']}: {(first['reason'] or '')[:200]})"


def slowed(folder: Path) -> Path:
    """A directory of the native programs whose rackd has stacks that are slower."""
    folder.mkdir()
    rackd = find_binary("rackd")
    for file in rackd.parent.iterdir():
        (folder / file.name).symlink_to(file)
    stacks = {
        name: {"online_ms": ms * SLOWER, "spread_ms": ms * SLOWER * SPREAD, "phy_us": [300, 700]}
        for name, ms in ONLINE_MS.items()
    }
    stacks["comreset"]["untold_ms"] = ONLINE_MS["warm_port"] * SLOWER
    (folder / "rackd").unlink()
    script = SLOW_RACKD.format(python=sys.executable, stacks=json.dumps(stacks), rackd=rackd)
    (folder / "rackd").write_text(script)
    (folder / "rackd").chmod(0o755)
    return folder


@contextmanager
def at_rest() -> Iterator[None]:
    """Nothing else runs."""
    yield


@contextmanager
def busy_cores() -> Iterator[None]:
    """Each core has a process that never rests."""
    line = [sys.executable, "-c", "while True: pass"]
    spinning = [subprocess.Popen(line) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for process in spinning:
            process.kill()
            process.wait()


if __name__ == "__main__":
    main()
