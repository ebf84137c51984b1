"""Clocks and deadlines: the virtual clock jumps, the real one never wakes early."""

from rackloop.clock import Deadline, RealClock, VirtualClock


def test_sleeping_on_the_virtual_clock_jumps() -> None:
    clock = VirtualClock()
    deadline = Deadline.after(clock, 600)
    clock.sleep_until_ns(deadline.at_ns)
    assert clock.now_ns() == 600_000_000_000
    assert deadline.is_over()
    assert deadline.remaining_s() == 0.0


def test_the_virtual_clock_never_goes_back() -> None:
    clock = VirtualClock(start_ns=50)
    clock.sleep_until_ns(10)
    assert clock.now_ns() == 50


def test_wall_time_moves_with_the_virtual_clock() -> None:
    clock = VirtualClock()
    before = clock.wall()
    clock.advance(1.5)
    assert (clock.wall() - before).total_seconds() == 1.5


def test_the_sooner_of_two_deadlines_wins() -> None:
    clock = VirtualClock()
    deadline = Deadline.after(clock, 10)
    assert deadline.sooner(3).remaining_s() == 3
    assert deadline.sooner(30).remaining_s() == 10


def test_the_real_clock_does_not_wake_early() -> None:
    clock = RealClock()
    when_ns = clock.now_ns() + 2_000_000
    clock.sleep_until_ns(when_ns)
    assert clock.now_ns() >= when_ns
