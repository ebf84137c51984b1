"""How long a virtual rack takes to come up from its saved guest, and a drive to move from one guest to another.

Run it with the Python that has Rackloop installed: ``python benchmarks/bench_virtual_rack.py [--rounds N]``. The guests
are built first where they are not, in the user's state directory; that is timed if it happens. Target: three guests
usable by SSH in 15 s, each with no more than 1 GiB of memory. A move is timed by the clock here: from the command to
the switch's answer, when the one guest has let go and the drive is plugged into the other, and to the arrival of the
news that a read there brought back the drive's own sector, the way of the news by SSH included.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from pathlib import Path

from rackloop.clock import Deadline, RealClock
from rackloop.errors import BadInput
from rackloop.lab import Lab, LabState, load_lab, once_online, state_root
from rackloop.portmap import Partial, PortMap
from rackloop.safety import Guard
from rackloop.safety.leases import LeaseTerms, leased
from rackloop.safety.store import open_store
from rackloop_drivers.host import run_on_all
from rackloop_drivers.workload import Expected, ProbeTarget, RackProbe
from rackloop_labs import Bench, open_lab, open_leased
from rackloop_labs.virtual import VirtualLab

UP_TARGET_S = 15.0
MEMORY_MIB = 1024
WITHIN_S = 120.0
# With 299 the slowest lies beyond p99 in 95 of 100 runs.
FEWEST_FOR_P99 = 299
PLACES = (("srv1", "p0"), ("srv2", "p2"))
DRIVE = "d01"
CLOCK = RealClock()


def soon() -> Deadline:
    return Deadline.after(CLOCK, WITHIN_S)


def since_s(began_ns: int) -> float:
    return (CLOCK.now_ns() - began_ns) / 1e9


def moves(bench: Bench, guard: Guard, rounds: int) -> list[tuple[float, float]]:
    """For each move, the seconds to the switch's answer and to the news of the first verified read."""
    lab = bench.lab
    once_online(bench.drive(*PLACES[0]), soon())
    with guard.writable(DRIVE, bench.drive(*PLACES[0]), bench.device(*PLACES[0]), soon()) as permit:
        RackProbe(bench.host(PLACES[0][0]), CLOCK).write(permit, soon(), generation=1, seed=1)
    expected = Expected(lab.drives[DRIVE].serial, 1, 1)
    took = []
    for number in range(1, rounds + 1):
        server, port = place = PLACES[number % 2]
        probe = RackProbe(bench.host(server), CLOCK)
        # The device itself has no name before a drive is there.
        target = ProbeTarget(port, f"/dev/disk/by-path/{lab.servers[server].paths[port]}-nvme-1")
        with probe.remap_session([target], soon(), poll_us=2000, spin=False) as session:
            arm = session.arm(port, expected, soon())
            began_ns = CLOCK.now_ns()
            change = Partial(PortMap.of([(lab.switch_port(*place), lab.where_is(DRIVE))]))
            bench.equipment.fabric.apply(change, soon())
            answered_s = since_s(began_ns)
            session.wait_verified(arm, soon())
            took.append((answered_s, since_s(began_ns)))
    return took


def up_s(virtual: VirtualLab, lab: Lab) -> float:
    """The seconds from the command until a command has run on every guest by SSH; the lab is up then."""
    began_ns = CLOCK.now_ns()
    virtual.up()
    with open_lab(lab, CLOCK, virtual.state, None, bring_up=False) as bench:
        run_on_all([bench.host(server) for server in lab.servers], lambda host, by: host.run(("true",), by), soon())
    return since_s(began_ns)


def memory_mib(lab_process: int) -> list[float]:
    """The memory that each QEMU of the lab holds, the saved guest's pages that they share counted for each."""
    found = []
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            said = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
        except OSError:
            continue  # It has ended meanwhile.
        if int(said["PPid"]) == lab_process and said["Name"].strip().startswith("qemu-system"):
            found.append(int(said["VmRSS"].split()[0]) / 1024)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=11)
    rounds = parser.parse_args().rounds
    kept = state_root() / "guests"
    kept.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="rl-", dir="/tmp") as home:
        os.environ["RACKLOOP_STATE_HOME"] = home
        (Path(home) / "guests").symlink_to(kept)
        lab = load_lab("virtual")
        virtual = VirtualLab(lab, CLOCK)
        began_ns = CLOCK.now_ns()
        try:
            _, is_new = virtual.build(lambda step: print(step, file=sys.stderr))
        except BadInput as error:
            print(f"not measured: {error}")
            return 0
        if is_new:
            print(f"built and booted once             {since_s(began_ns):.0f} s")
        ups = []
        for _ in range(3):
            virtual.down()
            ups.append(up_s(virtual, lab))
        try:
            store = open_store(Path(home) / "store.sqlite", CLOCK)
            state = LabState.of(lab.name)
            with (
                leased(lab, store, LeaseTerms()) as held,
                open_leased(lab, CLOCK, state, held, bring_up=False) as bench,
            ):
                took = moves(bench, Guard(bench.lab, held, seen=bench.survey()), rounds)
            store.close()
            memory = memory_mib(int(state.endpoints()["pid"]))
        finally:
            virtual.down()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {len(lab.servers)} guests")
    print(f"up, a command run on every guest  {' '.join(f'{one:.1f}' for one in ups)} s (target {UP_TARGET_S:g})")
    print(f"memory of a guest that was at work  {' '.join(f'{one:.0f}' for one in memory)} MiB (target {MEMORY_MIB})")
    for what, each in zip(("switch answers", "first verified read"), zip(*took, strict=True), strict=True):
        figures = {"p50": statistics.median(each), f"slowest of {rounds}": max(each)}
        if rounds >= FEWEST_FOR_P99:
            figures["p99"] = statistics.quantiles(each, n=100)[98]
        print(f"move of a drive, {what:19} {', '.join(f'{name} {one:.2f} s' for name, one in figures.items())}")
    return int(min(ups) > UP_TARGET_S or max(memory) > MEMORY_MIB)


if __name__ == "__main__":
    raise SystemExit(main())
