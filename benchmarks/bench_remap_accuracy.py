"""How far rackprobe's stamp of the first verified read lies behind the moment the drive was really online.

``python benchmarks/bench_remap_accuracy.py [--realtime] [--remaps N]`` swaps two drives behind one server port of a
mock rack, with the 1 ms attach of COMRESET, first with nothing else running, then while fio reads on another server's
ports. It compares each ``verified`` stamp with the ``online`` record of rackd's truth log (one clock), and prints
rackd's own lateness beside it. Exits 1 when the error without load is above 50 us at p99.

The figures are those of an idle machine. Where other people's work cannot be stopped, ``--realtime`` (root) gives
rackd, probe and fio SCHED_FIFO, so that they meet nobody but each other.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from rackloop.clock import Deadline  # noqa: E402 - the checkout is no package
from rackloop.errors import LabError  # noqa: E402
from rackloop.measurement import Distribution  # noqa: E402
from rackloop.native import find_binary  # noqa: E402
from rackloop_drivers.block import NbdExport  # noqa: E402
from rackloop_drivers.host import LocalExecutor  # noqa: E402
from rackloop_drivers.rackd import RackdControl  # noqa: E402
from rackloop_drivers.workload import Expected, ProbeTarget, RackProbe  # noqa: E402
from tests.deadlines import CLOCK, soon  # noqa: E402
from tests.writable_drive import minted  # noqa: E402

LIMIT_US = 50.0
DRIVE_BYTES = 64 << 20
SERVER_PORT = 1
DRIVES = {101: "RL000001", 102: "RL000002"}
LOAD_PORTS = {"p0": (5, 103), "p1": (6, 104)}


def rack(folder: Path) -> dict[str, object]:
    drives = [
        {
            "id": f"d{port - 100:02}",
            "model": "RL SSD 1",
            "serial": f"RL{port - 100:06}",
            "firmware": "1.0",
            "protocol": "sata",
            "wwn": f"5000c500a{port:07x}",
            "bytes": DRIVE_BYTES,
            "port": port,
        }
        for port in (101, 102, 103, 104)
    ]
    return {
        "schema": 1,
        "seed": 1,
        "state_dir": str(folder),
        "control": "control.sock",
        "nbd": "nbd.sock",
        "truth_log": "truth.jsonl",
        "ports": 160,
        "servers": {
            "srv1": {"stack": "comreset", "ports": {"p0": SERVER_PORT}},
            "srv2": {"stack": "comreset", "ports": {name: port for name, (port, _) in LOAD_PORTS.items()}},
        },
        "drives": drives,
        "map": [[SERVER_PORT, 101], *LOAD_PORTS.values()],
    }


def remap_errors_us(folder: Path, control: RackdControl, probe: RackProbe, remaps: int) -> Distribution:
    """One remap after the other; how late each verified stamp is, in microseconds.

    The truth is read from its file afterwards: a subscriber would be woken at the very moment that is measured.
    """
    export = NbdExport(folder / "nbd.sock", "srv1.p0", DRIVE_BYTES)
    verified_ns: dict[int, int] = {}
    with probe.remap_session([ProbeTarget("p0", export.uri)], soon(60)) as session:
        for number in range(remaps):
            port = 101 + (number + 1) % 2
            arm = session.arm("p0", Expected(DRIVES[port]), soon(60))
            control.request("announce", soon(60), ports=[SERVER_PORT])
            answer = control.request("map", soon(60), pairs=[[SERVER_PORT, port]], full=False)
            verified_ns[answer["generation"]] = session.wait_verified(arm, soon(60)).t_ns
    online_ns = onlines_ns(folder, soon(60))
    while not verified_ns.keys() <= online_ns.keys():
        online_ns = onlines_ns(folder, soon(60))
    return Distribution.of((verified_ns[number] - online_ns[number]) / 1000 for number in verified_ns)


def onlines_ns(folder: Path, deadline: Deadline) -> dict[int, int]:
    """When the drive of each generation was online on the measured port, as far as the truth log has it."""
    if deadline.is_over():
        raise LabError("the truth log lacks remaps that were verified")
    lines = (folder / "truth.jsonl").read_text().splitlines(keepends=True)
    records = [json.loads(line) for line in lines if line.endswith("\n")]
    return {
        record["generation"]: record["t_ns"]
        for record in records
        if record["event"] == "online" and record.get("switch_port") == SERVER_PORT
    }


def show(title: str, errors_us: Distribution, control: RackdControl) -> None:
    p50, p99 = errors_us.quantile(0.5), errors_us.quantile(0.99)
    print(f"{title}: {errors_us.n} remaps, error min {errors_us.minimum:.1f} us, p50 {p50:.1f} us, ", end="")
    print(f"p99 {p99:.1f} us, max {errors_us.maximum:.1f} us")
    print(f"  rackd's lateness in ns: {control.request('stats', soon(60))['lateness']}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--remaps", type=int, default=300)
    parser.add_argument("--realtime", action="store_true")
    arguments = parser.parse_args()
    remaps: int = arguments.remaps
    if arguments.realtime:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    print(f"load average {os.getloadavg()[0]:.1f}, scheduler {'SCHED_FIFO' if arguments.realtime else 'default'}")
    with tempfile.TemporaryDirectory(prefix="remap-", dir="/tmp") as name, LocalExecutor(CLOCK) as executor:
        folder = Path(name)
        config = executor.put_text("rackd.json", json.dumps(rack(folder)))
        executor.start((str(find_binary("rackd")), "--config", config)).read_line(soon(60))
        probe = RackProbe(executor, CLOCK)
        for port, serial in DRIVES.items():
            export = NbdExport(folder / "nbd.sock", f"drive.d{port - 100:02}", DRIVE_BYTES)
            with minted(export, serial) as drive:
                probe.write(drive, soon(60))
        control = RackdControl(folder / "control.sock", CLOCK)
        alone_us = remap_errors_us(folder, control, probe, remaps)
        show("nothing else running", alone_us, control)
        for port_name in LOAD_PORTS:
            uri = NbdExport(folder / "nbd.sock", f"srv2.{port_name}", DRIVE_BYTES).uri
            executor.start(
                (
                    "fio",
                    "--name=load",
                    "--ioengine=nbd",
                    f"--uri={uri}",
                    "--rw=randread",
                    "--iodepth=8",
                    f"--size={DRIVE_BYTES}",
                    "--time_based",
                    "--runtime=600",
                )
            )
        show("fio on two other ports", remap_errors_us(folder, control, probe, remaps), control)
        control.close()
    return int(alone_us.quantile(0.99) > LIMIT_US)


if __name__ == "__main__":
    sys.exit(main())
