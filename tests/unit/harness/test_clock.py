"""Clocks and deadlines: the virtual clock jumps, the real one never wakes early."""

import pytest

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


def test_a_poll_ends_with_the_first_answer_that_is_done() -> None:
    clock, answers = VirtualClock(), iter([0, 0, 7, 8])
    assert Deadline.after(clock, 10).poll(lambda: next(answers), every_s=2) == 7
    assert clock.now_ns() == 4e9


def test_a_poll_asks_nothing_once_the_deadline_is_over_and_gives_the_last_answer() -> None:
    clock, asked = VirtualClock(), list[int]()
    deadline = Deadline.after(clock, 5)

    def look() -> int:
        asked.append(clock.now_ns())
        return len(asked)

    assert deadline.poll(look, lambda seen: seen > 3, every_s=2) == 3
    assert asked == [0, 2e9, 4e9]
    assert clock.now_ns() == deadline.at_ns


def test_a_poll_looks_once_more_where_the_machine_woke_it_after_the_deadline() -> None:
    class StoodStill(VirtualClock):
        """The clock of a machine that stands still for half a minute whenever a process sleeps."""

        def sleep_until_ns(self, when_ns: int) -> None:
            super().sleep_until_ns(when_ns + 30 * 10**9)

    clock = StoodStill()
    answers = iter([0, 1])
    assert Deadline.after(clock, 10).poll(lambda: next(answers), every_s=1) == 1
    answers = iter([0, 0])
    assert Deadline.after(clock, 10).poll(lambda: next(answers), every_s=1) == 0


def test_an_attempt_is_made_again_after_a_transient_error_alone_and_until_the_deadline() -> None:
    clock = VirtualClock()
    errors: list[Exception] = [KeyError(1), IndexError(2), KeyError(3)]

    def attempt() -> str:
        if errors:
            raise errors.pop(0)
        return "done"

    with pytest.raises(IndexError):
        Deadline.after(clock, 10).retry(attempt, KeyError, every_s=2)
    assert Deadline.after(clock, 10).retry(attempt, KeyError, every_s=2) == "done"
    assert clock.now_ns() == 4e9
    errors[:] = [KeyError(number) for number in range(4)]
    with pytest.raises(KeyError, match="2"):
        Deadline.after(clock, 5).retry(attempt, KeyError, every_s=2)
    errors[:] = [IndexError(1), KeyError(2)]
    with pytest.raises(KeyError, match="2"):
        Deadline.after(clock, 10).retry(attempt, LookupError, every_s=2, final=(KeyError,))


def test_the_real_clock_does_not_wake_early() -> None:
    clock = RealClock()
    when_ns = clock.now_ns() + 2_000_000
    clock.sleep_until_ns(when_ns)
    assert clock.now_ns() >= when_ns


def test_things_in_turn_have_equal_shares_of_the_time_that_is_left() -> None:
    clock = VirtualClock()
    shares = []
    for item, share in Deadline.after(clock, 60).in_turn(["a", "b", "c"]):
        shares.append((item, share.remaining_s()))
        clock.advance({"a": 20, "b": 10, "c": 30}[item])
    assert shares == [("a", 20.0), ("b", 20.0), ("c", 30.0)]
