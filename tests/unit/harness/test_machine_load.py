"""The witness of the machine's load: how late a thread wakes, and what the kernel says of cores."""

from pathlib import Path
from queue import SimpleQueue
from threading import Semaphore
from threading import enumerate as enumerate_threads

import pytest

from rackloop.clock import VirtualClock
from rackloop.errors import LabError
from rackloop.measurement import (
    PERIOD_S,
    Cause,
    Distribution,
    Finding,
    Limit,
    LoadWitness,
    MachineLoad,
    Measurement,
    Verdict,
    judge,
)


class LateClock(VirtualClock):
    """A clock whose sleeper wakes late by what is next in ``late_s``."""

    def __init__(self, *late_s: float) -> None:
        super().__init__(start_ns=1_000_000_000)
        self.late_s = list(late_s)

    def sleep_until_ns(self, when_ns: int) -> None:
        super().sleep_until_ns(when_ns)
        if self.late_s:
            self.advance(self.late_s.pop(0))


class SteppedClock(VirtualClock):
    """A clock whose sleepers wake when the test says so, late by 50 ms."""

    def __init__(self) -> None:
        super().__init__(start_ns=1_000_000_000)
        self.due_ns = SimpleQueue[int]()
        self.wake = Semaphore(0)

    def sleep_until_ns(self, when_ns: int) -> None:
        self.due_ns.put(when_ns)
        assert self.wake.acquire(timeout=60)
        super().sleep_until_ns(when_ns)
        self.advance(0.05)


def kernel(root: Path, waiting_us: int | None, steal: int | None, others: int = 0) -> Path:
    """A /proc with these figures; None for a kernel that lacks them."""
    (root / "pressure").mkdir(parents=True, exist_ok=True)
    for path, text in (
        (root / "pressure" / "cpu", f"some avg10=1.00 avg60=1.00 avg300=1.00 total={waiting_us}\nfull avg10=0.00\n"),
        (root / "stat", f"cpu  {others} 0 0 0 0 0 0 {steal} 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n"),
    ):
        if (waiting_us if path.name == "cpu" else steal) is not None:
            path.write_text(text)
    return root


def witness(tmp_path: Path, *late_s: float) -> tuple[LoadWitness, LateClock]:
    clock = LateClock(*late_s)
    found = LoadWitness(clock, kernel(tmp_path, None, None))
    found.sample()  # it has slept to the first moment, and knows the next
    found.begin()
    return found, clock


def test_it_samples_in_one_thread_from_start_to_stop(tmp_path: Path) -> None:
    clock = SteppedClock()
    found = LoadWitness(clock, kernel(tmp_path, None, None))

    def threads() -> int:
        return sum(thread.name == "load-witness" for thread in enumerate_threads())

    before, started_ns = threads(), clock.now_ns()
    found.start()
    found.start()
    assert threads() == before + 1
    try:
        assert clock.due_ns.get(timeout=60) == started_ns
        clock.wake.release()
        assert clock.due_ns.get(timeout=60) == started_ns + round((0.05 + PERIOD_S) * 1e9)
        assert found.so_far().wait_s == pytest.approx(0.05)
    finally:
        clock.wake.release(1_000_000)
        found.stop()
    assert threads() == before


def test_the_worst_of_the_waits_is_told_and_begun_anew_for_the_next_test(tmp_path: Path) -> None:
    found, clock = witness(tmp_path, 0.0, 0.001, 0.138, 0.002)
    for _ in range(3):
        found.sample()
    seen = found.so_far()
    assert seen.wait_s == pytest.approx(0.138)
    assert seen.late_share == pytest.approx(0.141 / (0.141 + 3 * PERIOD_S))
    found.begin()
    clock.advance(1.0)
    assert found.so_far().wait_s == 0.0


def test_a_wait_that_began_before_the_test_counts_from_its_beginning(tmp_path: Path) -> None:
    clock = LateClock(0.0, 0.0)
    found = LoadWitness(clock, kernel(tmp_path, None, None))
    found.sample()
    clock.advance(1.0)
    found.begin()
    clock.advance(0.1)
    found.sample()
    assert found.so_far().wait_s == pytest.approx(0.1)


def test_the_kernel_says_what_share_of_the_time_cores_were_short_and_stolen(tmp_path: Path) -> None:
    clock = LateClock()
    found = LoadWitness(clock, kernel(tmp_path, 5_000_000, 40, others=1000))
    clock.advance(2.0)
    kernel(tmp_path, 5_500_000, 60, others=1380)
    seen = found.so_far()
    assert seen.pressure == pytest.approx(0.25)
    assert seen.steal == pytest.approx(0.05)
    assert seen.starved == pytest.approx(0.25)


def test_a_kernel_that_says_neither_leaves_the_thread(tmp_path: Path) -> None:
    found, _ = witness(tmp_path, 0.0, 0.02)
    found.sample()
    seen = found.so_far()
    assert (seen.pressure, seen.steal) == (None, None)
    assert seen.starved == pytest.approx(0.5)


def test_a_simulated_rack_that_was_later_than_ever_is_told(tmp_path: Path) -> None:
    found, _ = witness(tmp_path)
    rack = [0.004]
    found.attend(lambda: rack[0])
    found.begin()
    assert found.so_far().rackd_s is None
    rack[0] = 0.2
    assert found.so_far().late_s == 0.2
    found.begin()
    assert found.so_far().rackd_s is None, "that was the test before"

    def gone() -> float:
        raise LabError("no answer")

    found.attend(gone)
    assert found.so_far().rackd_s is None


def test_a_time_is_doubted_by_how_long_tasks_were_kept_waiting_within_as_much_time(tmp_path: Path) -> None:
    clock = LateClock()
    found = LoadWitness(clock, kernel(tmp_path, 0, None))
    found.sample()
    found.begin()
    kept_us = 0
    for step in range(500):
        # Ten seconds in which tasks wait for a core for a tenth of the time, and for all of the sixth second.
        kept_us += 20_000 if 250 <= step < 300 else 2_000
        kernel(tmp_path, kept_us, None)
        found.sample()
    load = found.so_far()
    assert load.late_with(0.1) == pytest.approx(0.1)
    assert load.late_with(0.7) == pytest.approx(0.7)
    assert load.late_with(1.7) == pytest.approx(1.1, abs=0.03)
    assert load.late_with(3.5) == pytest.approx(1.3, abs=0.03)
    found.begin()
    assert found.so_far().late_with(3.5) == 0.0, "that was the test before"


BUSY = MachineLoad(wall_s=10.0, wait_s=0.4, late_share=0.05, pressure=0.3)


def test_waits_of_several_threads_in_turn_leave_a_stall_undecided() -> None:
    limit = Limit("a.stall", quantile="max", maximum=1.0, text="max 1 s")
    kept = MachineLoad(wall_s=10.0, wait_s=0.04, late_share=0.05, kept_s=(0.5, 0.9, 1.2, 1.3, 1.4, 1.4, 1.4, 1.4))
    assert stalled("s", 1.7, limit, kept).verdict is Verdict.UNKNOWN
    assert stalled("s", 2.5, limit, kept).verdict is Verdict.FAIL
    assert stalled("s", 100.0, limit, kept).verdict is Verdict.FAIL
    assert stalled("s", 0.9, limit, kept).verdict is Verdict.PASS


def stalled(unit: str, value: float, limit: Limit, load: MachineLoad | None) -> Finding:
    measurement = Measurement("a.stall", unit, Distribution.of([value]))
    (found,) = judge(measurement, [limit], {}, None if load is None else lambda: load)
    return found


@pytest.mark.parametrize(
    ("unit", "value", "limit", "verdict", "cause"),
    [
        ("s", 1.2, Limit("a.stall", quantile="max", maximum=1.0, text="max 1 s"), Verdict.UNKNOWN, Cause.HARNESS),
        ("s", 1.5, Limit("a.stall", quantile="max", maximum=1.0, text="max 1 s"), Verdict.FAIL, Cause.PRODUCT),
        ("s", 0.9, Limit("a.stall", quantile="max", maximum=1.0, text="max 1 s"), Verdict.PASS, None),
        ("B/s", 80.0, Limit("a.stall", quantile="max", minimum=100.0, text="min"), Verdict.UNKNOWN, Cause.HARNESS),
        ("B/s", 60.0, Limit("a.stall", quantile="max", minimum=100.0, text="min"), Verdict.FAIL, Cause.PRODUCT),
        ("1", 1.0, Limit("a.stall", quantile="max", maximum=0.0, text="max 0"), Verdict.FAIL, Cause.PRODUCT),
        ("B", 2.0, Limit("a.stall", quantile="max", maximum=1.0, text="max 1 B"), Verdict.FAIL, Cause.PRODUCT),
    ],
)
def test_a_busy_machine_caps_times_and_rates_and_never_counts(
    unit: str, value: float, limit: Limit, verdict: Verdict, cause: Cause | None
) -> None:
    found = stalled(unit, value, limit, BUSY)
    assert (found.verdict, found.cause) == (verdict, cause)
    alone = stalled(unit, value, limit, None)
    assert (alone.verdict is Verdict.PASS) == (verdict is Verdict.PASS), "it makes no pass and takes none"


def test_what_is_not_judged_is_not_touched() -> None:
    assert judge(Measurement("a.stall", "s", Distribution.of([1.2])), [], {}, lambda: BUSY)[0].measurement.error == 0.0
