"""How long the mock lab takes to come up and to go, through the command line and through MockLab."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator

import pytest

from rackloop.clock import RealClock
from rackloop.lab import load_lab
from rackloop_labs import MockLab

ROUNDS = 11
CLOCK = RealClock()


@pytest.fixture(autouse=True)
def _state(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with tempfile.TemporaryDirectory(prefix="rl-", dir="/tmp") as home:
        monkeypatch.setenv("RACKLOOP_STATE_HOME", home)
        yield


def took_s(act: Callable[[], object]) -> float:
    began_ns = CLOCK.now_ns()
    act()
    return (CLOCK.now_ns() - began_ns) / 1e9


def command(verb: str) -> Callable[[], object]:
    line = [sys.executable, "-m", "rackloop_cli.main", "lab", verb, "mock"]
    return lambda: subprocess.run(line, check=True, capture_output=True)


def up_and_down(way: str, up: Callable[[], object], down: Callable[[], object], *, up_s: float, down_s: float) -> None:
    rounds = [(took_s(up), took_s(down)) for _ in range(ROUNDS)]
    ups, downs = zip(*rounds, strict=True)
    print(f"\n{way:>14}   up                     down")
    for name, seconds in (("median", statistics.median), ("slowest", max)):
        print(f"{name:>14}   {seconds(ups):.2f} s (target {up_s} s)    {seconds(downs):.2f} s (target {down_s} s)")
    print(f"{'':>14}   {ROUNDS} rounds, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    assert max(ups) <= up_s
    assert statistics.median(downs) <= down_s


def test_by_the_command_line() -> None:
    up_and_down("rackloop lab", command("up"), command("down"), up_s=1.5, down_s=1.0)


def test_by_mock_lab() -> None:
    lab = MockLab(load_lab("mock"), CLOCK)
    up_and_down("MockLab", lab.up, lab.down, up_s=1.5, down_s=1.0)
