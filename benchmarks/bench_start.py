"""How long `./rackloop` takes to start, once everything is installed."""

from __future__ import annotations

import statistics
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from rackloop.clock import RealClock

ROOT = Path(__file__).resolve().parents[1]
PYTHON = ROOT / ".rackloop" / "venv" / "bin" / "python"
ROUNDS = 20


@pytest.fixture(scope="module", autouse=True)
def _installed() -> None:
    subprocess.run([ROOT / "rackloop", "--version"], check=True, capture_output=True)


def median_ms(act: Callable[[], object]) -> float:
    clock = RealClock()
    took = []
    for _ in range(ROUNDS):
        began_ns = clock.now_ns()
        act()
        took.append((clock.now_ns() - began_ns) / 1e6)
    return statistics.median(took)


def start(*command: str | Path) -> Callable[[], object]:
    return lambda: subprocess.run(command, check=True, capture_output=True)


def test_help_appears_at_once() -> None:
    took_ms = median_ms(start(ROOT / "rackloop", "--help"))
    print(f"./rackloop --help: {took_ms:.0f} ms")
    assert took_ms < 400


def test_the_wrapper_is_not_noticed() -> None:
    wrapped_ms = median_ms(start(ROOT / "rackloop", "--version"))
    bare_ms = median_ms(start(PYTHON, "-P", "-m", "rackloop_cli.main", "--version"))
    print(f"./rackloop before Python: {wrapped_ms - bare_ms:.1f} ms")
    assert wrapped_ms - bare_ms < 20
