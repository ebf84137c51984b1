"""A rebuild's rate in virtual time: held to its cap, and giving way to tenants."""

from __future__ import annotations

import pytest

from rackloop.clock import VirtualClock
from rackloop.errors import BadInput
from rackloop_models.rack_erasure import Throttle
from tests.unit.models.striped_drives import case

MIB = 1 << 20


def seconds_for(throttle: Throttle, clock: VirtualClock, count: int, each: int) -> float:
    began_ns = clock.now_ns()
    for _ in range(count):
        throttle.take(each)
    return (clock.now_ns() - began_ns) / 1e9


@pytest.mark.parametrize("each", [1 << 16, 1 << 20, 7 << 20])
def test_bytes_go_through_at_the_rate(each: int) -> None:
    clock = VirtualClock()
    throttle = Throttle(10 * MIB, clock)
    count = 100 * MIB // each
    seconds = seconds_for(throttle, clock, count, each)
    # Without the burst at the start, and the debt of the last.
    assert seconds == pytest.approx(count * each / (10 * MIB), abs=0.11 + each / (10 * MIB))
    assert throttle.waited_s == pytest.approx(seconds)


def test_a_pause_saves_up_no_more_than_a_burst() -> None:
    clock = VirtualClock()
    throttle = Throttle(10 * MIB, clock, burst_bytes=2 * MIB)
    clock.advance(1000)
    assert seconds_for(throttle, clock, 2, MIB) == 0
    assert seconds_for(throttle, clock, 10, MIB) == pytest.approx(1, rel=0.01)


def test_the_rate_halves_when_tenants_wait_too_long_and_comes_back_when_they_do_not() -> None:
    clock = VirtualClock()
    throttle = Throttle(16 * MIB, clock, latency_target_s=0.01)
    throttle.saw(0.009)
    assert throttle.rate_bytes_per_s == 16 * MIB
    throttle.saw(0.011)
    assert throttle.rate_bytes_per_s == 8 * MIB
    # Once in a window, however many wait.
    throttle.saw(0.5)
    assert throttle.rate_bytes_per_s == 8 * MIB
    clock.advance(0.25)
    throttle.saw(0.5)
    assert throttle.rate_bytes_per_s == 4 * MIB
    assert throttle.backoffs == 2
    clock.advance(0.5)
    assert throttle.rate_bytes_per_s == pytest.approx(5.6 * MIB)
    clock.advance(3)
    assert throttle.rate_bytes_per_s == 16 * MIB


def test_what_was_saved_up_is_not_spent_while_tenants_wait() -> None:
    clock = VirtualClock()
    throttle = Throttle(16 * MIB, clock, latency_target_s=0.01, burst_bytes=4 * MIB)
    clock.advance(10)
    throttle.saw(0.011)
    assert seconds_for(throttle, clock, 1, 2 * MIB) == pytest.approx(0.25, rel=0.01)


def test_the_rate_does_not_fall_below_its_floor() -> None:
    clock = VirtualClock()
    throttle = Throttle(16 * MIB, clock, latency_target_s=0.01, floor_bytes_per_s=3 * MIB)
    for _ in range(20):
        throttle.saw(1)
        clock.advance(0.25)
    throttle.saw(1)
    assert throttle.rate_bytes_per_s == 3 * MIB
    assert seconds_for(throttle, clock, 1, 3 * MIB) < 1


def test_without_a_target_nothing_gives_way() -> None:
    throttle = Throttle(MIB, VirtualClock())
    throttle.saw(100)
    assert (throttle.rate_bytes_per_s, throttle.backoffs) == (MIB, 0)


def test_a_rebuild_keeps_to_the_rate_and_tells_nobody_who_does_not_ask() -> None:
    made = case(2, 1, 3, places=20)
    store = made.open()
    for number in range(store.objects):
        store.put(number, bytes([number]) * store.object_bytes)
    victim = made.drives["d0"]
    store.replace("d0", "x", type(victim)(victim.size_bytes, made.power))
    throttle = Throttle(100_000, made.clock, burst_bytes=1)
    report = store.rebuild(throttle=throttle)
    moved = report.read_bytes + report.written_bytes
    # Two blocks of records for each unit are counted as well.
    assert report.seconds == pytest.approx((moved + report.units * 8192) / 100_000, rel=0.1)


def test_tenants_of_the_store_slow_its_rebuild_down() -> None:
    made = case(2, 1, 3, places=20)
    store = made.open()
    for number in range(store.objects):
        store.put(number, bytes([number]) * store.object_bytes)
    victim = made.drives["d0"]
    store.replace("d0", "x", type(victim)(victim.size_bytes, made.power))
    throttle = Throttle(1_000_000, made.clock, latency_target_s=0.01)
    slow = made.drives["d1"]

    def tenant(_done: int, _total: int) -> None:
        # A drive that takes 20 ms for what the tenant reads.
        slow.takes_s = 0.02
        store.get(0)
        slow.takes_s = 0.0

    slow.clock = made.clock
    store.rebuild(throttle=throttle, progress=tenant)
    assert throttle.backoffs >= 1
    assert throttle.rate_bytes_per_s < 1_000_000


@pytest.mark.parametrize(
    "given",
    [
        {"bytes_per_s": 0},
        {"bytes_per_s": -1},
        {"bytes_per_s": 10, "latency_target_s": 0},
        {"bytes_per_s": 10, "floor_bytes_per_s": 0},
        {"bytes_per_s": 10, "floor_bytes_per_s": 11},
        {"bytes_per_s": 10, "burst_bytes": 0},
    ],
)
def test_rates_that_make_no_sense_are_refused(given: dict[str, float]) -> None:
    with pytest.raises(BadInput, match="throttle"):
        Throttle(given.pop("bytes_per_s"), VirtualClock(), **given)
