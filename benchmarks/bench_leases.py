"""What a lease costs: all of a rack leased and released, and a hundred clients who all want it.

Usage: python benchmarks/bench_leases.py [ROUNDS]. Both are judged on SQLite and, where PostgreSQL is installed, on a
server of its own: the median against 10 ms, and that no port is granted twice. The disk decides; what it takes to sync
20 KiB is printed beside.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from rackloop.clock import RealClock
from rackloop.lab import Part, Parts, load_lab, parts_of
from rackloop.safety.leases import Holder, Leases, LeaseTerms, holding
from rackloop.safety.store import open_store

CLOCK = RealClock()
CLIENTS = 100
PROCESSES = 4
TARGET_MS = 10.0
AS_CLIENT = "--client"


def main() -> int:
    """Print the table; 1 where a target is missed or a port was granted twice."""
    if sys.argv[1:2] == [AS_CLIENT]:
        where, first, clients, turns, log = sys.argv[2:]
        return _compete(where, range(int(first), int(first) + int(clients)), int(turns), Path(log))
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    from tests.postgres_server import running_postgres

    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        stores = {"SQLite": str(folder / "store.sqlite")}
        try:
            stores["PostgreSQL"] = stack.enter_context(running_postgres(synced=True)).database()
        except pytest.skip.Exception as skipped:
            print(f"PostgreSQL is not judged: {skipped}")
        sound = True
        for name, where in stores.items():
            sound &= _whole_rack(name, where, rounds)
            sound &= _competing(name, where, folder, turns=3)
    return 0 if sound else 1


def _whole_rack(name: str, where: str, rounds: int) -> bool:
    wanted = parts_of(load_lab("mock"))
    with closing(open_store(where, CLOCK)) as store:
        leases, me = Leases(store, "mock"), Holder.here()
        took: list[float] = []
        for _ in range(rounds):
            begun_ns = CLOCK.now_ns()
            ticket = leases.request(wanted, me)
            leases.release(ticket)
            took.append((CLOCK.now_ns() - begun_ns) / 1e6)
    p50, p99 = _quantiles(took)
    meets = p50 <= TARGET_MS
    synced = _quantiles(_syncs_ms(rounds))
    print(
        f"{name}: {len(wanted.switch_ports)} ports leased and released, {rounds} times: "
        f"p50 {p50:.2f} ms, p99 {p99:.2f} ms "
        f"({'meets' if meets else 'MISSES'} {TARGET_MS:g} ms at p50); a sync of the disk p50 {synced[0]:.2f} ms, "
        f"p99 {synced[1]:.2f} ms"
    )
    return meets


def _syncs_ms(rounds: int) -> list[float]:
    took: list[float] = []
    with tempfile.TemporaryFile() as file:
        for _ in range(rounds):
            os.write(file.fileno(), bytes(20 << 10))
            begun_ns = CLOCK.now_ns()
            os.fdatasync(file.fileno())
            took.append((CLOCK.now_ns() - begun_ns) / 1e6)
    return took


def _quantiles(values: list[float]) -> tuple[float, float]:
    ordered = sorted(values)
    return ordered[len(ordered) // 2], ordered[round(0.99 * (len(ordered) - 1))]


def _competing(name: str, where: str, folder: Path, turns: int) -> bool:
    """A hundred clients in a few processes, each with a connection of its own and parts that overlap others'."""
    each = CLIENTS // PROCESSES
    logs = [folder / f"{name}-{number}" for number in range(PROCESSES)]
    clients = [
        subprocess.Popen(
            [sys.executable, __file__, AS_CLIENT, where, str(number * each), str(each), str(turns), str(log)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for number, log in enumerate(logs)
    ]
    for client in clients:
        assert client.stdout is not None
        client.stdout.readline()
    begun_ns = CLOCK.now_ns()
    for client in clients:
        assert client.stdin is not None
        client.stdin.write(b"go\n")
        client.stdin.flush()
    failed = sum(client.wait() != 0 for client in clients)
    took_s = (CLOCK.now_ns() - begun_ns) / 1e9
    for client in clients:
        for stream in (client.stdin, client.stdout):
            assert stream is not None
            stream.close()
    spans = sorted(tuple(map(int, line.split())) for log in logs for line in log.read_text().splitlines())
    twice = sum(
        one[1] > other[0] and one[2] <= other[3] and other[2] <= one[3]
        for number, one in enumerate(spans)
        for other in spans[number + 1 :]
    )
    tokens = len({span[4] for span in spans})
    is_sound = failed == 0 and twice == 0 and tokens == len(spans) == CLIENTS * turns
    print(
        f"{name}: {CLIENTS} clients, {len(spans)} grants in {took_s:.1f} s, {1e3 * took_s / max(1, len(spans)):.1f} ms "
        f"a grant; {failed} processes failed, {twice} ports granted twice, {tokens} different tokens"
    )
    return is_sound


def _compete(where: str, numbers: range, turns: int, log: Path) -> int:
    """As one of the processes: have each of its clients lease parts in turn, and write when each was held."""
    ports = [frozenset(range(n, n + 8)) for n in range(1, 160, 4)]

    def held(number: int) -> list[tuple[int, ...]]:
        spans: list[tuple[int, ...]] = []
        with closing(open_store(where, CLOCK)) as store:
            for turn in range(turns):
                wanted = Parts(map(Part.switch_port, ports[(number * 7 + turn * 11) % len(ports)]))
                with holding(Leases(store, "lab"), wanted, LeaseTerms(wait_s=600.0)) as lease:
                    begun_ns = CLOCK.now_ns()
                    lease.require()
                    spans.append(
                        (
                            begun_ns,
                            CLOCK.now_ns(),
                            min(wanted.switch_ports),
                            max(wanted.switch_ports),
                            lease.lease.token,
                        )
                    )
        return spans

    with ThreadPoolExecutor(len(numbers)) as pool:
        print("ready", flush=True)
        sys.stdin.readline()
        spans = [span for each in pool.map(held, numbers) for span in each]
    log.write_text("".join(f"{' '.join(map(str, span))}\n" for span in spans))
    return 0


if __name__ == "__main__":
    sys.exit(main())
