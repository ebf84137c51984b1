"""How long site.yml takes on the four servers of the mock rack, the first time, again, and back.

Prints the median of each over the rounds, with the lowest and highest; exits 1 where one misses its target.

    python benchmarks/bench_provision.py [--rounds 3]
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from pathlib import Path

from rackloop.clock import Deadline, RealClock
from rackloop.lab import LabState, load_lab
from rackloop.plan import find_playbook
from rackloop_drivers.provision import Provisioner
from rackloop_labs import MockLab, ssh_accesses

CLOCK = RealClock()
LIMIT_S = 120.0
# site.yml the first time, site.yml again, and undo.yml, for which there is no target.
TARGETS_S = {"site": 25.0, "site again": 15.0, "undo": None}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    lab = load_lab("mock")
    took: dict[str, list[float]] = {name: [] for name in TARGETS_S}
    with tempfile.TemporaryDirectory(prefix="rl-", dir="/tmp") as home:
        state = LabState.of(lab.name, root=Path(home))
        mock = MockLab(lab, CLOCK, state)
        mock.up()
        try:
            provisioner = Provisioner(lab, ssh_accesses(lab, state.endpoints()), CLOCK)
            for _ in range(rounds):
                for name in TARGETS_S:
                    began_ns = CLOCK.now_ns()
                    playbook = find_playbook(name.split()[0])
                    done = provisioner.run(playbook, Deadline.after(CLOCK, LIMIT_S))
                    took[name].append((CLOCK.now_ns() - began_ns) / 1e9)
                    has_changed = any(tally.changed for tally in done.hosts.values())
                    assert has_changed == (name != "site again")
        finally:
            mock.down()
    print(f"{len(lab.servers)} servers, {rounds} rounds, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    is_met = True
    for name, target_s in TARGETS_S.items():
        median = statistics.median(took[name])
        wanted = f"target {target_s:g} s" if target_s else "no target"
        print(f"{name:>12}  {median:5.1f} s  ({min(took[name]):.1f} to {max(took[name]):.1f}; {wanted})")
        is_met = is_met and (target_s is None or median <= target_s)
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
