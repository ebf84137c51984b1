"""The erasure codes beside ISA-L and jerasure from C and reed-solomon-simd from Rust, in one run and in turns.

``python benchmarks/bench_erasure.py`` compiles ``erasure/peers.c`` against Debian's libjerasure-dev, builds the crate
``erasure/simd``, and encodes and decodes codewords of 4 KiB sectors, 16 MiB of them one after another so that they are
not in the second-level cache when their turn comes. Every round takes each contestant once, in a drawn order; times are
processor time of one core, ratios are of one round, and their median is judged. ISA-L from C is the newest copy that
Rackloop found, called once a codeword (``isal``), once for 32 sectors (``isal-blocked``) or once for each
(``isal-update``). ``read`` reads the user sectors from C, in their order, and does nothing else: the ratio over it is
the fraction of what memory allows. Decoders meet another erasure pattern in each codeword. Two cores share 64 MiB a
call, in wall time, and two processes show what there is of them.

Prints a table: what is measured in columns, with its target, and for each code the median, the ratio of the fastest
times, and whether all targets are met. ``--rounds N`` (9); ``--json`` adds all times. Exits 1 when one is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from mmap import mmap
from multiprocessing import Pipe, Process
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Self

import numpy as np

from rackloop.clock import RealClock
from rackloop.seed import stream
from rackloop_models.erasure import Code, IsalEngine, best_engine, engines

HERE = Path(__file__).resolve().parent / "erasure"
SECTOR_BYTES = 4096
WORKING_SET_BYTES = 16 << 20
TWO_CORES_BYTES = 64 << 20
TIMES = 2
LIMIT_US = 1000
CLOCK = RealClock()
NS = Callable[[], float]


@dataclass(frozen=True)
class Column:
    """``at_least`` times as fast as another; None is told and not judged."""

    over: str
    at_least: float | None = None


class Peer:
    """A program that times what it is told to, for as long as this runs."""

    def __init__(self, *command: str | Path) -> None:
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, line: str) -> str:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(line, file=self.process.stdin, flush=True)
        return self.process.stdout.readline().strip()

    def prepared(self, line: str) -> NS:
        assert self.ask(f"prepare {line}") == "ready", line
        return lambda: float(self.ask("run"))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(10)


@contextmanager
def peers(engine: IsalEngine) -> Iterator[tuple[Callable[[], Peer], Callable[[], Peer]]]:
    """Compile both programs, and hand out ways to start them: one process for each thing that is timed."""
    with tempfile.TemporaryDirectory(prefix="erasure-") as folder, ExitStack() as stack:
        c, target = Path(folder) / "peers", os.environ.get("CARGO_TARGET_DIR", str(Path(folder) / "target"))
        libraries = ("-ldl", "-lJerasure", "-lgf_complete")
        flags = ("-O3", "-march=native", "-I/usr/include/jerasure")
        subprocess.run(("cc", *flags, HERE / "peers.c", "-o", c, *libraries), check=True)
        manifest = HERE / "simd" / "Cargo.toml"
        cargo = ("cargo", "build", "--release", "--quiet", "--locked", "--manifest-path", manifest)
        subprocess.run(cargo, check=True, env={**os.environ, "CARGO_TARGET_DIR": target})
        simd = Path(target) / "release" / "simd-bench"
        yield (lambda: stack.enter_context(Peer(c, engine.path))), (lambda: stack.enter_context(Peer(simd)))


def codewords(k: int, m: int, user_bytes: int = WORKING_SET_BYTES) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    """Encoded codewords of user sectors, then redundancy."""
    groups = max(1, round(user_bytes / (k * SECTOR_BYTES)))
    # Whole pages, as C has them here and as a store has them; numpy's own arrays begin 16 bytes into one.
    pages = mmap(-1, groups * (k + m) * SECTOR_BYTES)
    words = np.frombuffer(pages, np.uint8).reshape(groups, k + m, SECTOR_BYTES)
    words[:] = np.random.default_rng(1).integers(0, 256, words.shape, np.uint8)
    Code(k, m).encode_groups(words[:, :k], words[:, k:])
    return words


def spent(work: Callable[[], None], times: int) -> float:
    """Processor time of one of so many, in nanoseconds."""
    began_ns = time.process_time_ns()
    work()
    return (time.process_time_ns() - began_ns) / times


def encoders(k: int, m: int, c: Callable[[], Peer], rust: Callable[[], Peer]) -> dict[str, NS]:
    words, code = codewords(k, m), Code(k, m)
    groups, parts = len(words), code.field.parts
    data, redundancy = words[:, :k], words[:, k:]

    def one_by_one() -> None:
        for group in range(groups):
            code.encode(data[group], redundancy[group])

    shape = f"{k} {m} {parts} {SECTOR_BYTES} {groups} 1"
    ways: dict[str, NS] = {
        "rackloop": lambda: spent(lambda: code.encode_groups(data, redundancy), groups),
        "rackloop one call a codeword": lambda: spent(one_by_one, groups),
        **{name: c().prepared(f"{name} {shape}") for name in ("read", "isal", "isal-blocked", "isal-update")},
        "reed-solomon-simd": rust().prepared(f"encode {k} {m} {SECTOR_BYTES} {groups} 1"),
    }
    if parts == 1:
        ways |= {name: c().prepared(f"{name} {shape}") for name in ("jerasure", "jerasure-bitmatrix")}
    return ways


def decoders(k: int, m: int, erased: int, c: Callable[[], Peer], rust: Callable[[], Peer]) -> dict[str, NS]:
    words, code = codewords(k, m), Code(k, m)
    groups, parts = len(words), code.field.parts
    kept = words.copy()
    step = k // erased
    turn = 0

    def decode() -> None:
        nonlocal turn
        for group in range(groups):
            turn += 1
            code.decode(words[group], [(turn + at * step) % k for at in range(erased)])

    words[0, [(1 + at * step) % k for at in range(erased)]] = 0
    decode()
    assert np.array_equal(words, kept), "decoded wrongly"
    shape = f"{k} {m} {parts} {SECTOR_BYTES} {groups} {erased}"
    ways: dict[str, NS] = {
        "rackloop": lambda: spent(decode, groups),
        "read": c().prepared(f"read {shape}"),
        "reed-solomon-simd": rust().prepared(f"decode {k} {m} {SECTOR_BYTES} {groups} {erased}"),
    }
    if parts == 1:
        ways |= {name: c().prepared(f"{name} {shape}") for name in ("jerasure-decode", "jerasure-rebuild")}
    if (m, erased) == (10, 10):
        data, redundancy = words[:, :k], np.empty((groups, m, SECTOR_BYTES), np.uint8)
        ways["encode"] = lambda: spent(lambda: code.encode_groups(data, redundancy), groups)
    return ways


def in_turns(ways: dict[str, NS], rounds: int) -> dict[str, list[float]]:
    """Time each way in every round: the fastest of three, since the others' data are still in the caches at first."""
    order = stream(1, "erasure")
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name in order.sample(sorted(ways), len(ways)):
            taken[name].append(min(ways[name]() for _ in range(3)))
    return taken


def encode_when_told(k: int, m: int, told: Connection) -> None:
    """A process of its own: encode as ``two_cores`` does, each time something comes."""
    words, code = codewords(k, m, TWO_CORES_BYTES), Code(k, m)
    while told.recv():
        for _ in range(TIMES):
            code.encode_groups(words[:, :k], words[:, k:])
        told.send("done")


def spread(ns: list[float], unit_ns: float) -> str:
    return f"{median(ns) / unit_ns:.4g} / {min(ns) / unit_ns:.4g}"


def two_cores(k: int, m: int, rounds: int) -> dict[str, list[float]]:
    """Wall time of encoding with one worker, with two, and in two processes: what there is to be had of two cores."""
    words, code = codewords(k, m, TWO_CORES_BYTES), Code(k, m)
    with ExitStack() as stack:
        ends = []
        for _ in range(2):
            here, there = Pipe()
            process = Process(target=encode_when_told, args=(k, m, there))
            process.start()
            stack.callback(process.join)
            stack.callback(here.send, "")
            ends.append(here)

        def workers(count: int) -> float:
            began_ns = CLOCK.now_ns()
            for _ in range(TIMES):
                code.encode_groups(words[:, :k], words[:, k:], workers=count)
            return (CLOCK.now_ns() - began_ns) / TIMES / len(words)

        def processes() -> float:
            began_ns = CLOCK.now_ns()
            for end in ends:
                end.send("encode")
            for end in ends:
                end.recv()
            return (CLOCK.now_ns() - began_ns) / TIMES / len(words) / 2

        return in_turns({"one": lambda: workers(1), "two": lambda: workers(2), "processes": processes}, rounds)


READ = Column("read")
SIMD = Column("reed-solomon-simd")
ISAL = (Column("isal", 0.9), Column("isal-blocked", 0.9), Column("isal-update"))
ENCODE_SHORT = (READ, *ISAL, Column("jerasure", 5), Column("jerasure-bitmatrix", 5), SIMD)
ENCODE_LONG = (READ, *ISAL, Column("reed-solomon-simd", 1))
DECODE_SHORT = (READ, Column("jerasure-decode", 5), Column("jerasure-rebuild"), SIMD, Column("encode", 0.3))
DECODE_LONG = (READ, SIMD)
ONE_WORKER = Column("one worker", 1.7)


class Table:
    """Prints a line for each code, and knows whether one has missed a target."""

    def __init__(self) -> None:
        self.kept = True

    def head(self, what: str, unit: str, columns: Sequence[Column]) -> None:
        names = "".join(f"{column.over:>19}" for column in columns)
        goals = "".join(f"{f'>= {column.at_least:g}' if column.at_least else '':>19}" for column in columns)
        print(f"\n{what:<22}{unit:>18}{names}\n{'':<22}{'':>18}{goals}")

    def line(
        self,
        what: str,
        value: str,
        own: list[float],
        others: dict[str, list[float]],
        columns: Sequence[Column],
        missed: tuple[str, ...] = (),
    ) -> None:
        """``own`` times beside those of the columns' others, as far as they took part."""
        cells = ""
        for column in columns:
            if (theirs := others.get(column.over)) is None:
                cells += f"{'':>19}"
                continue
            ratio = median(other / one for other, one in zip(theirs, own, strict=True))
            cells += f"{f'{ratio:.2f} / {min(theirs) / min(own):.2f}':>19}"
            if column.at_least is not None and ratio < column.at_least:
                missed = (*missed, column.over)
        self.kept &= not missed
        verdict = f"MISSED: {', '.join(missed)}" if missed else "met"
        print(f"{what:<22}{value:>18}{cells}  {verdict}", flush=True)


SHORT = ((252, 3), (251, 4), (250, 5), (246, 9), (245, 10))
LONG = ((1019, 4), (1016, 7), (1014, 9), (1004, 19))


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    options.add_argument("--rounds", type=int, default=9)
    options.add_argument("--json", action="store_true")
    chosen = options.parse_args()
    isal = next((engine for engine in engines() if isinstance(engine, IsalEngine)), None)
    if isal is None or shutil.which("cargo") is None:
        print(f"bench_erasure: needs ISA-L and cargo, found {isal} and cargo at {shutil.which('cargo')}")
        return 2
    print(f"{best_engine()}; beside it {isal}")
    print(
        f"{SECTOR_BYTES} bytes a sector, {WORKING_SET_BYTES >> 20} MiB in turn, {chosen.rounds} rounds, load"
        f" {os.getloadavg()[0]:.1f} at the start"
    )
    print("Times as fast as others: the median of the rounds / of the fastest times; above them, the median's target.")
    print(f"Decoders of n = 1023 have to stay within {LIMIT_US} us while at most 4 sectors are erased.")
    everything: dict[str, dict[str, list[float]]] = {}
    table = Table()
    with peers(isal) as (c, rust):
        encoded: Sequence[tuple[tuple[tuple[int, int], ...], tuple[Column, ...]]] = (
            (SHORT, ENCODE_SHORT),
            (LONG, ENCODE_LONG),
        )
        for codes, columns in encoded:
            table.head("encode, times", "GB/s", columns)
            for k, m in codes:
                taken = everything[f"encode ({k}, {m})"] = in_turns(encoders(k, m, c, rust), chosen.rounds)
                own, data = taken["rackloop"], k * SECTOR_BYTES
                # Leopard's transform is promised to be beaten where there are few redundancy sectors.
                judged = (*columns[:-1], SIMD) if m > 9 else columns
                table.line(f"({k}, {m})", f"{data / median(own):.1f} / {data / min(own):.1f}", own, taken, judged)
        short = [(246, 9, erased) for erased in (1, 2, 4, 9)] + [(245, 10, 10)]
        long = [(1014, 9, erased) for erased in (1, 2, 3, 4, 7, 9)]
        for cases, compared in ((short, DECODE_SHORT), (long, DECODE_LONG)):
            table.head("decode, times", "us", compared)
            for k, m, erased in cases:
                taken = in_turns(decoders(k, m, erased, c, rust), chosen.rounds)
                everything[f"decode ({k}, {m}), {erased}"] = taken
                own = taken["rackloop"]
                slow = k > 255 and erased <= 4 and median(own) > LIMIT_US * 1e3
                missed = (f"at most {LIMIT_US} us",) if slow else ()
                table.line(f"({k}, {m}), e = {erased}", spread(own, 1e3), own, taken, compared, missed)
    table.head("two cores, times", "ms", (ONE_WORKER,))
    for k, m in ((246, 9), (1014, 9)):
        taken = everything[f"two cores ({k}, {m})"] = two_cores(k, m, chosen.rounds)
        one = {ONE_WORKER.over: taken["one"]}
        table.line(f"({k}, {m})", spread(taken["two"], 1e6), taken["two"], one, (ONE_WORKER,))
        both = taken["processes"]
        table.line("  two processes", spread(both, 1e6), both, one, (Column(ONE_WORKER.over),))
    print(f"\nload {os.getloadavg()[0]:.1f} at the end; {'all targets met' if table.kept else 'a target was MISSED'}")
    if chosen.json:
        print(json.dumps(everything))
    return int(not table.kept)


if __name__ == "__main__":
    sys.exit(main())
