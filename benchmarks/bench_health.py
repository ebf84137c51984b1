"""How long a snapshot of the mock rack's health takes over SSH: at its baseline, and with all 32 drives joined.

Run it with the Python that has Rackloop installed: ``python benchmarks/bench_health.py [--rounds N]``. It brings two
racks up. Targets: 3 s for all drives, 0.5 s for the 24 of the baseline, which every test of a plan pays once.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from pathlib import Path

from rackloop.clock import Deadline, RealClock
from rackloop.inspection.health import HealthSnapshot
from rackloop.lab import Lab, LabState, find_lab, load_lab
from rackloop_labs import Bench, MockLab, open_lab
from rackloop_labs.health import take_snapshot

TARGETS_S = {24: 0.5, 32: 3.0}
WITHIN_S = 60.0
CLOCK = RealClock()
# More ports on two servers, for the drives that the baseline leaves out.
MORE = {
    "p3: 12}": "p3: 12, p4: 25, p5: 26, p6: 27, p7: 28, p8: 29}",
    "p3: d15}": "p3: d15, p4: d17, p5: d18, p6: d19, p7: d20, p8: exp1}",
    "name: mock": "name: mock32",
}


def larger(folder: Path) -> Lab:
    """The mock rack with every drive of it at a server."""
    text = find_lab("mock").read_text(encoding="utf-8")
    for found, put in MORE.items():
        if found not in text:
            raise SystemExit(f"the mock rack's description has no {found!r} any more: mend this benchmark")
        text = text.replace(found, put)
    path = folder / "mock32.yaml"
    path.write_text(text, encoding="utf-8")
    return load_lab(path)


def snapshots(bench: Bench, rounds: int) -> tuple[float, list[float], int]:
    """The first snapshot's time, SSH logins included, those of the others, and how many drives were read."""
    taken_s, last = [], None
    for _ in range(rounds + 1):
        snapshot: HealthSnapshot = take_snapshot(bench, Deadline.after(CLOCK, WITHIN_S), since=last)
        taken_s.append((snapshot.ended_ns - snapshot.started_ns) / 1e9)
        last = snapshot
    return taken_s[0], taken_s[1:], len(snapshot.drives)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=11)
    rounds = parser.parse_args().rounds
    is_met = True
    with tempfile.TemporaryDirectory(prefix="rl-", dir="/tmp") as home:
        os.environ["RACKLOOP_STATE_HOME"] = home
        print(f"{rounds} rounds, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
        for lab in (load_lab("mock"), larger(Path(home))):
            mock = MockLab(lab, CLOCK)
            mock.up()
            try:
                with open_lab(lab, CLOCK, LabState.of(lab.name), None, bring_up=False) as bench:
                    first_s, later_s, drives = snapshots(bench, rounds)
            finally:
                mock.down()
            median_s, target_s = statistics.median(later_s), TARGETS_S[drives]
            is_met = is_met and median_s <= target_s
            print(
                f"{drives} drives  {median_s:.2f} s, slowest {max(later_s):.2f} s, first {first_s:.2f} s "
                f"(target {target_s} s)"
            )
    return 0 if is_met else 1


if __name__ == "__main__":
    raise SystemExit(main())
