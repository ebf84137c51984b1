"""How many bytes a second one core writes and verifies as identified sectors.

``python benchmarks/bench_identified_blocks.py`` runs ``rackprobe bench``: generation with CRC and verification of a
memory buffer, and in the same run, on the same bytes, the least that such a check could cost: a copy and one hardware
CRC-32C of each sector. Then it writes and verifies through NBD (nbdkit's memory plugin), for information. Exits 1
when write and verification together are below 2 GB/s.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from rackloop.native import find_binary  # noqa: E402
from rackloop_drivers.block import NbdExport  # noqa: E402
from rackloop_drivers.host import LocalExecutor  # noqa: E402
from rackloop_drivers.workload import SECTOR_BYTES, Expected, RackProbe  # noqa: E402
from tests.deadlines import CLOCK, soon  # noqa: E402
from tests.writable_drive import minted  # noqa: E402

LIMIT_GB_PER_S = 2.0
NBD_BYTES = 256 << 20


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="blocks-", dir="/tmp") as folder, LocalExecutor(CLOCK) as executor:
        done = executor.run((str(find_binary("rackprobe")), "bench", "--rounds", "50"), soon(120))
        bench = json.loads(done.stdout)
        size = bench["bytes"]
        together = size / (bench["write_ns"] + bench["verify_ns"])
        peer = size / bench["copy_and_crc_ns"]
        print(f"memory, one core, {size >> 20} MiB, median of {bench['rounds']} rounds")
        print(f"  write  {size / bench['write_ns']:.2f} GB/s   verify {size / bench['verify_ns']:.2f} GB/s")
        print(f"  write and verify together {together:.2f} GB/s (at least {LIMIT_GB_PER_S:g})")
        print(f"  copy and hardware CRC-32C {peer:.2f} GB/s: write and verify cost {peer / together:.2f} times as much")
        socket = Path(folder) / "nbd.sock"
        executor.start(
            ("nbdkit", "--foreground", "--exit-with-parent", "--unix", str(socket), "memory", f"{NBD_BYTES}")
        )
        while not socket.exists():
            CLOCK.sleep_until_ns(CLOCK.now_ns() + 10_000_000)
        export = NbdExport(socket, "", NBD_BYTES)
        probe = RackProbe(executor, CLOCK)
        sectors = NBD_BYTES // SECTOR_BYTES
        for title in ("first write", "rewrite"):
            with minted(export, "BENCH") as drive:
                written = probe.write(drive, soon(120), sectors=sectors)
            print(f"nbdkit memory, {title}: {written.bytes / written.elapsed_ns:.2f} GB/s")
        verified = probe.verify(export, Expected("BENCH"), soon(120), sectors=sectors)
        print(f"nbdkit memory, verify: {verified.bytes / verified.elapsed_ns:.2f} GB/s, all right: {verified.is_right}")
    return int(together < LIMIT_GB_PER_S)


if __name__ == "__main__":
    sys.exit(main())
