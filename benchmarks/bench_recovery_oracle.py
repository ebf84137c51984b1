"""What the recovery oracle takes to write and verify a drive, beside fio's own verify (crc32c), in one run, in turns.

``python benchmarks/bench_recovery_oracle.py`` serves one simulated drive without a timing model. The oracle writes
identified blocks through a plain-blocks adapter on an NbdSession, flushes, and reads and verifies them; fio writes and
verifies the same range of the same export with its nbd engine, requests of 1 MiB, 1 and 8 at a time: the faster of the
two counts. Prints what the session takes without making or looking at content, too, and what memory allows.
Then the same through a local erasure-coded store on a hard disk model, beside fio on that drive without a store.
Exits 1 when the median of the rounds' ratios is above 1.25 there.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks._bench import Paired, paired  # noqa: E402 - the checkout is no package
from rackloop.clock import Deadline, RealClock  # noqa: E402
from rackloop.lab import load_profile  # noqa: E402
from rackloop_drivers.block import NbdExport  # noqa: E402
from rackloop_drivers.block.nbd_session import NbdSession  # noqa: E402
from rackloop_drivers.open_blocks import open_blocks  # noqa: E402
from rackloop_models.local_erasure import Layout, LocalStore, format_drive  # noqa: E402
from rackloop_models.under_test import LocalStoreUnderTest  # noqa: E402
from rackloop_oracles.recovery import SECTOR_BYTES, BlockSystem, Identity, RecoveryOracle, SystemUnderTest  # noqa: E402
from tests.rackd_process import drive, running_rackd, small_rack  # noqa: E402
from tests.writable_drive import minted  # noqa: E402

CLOCK = RealClock()
DRIVE_BYTES = 256 << 20
REQUEST_BYTES = 1 << 20
DEPTHS = (1, 8)
ROUNDS = 9
STORE_ROUNDS = 3
# Room for the file, its redundancy, and groups that are written anew.
STORE_BYTES = 1 << 30
LAYOUT = Layout.for_failure_probability(1e-3, 1023)
MEMORY_ROUNDS = 15
LIMIT = 1.25


def seconds_of_fio(uri: str, folder: str, depth: int) -> float:
    """Writing and verifying, by fio's own account."""
    options = {
        "name": "verify",
        "ioengine": "nbd",
        "uri": uri,
        "rw": "write",
        "bs": str(REQUEST_BYTES),
        "size": str(DRIVE_BYTES),
        "iodepth": str(depth),
        "verify": "crc32c",
        "do_verify": "1",
        "verify_state_save": "0",
        "end_fsync": "1",
        "output-format": "json",
    }
    argv = ["fio", *(f"--{name}={value}" for name, value in options.items())]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, cwd=folder)
    job = json.loads(done.stdout[done.stdout.index("{") :])["jobs"][0]
    assert job["error"] == 0
    return float(job["write"]["runtime"] + job["read"]["runtime"]) / 1e3


def seconds_since(began_ns: int) -> float:
    return (CLOCK.now_ns() - began_ns) / 1e9


def seconds_of_oracle(system: SystemUnderTest) -> float:
    with RecoveryOracle(system, Deadline.after(CLOCK, 120), seed=1) as oracle:
        blocks = oracle.description.blocks
        began_ns = CLOCK.now_ns()
        assert oracle.write(0, blocks) == blocks
        oracle.flush()
        oracle.forget()
        reading = oracle.verify(0, blocks)
        taken_s = seconds_since(began_ns)
        assert (reading.blocks, reading.observations) == (blocks, [])
    return taken_s


def seconds_raw(session: NbdSession) -> float:
    """The session alone, with nothing made and nothing looked at."""
    data = bytes(range(256)) * (REQUEST_BYTES // 256)
    began_ns = CLOCK.now_ns()
    for offset in range(0, DRIVE_BYTES, REQUEST_BYTES):
        session.write(offset, data)
    session.flush()
    for offset in range(0, DRIVE_BYTES, REQUEST_BYTES):
        session.read(offset, REQUEST_BYTES)
    return seconds_since(began_ns)


def made_bytes_per_s() -> float:
    """How fast identified sectors are made in memory, at best: verifying makes them and compares."""
    identity, sectors = Identity("bench", 1), 4096
    lbas, generations = np.arange(sectors, dtype=np.uint64), np.ones(sectors, np.uint64)
    taken_s = []
    for _ in range(MEMORY_ROUNDS):
        began_ns = CLOCK.now_ns()
        for _part in identity.parts(lbas, generations):
            pass
        taken_s.append(seconds_since(began_ns))
    return sectors * SECTOR_BYTES / min(taken_s)


def through_the_store() -> Paired:
    """The oracle on a file of a store on a hard disk model, over fio on that drive."""
    profile = load_profile("sata-hdd")
    disk = drive(1, bytes=STORE_BYTES, rotational=True, timing=dict(profile.timing)) | {"port": None}
    with (
        tempfile.TemporaryDirectory(prefix="oracle-", dir="/tmp") as folder,
        running_rackd(Path(folder), small_rack() | {"drives": [disk]}) as rackd,
    ):
        export = NbdExport(rackd.nbd, "drive.d01", STORE_BYTES)
        uri = rackd.uri("drive.d01")

        def oracle_s() -> float:
            with minted(export) as writable, open_blocks(writable, CLOCK, within_s=30.0) as blocks:
                format_drive(blocks, LAYOUT, files=16)
                count = DRIVE_BYTES // SECTOR_BYTES
                with LocalStoreUnderTest(lambda: LocalStore(blocks, CLOCK), blocks=count) as system:
                    return seconds_of_oracle(system)

        return paired(oracle_s, lambda: min(seconds_of_fio(uri, folder, depth) for depth in DEPTHS), STORE_ROUNDS)


def main() -> int:
    config = small_rack() | {"drives": [drive(1, bytes=DRIVE_BYTES)]}
    with (
        tempfile.TemporaryDirectory(prefix="oracle-", dir="/tmp") as folder,
        running_rackd(Path(folder), config) as rackd,
    ):
        export = NbdExport(rackd.nbd, "drive.d01", DRIVE_BYTES)
        uri = rackd.uri("drive.d01")
        with minted(export) as writable, NbdSession(writable, CLOCK) as session:
            seconds_raw(session)
            both = paired(
                lambda: seconds_of_oracle(BlockSystem(session, "bench")),
                lambda: min(seconds_of_fio(uri, folder, depth) for depth in DEPTHS),
                ROUNDS,
            )
            raw_s = min(seconds_raw(session) for _ in range(3))
    stored = through_the_store()
    result = {
        "seconds_oracle_through_the_store_over_fio_on_a_hard_disk": stored.as_dict(),
        "seconds_oracle_over_fio": both.as_dict(),
        "seconds_of_the_session_alone": raw_s,
        "made_in_memory_GB_per_s": made_bytes_per_s() / 1e9,
        "limit": LIMIT,
        "met": stored.ratio <= LIMIT,
    }
    print(json.dumps(result, indent=2))
    return int(not result["met"])


if __name__ == "__main__":
    sys.exit(main())
