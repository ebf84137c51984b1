"""What a server's drive costs the harness by SSH: ``rackprobe serve`` over a real sshd against a local NBD server.

Both serve the same file of 64 MiB on this machine, to the same session class, and are measured in turns: 4 KiB random
reads one at a time and 32 in flight, 4 KiB writes (before each the guard looks at the drive once more, on the server),
and streams of 1 MiB requests. Prints the figures of both and the ratio, median over the rounds with lowest and highest.
The sshd, the server's program and the client share the machine's cores: a rack's servers have their own.

    python benchmarks/bench_probe_serve.py [--rounds 7]
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks._bench import paired  # noqa: E402 - the checkout is no package
from rackloop.clock import RealClock  # noqa: E402
from rackloop.seed import stream  # noqa: E402
from rackloop_drivers.block import NbdExport  # noqa: E402
from rackloop_drivers.block.nbd_session import NbdSession  # noqa: E402
from rackloop_drivers.block.nbd_session._connection import Request  # noqa: E402
from rackloop_drivers.block_io import address_of  # noqa: E402
from tests.drive_server import BYTES, running_drive_server  # noqa: E402
from tests.nbdkit_process import serving_unix  # noqa: E402
from tests.writable_drive import minted  # noqa: E402

CLOCK = RealClock()
BLOCK = 4096
MIB = 1 << 20
IOS = 400


class Session(NbdSession):
    """A session whose connection can be asked for many small reads at once."""

    def read_all(self, requests: list[Request]) -> None:
        """Have 32 of them in flight."""
        self._connection.carry_out("read", requests, in_flight=32)


Measure = Callable[[Session], float]


def timed(work: Callable[[], object]) -> float:
    began_ns = CLOCK.now_ns()
    work()
    return (CLOCK.now_ns() - began_ns) / 1e9


def places() -> list[int]:
    chance = stream(7, "places")
    return [chance.randrange(BYTES // BLOCK) * BLOCK for _ in range(IOS)]


def reads_one_by_one(session: Session) -> float:
    """Microseconds a read."""
    at = places()
    return timed(lambda: [session.read(offset, BLOCK) for offset in at]) / IOS * 1e6


def reads_in_flight(session: Session) -> float:
    """Microseconds a read, of 32 in flight."""
    buffer = bytearray(BLOCK * IOS)
    start = address_of(buffer)
    requests = [
        Request(
            "nbd_aio_pread",
            (ctypes.c_void_p(start + number * BLOCK), ctypes.c_size_t(BLOCK), ctypes.c_uint64(offset)),
        )
        for number, offset in enumerate(places())
    ]
    return timed(lambda: session.read_all(requests)) / IOS * 1e6


def writes_one_by_one(session: Session) -> float:
    """Microseconds a write."""
    at, data = places(), b"\x5a" * BLOCK

    def write_all() -> None:
        for offset in at:
            session.write(offset, data)

    return timed(write_all) / IOS * 1e6


def reads_streamed(session: Session) -> float:
    """Milliseconds a MiB."""
    return timed(lambda: [session.read(offset, MIB) for offset in range(0, BYTES, MIB)]) / (BYTES // MIB) * 1e3


def writes_streamed(session: Session) -> float:
    """Milliseconds a MiB."""
    data = os.urandom(MIB)

    def write_all() -> None:
        for offset in range(0, BYTES, MIB):
            session.write(offset, data)

    return timed(write_all) / (BYTES // MIB) * 1e3


MEASURES: dict[str, Measure] = {
    "4 KiB random reads, one at a time, us": reads_one_by_one,
    "4 KiB random reads, 32 in flight, us": reads_in_flight,
    "4 KiB random writes, one at a time, us": writes_one_by_one,
    "1 MiB reads, ms": reads_streamed,
    "1 MiB writes, ms": writes_streamed,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    load = os.getloadavg()
    with tempfile.TemporaryDirectory(prefix="probe-serve-", dir="/tmp") as name:
        folder = Path(name)
        with running_drive_server(folder) as server:
            server.content.write_bytes(os.urandom(BYTES))
            exports = ["file", f"file={server.content}"]
            with (
                serving_unix(folder / "nbd.sock", exports) as path,
                minted(server.device) as far_permit,
                Session(far_permit, CLOCK) as far,
                minted(NbdExport(path, "", BYTES)) as near_permit,
                Session(near_permit, CLOCK) as near,
            ):
                results = {
                    what: paired(lambda one=measure: one(far), lambda one=measure: one(near), rounds).as_dict()  # type: ignore[misc]
                    for what, measure in MEASURES.items()
                }
    print(json.dumps({"load": load, "by SSH over local": results}, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
