"""The erasure codes beside ISA-L and jerasure from C and reed-solomon-simd from Rust, in one run and in turns.

``python benchmarks/bench_erasure.py`` compiles ``erasure/peers.c`` against Debian's libisal-dev and libjerasure-dev and
builds the crate ``erasure/simd``, then encodes and decodes codewords of 4 KiB sectors, 16 MiB of them one after another
so that they are not in the second-level cache when their turn comes. Every round takes each contestant once, in a drawn
order; times are processor time of one core, ratios are of one round, and their median is judged. ISA-L from C is the
very copy that Rackloop uses, called once a codeword; ``blocked`` is the same from C in blocks, as Rackloop does it. The
speed of an encoder is that of the user data it reads; a decoder's that of the user data of its codeword.
``--rounds N`` (15), ``--json`` prints everything. Exits 1 when a target is missed.
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
from collections.abc import Callable, Iterator
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
from rackloop_models.erasure import Code, IsalEngine, best_engine

HERE = Path(__file__).resolve().parent / "erasure"
SECTOR_BYTES = 4096
WORKING_SET_BYTES = 16 << 20
TIMES = 4
CLOCK = RealClock()
NS = Callable[[], float]


@dataclass(frozen=True)
class Target:
    """``at_least`` times as fast as another, or ``at_most_us`` a codeword; None is reported and not judged."""

    over: str
    at_least: float | None


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


def codewords(k: int, m: int) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    """Encoded codewords of user sectors, then redundancy."""
    groups = max(1, round(WORKING_SET_BYTES / (k * SECTOR_BYTES)))
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
        "isal": c().prepared(f"isal {shape}"),
        "isal-blocked": c().prepared(f"isal-blocked {shape}"),
        "reed-solomon-simd": rust().prepared(f"encode {k} {m} {SECTOR_BYTES} {groups} 1"),
    }
    if parts == 1:
        ways |= {name: c().prepared(f"{name} {shape}") for name in ("jerasure", "jerasure-bitmatrix")}
    return ways


def decoders(k: int, m: int, erased: int, c: Callable[[], Peer], rust: Callable[[], Peer]) -> dict[str, NS]:
    words, code = codewords(k, m), Code(k, m)
    groups, parts = len(words), code.field.parts
    positions = [at * (k // erased) for at in range(erased)]
    kept = words[0].copy()
    words[:, positions] = 0

    def decode() -> None:
        for group in range(groups):
            code.decode(words[group], positions)

    ways: dict[str, NS] = {
        "rackloop": lambda: spent(decode, groups),
        "reed-solomon-simd": rust().prepared(f"decode {k} {m} {SECTOR_BYTES} {groups} {erased}"),
    }
    if parts == 1:
        shape = f"{k} {m} 1 {SECTOR_BYTES} {groups} {erased}"
        ways |= {name: c().prepared(f"{name} {shape}") for name in ("jerasure-decode", "jerasure-rebuild")}
    if (m, erased) == (10, 10):
        data, redundancy = words[:, :k], np.empty((groups, m, SECTOR_BYTES), np.uint8)
        ways["encode"] = lambda: spent(lambda: code.encode_groups(data, redundancy), groups)
    decode()
    assert np.array_equal(words[0], kept), "decoded wrongly"
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
    words, code = codewords(k, m), Code(k, m)
    while told.recv():
        for _ in range(TIMES):
            code.encode_groups(words[:, :k], words[:, k:])
        told.send("done")


def two_cores(k: int, m: int, rounds: int) -> dict[str, list[float]]:
    """Wall time of encoding with one worker, with two, and in two processes: what there is to be had of two cores."""
    words, code = codewords(k, m), Code(k, m)
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


def targets(what: str, k: int, m: int, erased: int) -> list[Target]:
    """What is promised of a way over others."""
    short = k + m <= 255
    if what == "encode" and short:
        return [
            Target("isal", 0.9),
            Target("jerasure", 5),
            Target("jerasure-bitmatrix", 5),
            Target("isal-blocked", None),
        ]
    if what == "encode":
        others = [Target("isal", 0.9), Target("isal-blocked", None)]
        return [*others, Target("reed-solomon-simd", 1.0 if m <= 9 else None)]
    if short:
        found = [Target("jerasure-decode", 5), Target("jerasure-rebuild", None), Target("reed-solomon-simd", None)]
        return [*found, Target("encode", 0.3)] if erased == m == 10 else found
    return [Target("reed-solomon-simd", None)]


def report(title: str, k: int, taken: dict[str, list[float]], promised: list[Target], limit_us: float | None) -> bool:
    """Print a line for what was timed, and say whether all that was promised is kept."""
    data = k * SECTOR_BYTES
    ours = taken["rackloop"]
    speeds = ", ".join(f"{name} {data / median(ns):.2f}" for name, ns in taken.items())
    print(f"{title}: GB/s {speeds}; {median(ours) / 1e3:.0f} us a codeword (fastest {min(ours) / 1e3:.0f})")
    kept = True
    for target in promised:
        ratios = [other / own for other, own in zip(taken[target.over], ours, strict=True)]
        ratio = median(ratios)
        missed = target.at_least is not None and ratio < target.at_least
        kept &= not missed
        goal = "" if target.at_least is None else f" (at least {target.at_least}{': MISSED' if missed else ''})"
        fastest = min(taken[target.over]) / min(ours)
        span = f"{min(ratios):.2f} to {max(ratios):.2f}, the fastest of each {fastest:.2f}"
        print(f"    {ratio:.2f} times {target.over}, {span}{goal}")
    if limit_us is not None:
        missed = median(ours) > limit_us * 1e3
        kept &= not missed
        print(f"    at most {limit_us:.0f} us{': MISSED' if missed else ''}")
    return kept


SHORT = ((252, 3), (251, 4), (250, 5), (246, 9), (245, 10))
LONG = ((1019, 4), (1016, 7), (1014, 9), (1004, 19))


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    options.add_argument("--rounds", type=int, default=15)
    options.add_argument("--json", action="store_true")
    chosen = options.parse_args()
    engine = best_engine()
    if not isinstance(engine, IsalEngine) or shutil.which("cargo") is None:
        print(f"bench_erasure: needs ISA-L and cargo, found {engine} and cargo at {shutil.which('cargo')}")
        return 2
    print(f"{engine}; {SECTOR_BYTES} bytes a sector, {WORKING_SET_BYTES >> 20} MiB in turn, {chosen.rounds} rounds")
    everything: dict[str, dict[str, list[float]]] = {}
    kept = True
    with peers(engine) as (c, rust):
        for k, m in SHORT + LONG:
            title = f"encode ({k}, {m})"
            everything[title] = in_turns(encoders(k, m, c, rust), chosen.rounds)
            kept &= report(title, k, everything[title], targets("encode", k, m, 0), None)
        cases = [(246, 9, erased) for erased in (1, 2, 4, 9)] + [(245, 10, 10)]
        cases += [(1014, 9, erased) for erased in (1, 2, 3, 4, 7, 9)]
        for k, m, erased in cases:
            title = f"decode ({k}, {m}), {erased} erased"
            everything[title] = in_turns(decoders(k, m, erased, c, rust), chosen.rounds)
            limit_us = 1000 if k > 255 and erased <= 4 else None
            kept &= report(title, k, everything[title], targets("decode", k, m, erased), limit_us)
    for k, m in ((246, 9), (1014, 9)):
        title = f"two cores ({k}, {m})"
        taken = everything[title] = two_cores(k, m, chosen.rounds)
        wall = median(one / two for one, two in zip(taken["one"], taken["two"], strict=True))
        had = median(one / both for one, both in zip(taken["one"], taken["processes"], strict=True))
        kept &= wall >= 1.7
        missed = ": MISSED" if wall < 1.7 else ""
        print(f"{title}: two workers {wall:.2f} times one (at least 1.7{missed}); two processes {had:.2f} times")
    if chosen.json:
        print(json.dumps(everything))
    return int(not kept)


if __name__ == "__main__":
    sys.exit(main())
