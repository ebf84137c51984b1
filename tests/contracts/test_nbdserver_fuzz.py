"""The server half of NBD under a fuzzer, for minutes."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FUZZ = ROOT / "native" / "fuzz"
TARGET = ROOT / "native" / "target" / "fuzz"
MINUTES = 5
# What cargo-fuzz gives the compiler without a sanitizer: the counters by which libFuzzer finds its way.
COUNTERS = ("level=4", "inline-8bit-counters", "pc-table", "trace-compares")
FLAGS = ("--cfg fuzzing", "-Cpasses=sancov-module", *(f"-Cllvm-args=-sanitizer-coverage-{one}" for one in COUNTERS))


@pytest.mark.nightly  # Minutes are what it takes.
def test_no_input_of_a_client_breaks_the_server(tmp_path: Path) -> None:
    cargo = shutil.which("cargo")
    assert cargo, "cargo is not on PATH"
    about = subprocess.run((cargo, "-vV"), check=True, capture_output=True, text=True).stdout
    (triple,) = (line.removeprefix("host: ") for line in about.splitlines() if line.startswith("host: "))
    build = (cargo, "build", "--release", "--locked", "--manifest-path", FUZZ / "Cargo.toml", "--target-dir", TARGET)
    # With a triple, build scripts and macros take no counters.
    flags = {"RUSTFLAGS": " ".join(FLAGS)}
    subprocess.run((*build, "--target", triple), check=True, env={**os.environ, **flags})
    corpus, found = tmp_path / "corpus", tmp_path / "found"
    corpus.mkdir()
    found.mkdir()
    limits = (f"-max_total_time={60 * MINUTES}", "-timeout=10", "-rss_limit_mb=2048", "-seed=1", "-print_final_stats=1")
    program = TARGET / triple / "release" / "nbdserver"
    done = subprocess.run(
        (program, *limits, f"-artifact_prefix={found}/", corpus, FUZZ / "seeds" / "nbdserver"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{[path.read_bytes().hex() for path in found.iterdir()]}: {done.stderr[-4000:]}"
