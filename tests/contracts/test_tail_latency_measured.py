"""Reads through a local erasure code on the hard disk model, by the real drivesim, against the equations."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from rackloop.abilities import Executor
from rackloop.errors import BadInput
from rackloop.lab import load_profile
from rackloop_cli.main import main
from rackloop_models.drives import (
    Ask,
    DriveSim,
    LocalCode,
    SequentialRead,
    SequentialReadResult,
    Step,
    Steps,
    StepsResult,
)
from rackloop_models.tail_latency import (
    LocalErasure,
    MeasuredReads,
    Reading,
    ReadsToMeasure,
    Update,
    UpdateMethod,
    attainable_retry_s,
    choose_code,
    latency_with_code,
    latency_without_code,
    measure_reads,
    paper_drive,
    slowdowns,
    software_decoding,
    update_costs,
)
from tests.deadlines import soon

HDD = load_profile("sata-hdd")
GIB = 1 << 30
TRIALS = 400


def unwatched(_over: int, _of: int) -> None:
    """A progress that nobody looks at."""


def measured(
    executor: Executor, reading: Reading, erasure: LocalErasure | None, *, seed: int = 3, request_sectors: int = 1
) -> MeasuredReads:
    drive = paper_drive(HDD, reading.ph, reading.retry_s)
    cell = ReadsToMeasure(drive, reading, erasure, TRIALS, request_sectors)
    (found,) = measure_reads([cell], executor, soon(), seed=seed, progress=unwatched)
    return found


@pytest.mark.parametrize(("ph", "retry_s"), [(1e-3, 0.02), (5e-3, 0.04)])
def test_what_is_measured_is_near_the_equations(executor: Executor, ph: float, retry_s: float) -> None:
    reading = Reading(10_000, ph, retry_s)
    code = choose_code(1023, ph)
    erasure = LocalErasure(code.k, code.m, software_decoding(code.k, code.m))
    on_drive = replace(reading, retry_s=attainable_retry_s(retry_s))
    plain, coded = measured(executor, reading, None), measured(executor, reading, erasure)
    low, high = plain.samples.quantile_ci95(0.99)
    expected = latency_without_code(on_drive).quantile(0.99)
    assert low is not None
    assert high is not None
    # Retries of 2 or 3 revolutions spread a little more than retries that all take their mean.
    assert low - attainable_retry_s(retry_s) <= expected <= high + attainable_retry_s(retry_s)
    # The last group's redundancy may have to wait for the platter to come round.
    assert coded.samples.quantile(0.99) == pytest.approx(
        latency_with_code(on_drive, erasure).quantile(0.99), abs=60 / 7200 + 0.003
    )
    assert coded.fates.failed == pytest.approx(ph * TRIALS * 10_000 * 1.01, rel=0.05)
    assert coded.fates.lost == 0
    assert coded.samples.quantile(0.99) < plain.samples.quantile(0.99) * 0.6


def test_larger_requests_that_fail_fast_lose_what_lies_behind(executor: Executor) -> None:
    reading, code = Reading(10_000, 1e-3, 0.02), choose_code(1023, 1e-3)
    erasure = LocalErasure(code.k, code.m, software_decoding(code.k, code.m))
    one, eight = (measured(executor, reading, erasure, request_sectors=size) for size in (1, 8))
    assert one.fates.passed_over == 0
    assert eight.fates.passed_over > 2 * eight.fates.failed
    assert eight.samples.mean > one.samples.mean


def test_a_seed_gives_the_reads(executor: Executor) -> None:
    reading = Reading(1_000, 5e-3, 0.02)
    once, again, other = (measured(executor, reading, None, seed=seed).samples for seed in (1, 1, 2))
    assert once == again
    assert once != other


def test_updates_and_workloads_go_through(executor: Executor) -> None:
    costs = update_costs([Update(250, 5, 50, 40)], HDD, executor, soon(), seed=1, progress=unwatched)
    by_method = {cost.method: cost.over_baseline for cost in costs}
    assert 1 < by_method[UpdateMethod.INDIRECT] < by_method[UpdateMethod.DIRECT]
    drive = paper_drive(HDD, 1e-3, 0.02)
    found = slowdowns([choose_code(255, 1e-3)], drive, executor, soon(), seed=1, progress=unwatched, trials=100)
    assert all(-0.05 < entry.lost < 0.2 for entry in found)


def test_drivesim_takes_sequential_reads_and_steps_and_says_what_is_wrong_with_them(executor: Executor) -> None:
    sim = DriveSim(executor, HDD, size_bytes=GIB, seed=1)
    read = SequentialRead(
        name="s", sectors=100, trials=2, file_sectors=1000, request_sectors=8, depth=2, seeks=True,
        code=LocalCode(50, 2, (1.0, 2.0)),
    )  # fmt: skip
    steps = Steps(name="t", steps=(Step((Ask("write", 0, 4096), Ask("flush")), 1000.0), Step((Ask("read", 0, 4096),))))
    first, second = sim.run([read, steps], soon())
    assert isinstance(first, SequentialReadResult)
    assert len(first.latencies_ns) == 2
    assert isinstance(second, StepsResult)
    assert (second.requests, second.read_bytes, second.written_bytes) == (3, 4096, 4096)
    assert second.seconds > 0.001
    with pytest.raises(BadInput, match=r'experiment "s": trials 0 is not from 1'):
        sim.run([replace(read, trials=0)], soon())
    with pytest.raises(BadInput, match=r'experiment "t": step 1: offset'):
        sim.run([replace(steps, steps=(Step((Ask("read", GIB, 4096),)),))], soon())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["tail", "--ph", "0.001", "--sectors", "10000", "--trials", "100", "--measure", "5"],
            "the cut of 5 reads of each on the drive model",
        ),
        (["update", "--ph", "0.001", "--groups", "20"], "indirect"),
        (["slowdown", "--ph", "0.001", "--codeword", "255"], "terasort"),
    ],
    ids=["tail", "update", "slowdown"],
)
def test_commands_measure_and_leave_their_figures(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["model", "erasure", *words, "--seed", "9", "--out", str(tmp_path)]) == 0
    assert said in capsys.readouterr().out
    assert {path.name for path in tmp_path.iterdir()} == {
        f"{words[0]}.{kind}" for kind in ("json", "csv", "svg", "png")
    }
    document = json.loads((tmp_path / f"{words[0]}.json").read_text())
    assert (document["simulated"], document["seed"]) == (True, 9)
    assert document["rows"]
