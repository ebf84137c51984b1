"""What local erasure coding takes of the speed of workloads: fio mixes on a mounted store, beside a drive that never
fails (Figure 9 of the paper on local erasure coding).

Run with ``python benchmarks/bench_store_workloads.py [--json FILE] [--ph P ...] [--kind KIND ...] [--rounds N]
[--codeword N] [--mib SIZE]``. Needs fio, FUSE and a release build of native/. Each kind of I/O is measured by real fio,
in turns: on the export of a hard disk model whose sectors never fail; on the same through FUSE, by the way a store is
mounted and without one; and on a file of a mounted store on the same model with sectors that fail at the first attempt.
A workload is a mix of the kinds, with the shares that ``rackloop model erasure slowdown`` assumes; it loses time beside
the drive, and beside FUSE alone. Speeds are medians of the rounds. A round takes 20 s and 25 s more for each ph;
``--kind streamed --ph 0`` is a short one.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from rackloop.clock import RealClock  # noqa: E402 - the checkout is no package
from rackloop.errors import ToolError  # noqa: E402
from rackloop.lab import load_profile  # noqa: E402
from rackloop_drivers.block import NbdExport  # noqa: E402
from rackloop_drivers.open_blocks import open_blocks  # noqa: E402
from rackloop_models.local_erasure import Layout, format_drive  # noqa: E402
from rackloop_models.local_erasure._idle import IDLE_S  # noqa: E402
from rackloop_models.tail_latency import WORKLOADS  # noqa: E402
from tests.rackd_process import RunningRackd, drive, running_rackd, small_rack  # noqa: E402
from tests.store_mount import served  # noqa: E402
from tests.writable_drive import minted  # noqa: E402

CLOCK = RealClock()
DRIVE_BYTES = 4 << 30
# 250 sectors of 4 KiB a revolution, and commands quicker than a sector passes: the drive of the paper's analysis.
PAPER = {"outer_mb_s": 122.88, "inner_mb_s": 122.88, "command_overhead_us": 25}
# How fio does each kind, and the share of the file it goes through.
KINDS: Mapping[str, tuple[str, int, float]] = {
    "streamed": ("read", 1 << 20, 1.0),
    "touched": ("randread", 512 << 10, 0.1),
    "small": ("randread", 64 << 10, 0.02),
    "written": ("write", 1 << 20, 0.5),
}


def fio(kind: str, size_bytes: int, *target: str, share: float | None = None) -> float:
    """Bytes a second of one kind of I/O; the page cache is dropped first, and what was written is flushed."""
    path = shutil.which("fio")
    if path is None:
        raise ToolError("fio is not installed: apt-get install fio")
    rw, block_bytes, usual = KINDS[kind]
    # Each kind has places of its own: what one has read may be in the store's cache for the next.
    io_bytes = max(block_bytes, round(size_bytes * (share or usual)) // block_bytes * block_bytes)
    command = [path, f"--name={kind}", f"--rw={rw}", f"--bs={block_bytes}", f"--size={size_bytes}", *target]
    command += [f"--io_size={io_bytes}", f"--randseed={sum(kind.encode())}", "--end_fsync=1", "--thread"]
    command += ["--output-format=json"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    job = json.loads(text[text.index("{") :])["jobs"][0]
    if job["error"]:
        raise ToolError(f"fio ended {kind} with error {job['error']}")
    done = job["write" if kind == "written" else "read"]
    return float(done["io_bytes"] / (done["runtime"] / 1e3))


def rack(ph: float) -> dict[str, Any]:
    """A rackd with one hard disk, of which sectors fail with probability ``ph``."""
    profile = load_profile("sata-hdd")
    timing = {**profile.timing, **PAPER, "read_error_probability": ph}
    only = drive(1, bytes=DRIVE_BYTES, rotational=True, timing=timing) | {"port": None}
    return small_rack() | {"drives": [only]}


def on_the_drive(kinds: Sequence[str], size_bytes: int) -> dict[str, float]:
    """Each kind on a drive whose sectors never fail, without a store."""
    with tempfile.TemporaryDirectory(prefix="bench", dir="/tmp") as name, running_rackd(Path(name), rack(0)) as rackd:
        target = ("--ioengine=nbd", f"--uri={rackd.uri('drive.d01')}")
        fio("written", size_bytes, *target, share=1.0)
        return {kind: fio(kind, size_bytes, *target) for kind in kinds}


def through_fuse(kinds: Sequence[str], size_bytes: int) -> dict[str, float]:
    """Each kind on that drive as a file, served as a store is and without one."""
    with tempfile.TemporaryDirectory(prefix="bench", dir="/tmp") as name, running_rackd(Path(name), rack(0)) as rackd:
        folder = Path(name) / "mnt"
        folder.mkdir()
        command = [sys.executable, "-m", "benchmarks._fuse_floor", str(folder), str(rackd.nbd), "drive.d01"]
        server = subprocess.Popen(
            [*command, str(DRIVE_BYTES), str(size_bytes)], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        try:
            if not (server.stdout and server.stdout.readline().strip() == "ready"):
                raise ToolError("the drive could not be served through FUSE; what it said is above")
            target = ("--ioengine=psync", f"--filename={folder / 'file'}")
            fio("written", size_bytes, *target, share=1.0)
            return {kind: fio(kind, size_bytes, *target) for kind in kinds}
        finally:
            server.terminate()
            server.wait()


def in_a_store(layout: Layout, ph: float, kinds: Sequence[str], size_bytes: int) -> dict[str, float]:
    """Each kind on a file of a mounted store; the last writes it anew."""
    with tempfile.TemporaryDirectory(prefix="bench", dir="/tmp") as name, running_rackd(Path(name), rack(ph)) as rackd:
        export = _formatted(rackd, layout)
        with served(export, Path(name) / "mnt", idle_s=IDLE_S) as store:
            target = ("--ioengine=psync", f"--filename={store.folder / 'file'}")
            fio("written", size_bytes, *target, share=1.0)
            found = {kind: fio(kind, size_bytes, *target) for kind in kinds}
            store.end()
    return found


def _formatted(rackd: RunningRackd, layout: Layout) -> NbdExport:
    export = NbdExport(rackd.nbd, "drive.d01", DRIVE_BYTES)
    with minted(export) as permit, open_blocks(permit, CLOCK, within_s=30.0) as blocks:
        format_drive(blocks, layout, files=16)
    return export


def lost(shares: Mapping[str, float], base: Mapping[str, float], found: Mapping[str, float]) -> float:
    """The throughput that a mix loses: its time is that of its bytes, each kind in turn."""
    before = sum(share / base[kind] for kind, share in shares.items())
    return 1 - before / sum(share / found[kind] for kind, share in shares.items())


def medians(rounds: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The median of each kind."""
    return {kind: statistics.median(found[kind] for found in rounds) for kind in rounds[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    parser.add_argument("--ph", type=float, nargs="+", default=[0.0, 1e-4, 5e-4, 1e-3, 5e-3])
    parser.add_argument("--kind", nargs="+", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--codeword", type=int, default=255)
    parser.add_argument("--mib", type=int, default=384, help="size of the file")
    options = parser.parse_args()
    size_bytes, kinds = options.mib << 20, options.kind
    layouts = {ph: Layout.for_failure_probability(ph or 1e-4, options.codeword) for ph in options.ph}
    parties: dict[str, Callable[[], dict[str, float]]] = {
        "the drive, no failures": lambda: on_the_drive(kinds, size_bytes),
        "through FUSE, no store": lambda: through_fuse(kinds, size_bytes),
    } | {
        f"({layout.k}, {layout.m}), ph {ph:g}": partial(in_a_store, layout, ph, kinds, size_bytes)
        for ph, layout in layouts.items()
    }
    rounds = [{name: party() for name, party in parties.items()} for _ in range(options.rounds)]
    speeds = {name: medians([found[name] for found in rounds]) for name in parties}
    drive, fuse = (speeds[name] for name in list(parties)[:2])
    print(f"{'MB/s':26}" + "".join(f"{kind:>12}" for kind in kinds))
    losses: dict[str, dict[str, dict[str, float]]] = {}
    for name, speed in speeds.items():
        print(f"{name:26}" + "".join(f"{speed[kind] / 1e6:12.1f}" for kind in kinds))
        print(f"{'  over the drive':26}" + "".join(f"{speed[kind] / drive[kind]:12.2f}" for kind in kinds))
        if set(kinds) != set(KINDS):
            continue
        for peer, base in (("the drive", drive), ("FUSE alone", fuse)):
            mixes = {
                workload.name: lost({kind: getattr(workload, kind) for kind in KINDS}, base, speed)
                for workload in WORKLOADS
            }
            losses.setdefault(name, {})[peer] = mixes
            print(f"  lost beside {peer}: " + ", ".join(f"{mix} {share:.1%}" for mix, share in mixes.items()))
    if options.json:
        options.json.write_text(json.dumps({"rounds": rounds, "speed": speeds, "lost": losses}, indent=2))


if __name__ == "__main__":
    main()
