"""How long it takes to ask the mock rack's servers for their drives over SSH, and to check its cables.

Run it with the Python that has Rackloop installed: ``python benchmarks/bench_discovery.py [--rounds N]``. The rack is
brought up for it. Targets: survey and check together 2 s; the survey, health included, 3 s for 24 drives.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from collections.abc import Callable

from rackloop.clock import Deadline, RealClock
from rackloop.lab import LabState, load_lab
from rackloop.portmap import Partial, PortMap
from rackloop_labs import MockLab, open_lab
from rackloop_labs.discovery import cabling, inventories

CHECK_TARGET_S = 2.0
SURVEY_TARGET_S = 3.0
WITHIN_S = 60.0
CLOCK = RealClock()


def took_s(act: Callable[[], object]) -> float:
    began_ns = CLOCK.now_ns()
    act()
    return (CLOCK.now_ns() - began_ns) / 1e9


def soon() -> Deadline:
    return Deadline.after(CLOCK, WITHIN_S)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=11)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory(prefix="rl-", dir="/tmp") as home:
        os.environ["RACKLOOP_STATE_HOME"] = home
        lab = load_lab("mock")
        mock = MockLab(lab, CLOCK)
        mock.up()
        try:
            with open_lab(lab, CLOCK, LabState.of(lab.name), None, bring_up=False) as bench:
                first_s = took_s(lambda: cabling(bench, soon()))
                checks_s = [took_s(lambda: cabling(bench, soon())) for _ in range(rounds)]
                # The drives in no server's baseline too: four behind the expander, and the spares in their places.
                joined = [(1, 150), *zip((2, 3, 4, 5), (117, 118, 119, 120), strict=True)]
                bench.equipment.fabric.apply(Partial(PortMap.of(joined)), soon())
                cabling(bench, soon())
                surveys_s = [took_s(lambda: inventories(bench, soon())) for _ in range(rounds)]
                drives = sum(len(seen.drives) for seen in inventories(bench, soon()).values())
        finally:
            mock.down()
    check_s, survey_s = statistics.median(checks_s), statistics.median(surveys_s)
    print(f"{rounds} rounds, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    print(f"first check, SSH logins included  {first_s:.2f} s")
    print(
        f"check of 24 ports                 {check_s:.2f} s, slowest {max(checks_s):.2f} s (target {CHECK_TARGET_S} s)"
    )
    per_24_s = survey_s * 24 / drives
    print(f"survey of {drives} drives  {survey_s:.2f} s, {per_24_s:.2f} s for 24 (target {SURVEY_TARGET_S} s)")
    return 0 if check_s <= CHECK_TARGET_S and per_24_s <= SURVEY_TARGET_S else 1


if __name__ == "__main__":
    raise SystemExit(main())
