"""Virtual time: simulated I/Os a second of one core, and the same scenario in SimPy.

16 tenants keep 32 random reads of 4 KiB each outstanding, on one NVMe drive through Gimbal. What is told is processor
time, by the difference of two runs whose measured times differ, so that filling the drive, starting the program and
summing up are not in it: the least of the rounds. The drive of the first figure is full, so that every read goes
through the translation layer, a die and its channel.

SimPy has no such drive, and one written for this would be the slower for being in Python. So both have the same simple
one for the ratio: what was never written is answered by the controller of drivesim's model and carried over its link,
and SimPy models just these two (``_simpy_scenario.py``). That is simpler than what drivesim does meanwhile; both
complete the same number of requests, which is checked. Gimbal is in Python there.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence

from benchmarks.tenancy._drivesim import FILL, GIB, WARM_UP_S, run, tenants, timing
from benchmarks.tenancy._figure import Figure, least
from benchmarks.tenancy._simpy_scenario import Scenario, SimpleDrive
from rackloop.errors import ToolError

TENANTS, DEPTH, SIZE = 16, 32, 4 * GIB
# A short run has grown its histograms too; beside a long one, the noise of the fill is little.
SHORT_S, LONG_S = 0.1, 2.0
SIMPY_S = 0.05
PER_SECOND = 5e6
OVER_SIMPY = 20.0
ALIKE = 0.02


def processor_ns(*, is_full: bool) -> tuple[float, float]:
    """Processor time of a simulated I/O, and simulated I/Os a virtual second."""
    before = [FILL] if is_full else []
    short, long = (run([*before, tenants(TENANTS, seconds, SIZE)], SIZE) for seconds in (SHORT_S, LONG_S))
    requests = long.requests - short.requests
    return (long.processor_s - short.processor_s) * 1e9 / requests, long.requests / LONG_S


def simpy_ns() -> tuple[float, float]:
    """The same of the scenario in SimPy."""
    model = timing()
    drive = SimpleDrive(model["command_us"], 4096 / model["interface_mb_s"])
    scenario = Scenario(drive, TENANTS, DEPTH, 4096, SIZE // TENANTS)
    scenario.run(WARM_UP_S)
    began_s = time.process_time()
    requests = scenario.run(SIMPY_S)
    return (time.process_time() - began_s) * 1e9 / requests, requests / SIMPY_S


def figures(rounds: int) -> Sequence[Figure]:
    """Measure in turns."""
    full_ns = least(lambda: processor_ns(is_full=True)[0], 2 * rounds)
    ratios, simple_ns, python_ns = [], [], []
    for _ in range(rounds):
        (ours_ns, ours), (theirs_ns, theirs) = processor_ns(is_full=False), simpy_ns()
        if abs(ours / theirs - 1) > ALIKE:
            raise ToolError(f"no comparison: {ours:,.0f} I/Os a virtual second in drivesim, {theirs:,.0f} in SimPy")
        ratios.append(theirs_ns / ours_ns)
        simple_ns.append(ours_ns)
        python_ns.append(theirs_ns)
    ratio = statistics.median(ratios)
    rate = 1e9 / full_ns
    spread = f"{min(ratios):.0f}-{max(ratios):.0f}"
    return [
        Figure(
            "virtual time, NVMe model, simulated I/Os a second",
            f"{rate / 1e6:.2f} M ({full_ns:.0f} ns)",
            f"{PER_SECOND / 1e6:.0f} M",
            rate >= PER_SECOND,
        ),
        Figure(
            "the same over SimPy, simple drive on both",
            f"{ratio:.0f} ({spread}; {min(simple_ns):.0f} ns, {min(python_ns) / 1e3:.0f} us)",
            f"{OVER_SIMPY:.0f} times",
            ratio >= OVER_SIMPY,
        ),
    ]
