"""How long a mock rack takes to be healed after a process was killed while it had broken much of it.

Run it with the Python that has Rackloop installed: ``python benchmarks/bench_heal.py [--rounds N]``. The rack is
brought up for it. Each round leaves nine faults standing at once and heals from another process: reading back power,
map, signal, servers and drives included. Target: 2 s.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

from rackloop.clock import RealClock
from rackloop.faults import FaultSpec

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.fault_process import fault_processes
from tests.faulty_rack import FaultyRack, faulty_rack

TARGET_S = 2.0
CLOCK = RealClock()
FAULTS = [
    FaultSpec("hang", "d01"),
    FaultSpec("media_error", "d06"),
    FaultSpec("fail_slow", "d11"),
    FaultSpec("stuck_port", "d03"),
    FaultSpec("slow_training", "d09"),
    FaultSpec("phy_drop", "d02"),
    FaultSpec("power_loss", "srv1"),
    FaultSpec("server_crash", "srv2"),
    FaultSpec("switch_power_loss", "switch"),
]
# Each fault has seven steps until it stands.
_STEPS_OF_A_FAULT = 7


def heal_s(rack: FaultyRack) -> float:
    """Heal the rack from this process; raises where it is not as it was."""
    began_ns = CLOCK.now_ns()
    report = rack.heal()
    took_s = (CLOCK.now_ns() - began_ns) / 1e9
    if report.problems or len(report.undone) != len(FAULTS):
        raise SystemExit(f"{len(report.undone)} of {len(FAULTS)} faults undone: {report.problems}")
    return took_s


def command_s(rack: FaultyRack) -> float:
    """Heal the rack by the command, its start included."""
    environment = {**os.environ, "RACKLOOP_STATE_HOME": str(rack.root)}
    began_ns = CLOCK.now_ns()
    subprocess.run(
        [sys.executable, "-m", "rackloop_cli.main", "heal", rack.lab.name],
        check=True,
        capture_output=True,
        env=environment,
    )
    return (CLOCK.now_ns() - began_ns) / 1e9


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=11)
    rounds = parser.parse_args().rounds
    with (
        tempfile.TemporaryDirectory(prefix="rl-", dir="/tmp") as home,
        faulty_rack(Path(home)) as rack,
        fault_processes() as processes,
        closing(rack.journal),
    ):
        took: dict[str, list[float]] = {"heal": [], "command": []}
        for _ in range(rounds):
            for name, measure in (("heal", heal_s), ("command", command_s)):
                processes.kill_at("mock", rack.root, FAULTS, _STEPS_OF_A_FAULT * len(FAULTS))
                took[name].append(measure(rack))
    heal, command = (statistics.median(values) for values in took.values())
    print(f"{rounds} rounds, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    print(f"heal of {len(FAULTS)} faults  {heal:.2f} s, slowest {max(took['heal']):.2f} s (target {TARGET_S} s)")
    print(f"rackloop heal mock  {command:.2f} s, slowest {max(took['command']):.2f} s, its start included")
    return 0 if heal <= TARGET_S else 1


if __name__ == "__main__":
    raise SystemExit(main())
