"""The progress of a run on a terminal and in a pipe."""

from __future__ import annotations

import itertools
import os
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import TextIO

import pytest

from rackloop.clock import VirtualClock
from rackloop.record import TestFinished, TestStarted
from rackloop_cli.shared.run_display import Remaining, RunDisplay


class Pipe:
    """The end of a pipe that a display writes to."""

    def __init__(self) -> None:
        reading, writing = os.pipe()
        self.reading = os.fdopen(reading)
        self.writing: TextIO = os.fdopen(writing, "w", buffering=1)

    def lines(self) -> list[str]:
        self.writing.close()
        return self.reading.read().splitlines()


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    made = Pipe()
    yield made
    made.writing.close()
    made.reading.close()


def run_of_two(display: RunDisplay, clock: VirtualClock) -> None:
    display.pytest_rackloop_expected({"a/one::one": 60.0, "a/two::two": 30.0})
    display.pytest_rackloop_event(TestStarted("a/one::one", "do one"))
    display.pytest_rackloop_step("starting lab mock")
    clock.advance(5)
    display.pytest_rackloop_event(TestStarted("provisioning", "provision"))
    display.pytest_rackloop_event(TestFinished("provisioning", "pass", None, None, 5.0))
    display.pytest_rackloop_step("")
    display.pytest_runtest_call()
    for done in range(1, 31):
        clock.advance(1)
        assert display.pytest_rackloop_progress("a/one::one", done, 60, "remaps")


def test_progress_that_nobody_reads_any_more_ends_no_run(pipe: Pipe, capfd: pytest.CaptureFixture[str]) -> None:
    pipe.reading.close()
    with RunDisplay(VirtualClock(), pipe.writing) as display:
        display.say("a line that is lost")
        display.say("another")
        sys.stdout.write("the result\n")
    assert capfd.readouterr().out == "the result\n"
    with suppress(BrokenPipeError):
        pipe.writing.close()


def test_a_terminal_that_is_gone_and_a_full_disk_end_no_run() -> None:
    ours, theirs = os.openpty()
    os.close(ours)
    for number in (theirs, os.open("/dev/full", os.O_WRONLY)):
        file = os.fdopen(number, "w", buffering=1)
        with RunDisplay(VirtualClock(), file) as display:
            display.say("a line that is lost")
            display.say("another")
        with suppress(OSError):
            file.close()


def test_a_pipe_gets_steps_and_tests_and_a_line_each_half_minute(pipe: Pipe) -> None:
    clock = VirtualClock()
    with RunDisplay(clock, pipe.writing) as display:
        run_of_two(display, clock)
        for done in range(31, 61):
            clock.advance(1)
            display.pytest_rackloop_progress("a/one::one", done, 60, "remaps")
        display.pytest_rackloop_event(TestFinished("a/one::one", "fail", "product", "broken", 60.0))
    assert pipe.lines() == [
        "[0 s] starting lab mock, about 1 min 30 s left",
        "[5 s] provisioning: pass, 5 s",
        "[5 s] 1/2 a/one, about 1 min 30 s left",
        "[35 s] 1/2 a/one: 30 of 60 remaps, about 1 min left",
        "[1 min 5 s] 1/2 a/one: 60 of 60 remaps, about 30 s left",
        "[1 min 5 s] a/one: fail, 1 min",
    ]


def test_the_first_test_is_said_once_the_rack_is_up_and_the_others_as_they_begin(pipe: Pipe) -> None:
    clock = VirtualClock()
    with RunDisplay(clock, pipe.writing) as display:
        run_of_two(display, clock)
        display.pytest_rackloop_event(TestFinished("a/one::one", "pass", None, None, 35.0))
        display.pytest_rackloop_event(TestStarted("a/two::two", "do two"))
    said = [re.sub(r", about .*", "", line) for line in pipe.lines()]
    assert said.index("[5 s] 1/2 a/one") > said.index("[5 s] provisioning: pass, 5 s")
    assert said[-1] == "[35 s] 2/2 a/two"


def test_a_step_within_a_test_does_not_begin_it_again(pipe: Pipe) -> None:
    clock = VirtualClock()
    with RunDisplay(clock, pipe.writing) as display:
        display.pytest_rackloop_expected({"a/one::one": 60.0})
        display.pytest_rackloop_event(TestStarted("a/one::one", "do one"))
        for step in ("leasing lab mock", "identifying the drives"):
            display.pytest_rackloop_step(step)
            display.pytest_rackloop_step("")
        display.pytest_runtest_call()
        display.pytest_rackloop_event(TestFinished("a/one::one", "pass", None, None, 60.0))
    assert [line for line in pipe.lines() if "1/1 a/one" in line] == ["[0 s] 1/1 a/one, about 1 min left"]


def test_the_line_of_a_terminal_has_test_progress_time_and_estimate(pipe: Pipe) -> None:
    clock = VirtualClock()
    with RunDisplay(clock, pipe.writing) as display:
        run_of_two(display, clock)
        assert display.line() == "1/2 a/one: 30 of 60 remaps, 35 s, about 1 min left"


def test_an_interrupt_is_answered_with_what_is_left_to_do(pipe: Pipe) -> None:
    clock = VirtualClock()
    with RunDisplay(clock, pipe.writing) as display:
        run_of_two(display, clock)
        display.interrupted(3)
        assert display.line() == "interrupted: ending the test, 35 s"
        display.interrupted(1)
        display.interrupted(0)
    assert pipe.lines()[-3:] == [
        "interrupted: undoing 3 actions, writing the report",
        "interrupted: undoing 1 action, writing the report",
        "interrupted: writing the report",
    ]


def test_estimates_follow_the_machine_by_as_much_as_was_seen_of_it() -> None:
    remaining = Remaining()
    remaining.expect({"one": 10.0, "two": 100.0, "three": 90.0})
    assert remaining.seconds("one", 4.0) == 196.0
    remaining.end("one", 21.0)
    assert remaining.seconds(None, 0.0) == pytest.approx(1.1 * 190)
    remaining.end("two", 200.0)
    assert remaining.seconds(None, 0.0) == pytest.approx(1.5286 * 90, rel=1e-3)
    remaining.end("three", 120.0)
    assert remaining.seconds(None, 0.0) is None


def test_the_remaining_time_does_not_jump_when_a_test_ends_and_the_next_begins() -> None:
    remaining = Remaining()
    remaining.expect({"one": 46.0, "two": 38.0, "three": 24.0})
    seen = [remaining.seconds("one", 0.0)]
    for second in range(1, 71):
        remaining.done(second, 70, second)
        seen.append(remaining.seconds("one", second))
    remaining.end("one", 70.0)
    remaining.begin()
    seen += [remaining.seconds(None, 0.0), remaining.seconds("two", 0.0)]
    left = [seconds for seconds in seen if seconds is not None]
    assert len(left) == len(seen)
    assert all(-1.0 < later - before <= 0.0 for before, later in itertools.pairwise(left)), left


def test_a_test_that_takes_longer_than_it_should_leaves_the_others_their_time() -> None:
    remaining = Remaining()
    remaining.expect({"one": 10.0, "two": 90.0})
    assert [remaining.seconds("one", at) for at in (0.0, 10.0)] == [100.0, 90.0]
    assert remaining.seconds("one", 70.0) == pytest.approx(180.0)


def test_shares_that_begin_again_say_nothing_of_the_whole_test() -> None:
    remaining = Remaining()
    remaining.expect({"one": 100.0})
    remaining.done(5, 10, 10.0)
    assert remaining.seconds("one", 10.0) == 50.0
    remaining.done(1, 10, 12.0)
    remaining.done(9, 10, 20.0)
    assert remaining.seconds("one", 20.0) == 80.0
    remaining.end("one", 100.0)
    remaining.expect({"two": 100.0})
    remaining.begin()
    remaining.done(5, 10, 40.0)
    assert remaining.seconds("two", 40.0) == 50.0


def test_shares_of_another_total_say_nothing_of_the_whole_test() -> None:
    remaining = Remaining()
    remaining.expect({"one": 100.0})
    remaining.done(700, 1000, 2.0)
    assert remaining.seconds("one", 2.0) == 30.0
    remaining.done(140, 150, 4.0)
    assert remaining.seconds("one", 4.0) == 96.0


def test_a_count_that_may_end_early_says_how_much_may_be_left_at_most(pipe: Pipe) -> None:
    clock = VirtualClock()
    with RunDisplay(clock, pipe.writing) as display:
        display.pytest_rackloop_expected({"a/one::one": 60.0, "a/two::two": 30.0})
        display.pytest_rackloop_event(TestStarted("a/one::one", "do one"))
        clock.advance(2)
        # The preparation counts its own, and is nearly done.
        display.pytest_rackloop_progress("a/one::one", 900, 1000, "MiB written")
        clock.advance(8)
        for done in range(131):
            display.pytest_rackloop_progress("a/one::one", done, 150, "phases, at most")
            clock.advance(2)
            if done == 20:
                assert display.line() == "1/2 a/one: 20 of 150 phases, at most, 52 s, about 38 s to 4 min 48 s left"
        assert display.line() == "1/2 a/one: 130 of 150 phases, at most, 4 min 32 s, about 1 min 31 s to 2 min 9 s left"
        display.pytest_rackloop_event(TestFinished("a/one::one", "pass", None, None, 60.0))
        assert "to" not in display.line().split("about")[1]
        display.pytest_rackloop_event(TestStarted("a/two::two", "do two"))
        assert "to" not in display.line().split("about")[1]
        display.pytest_rackloop_progress("a/two::two", 0, 100, "phases, at most")
        clock.advance(200)
        display.pytest_rackloop_progress("a/two::two", 50, 100, "phases, at most")
        assert display.line().endswith("50 of 100 phases, at most, 7 min 52 s, at most about 3 min 20 s left")


def test_the_remaining_time_stands_while_the_rack_is_prepared(pipe: Pipe) -> None:
    clock = VirtualClock()
    with RunDisplay(clock, pipe.writing) as display:
        display.pytest_rackloop_expected({"a/one::one": 60.0})
        display.pytest_rackloop_event(TestStarted("a/one::one", "do one"))
        for step in ("starting lab mock", "identifying the drives"):
            display.pytest_rackloop_step(step)
            clock.advance(20)
            assert display.line().endswith("about 1 min left")
        display.pytest_rackloop_step("")
        display.pytest_runtest_call()
        clock.advance(20)
        assert display.line() == "1/1 a/one, 1 min, about 40 s left"


def test_a_line_has_no_codes_that_steer_a_terminal(pipe: Pipe) -> None:
    clock = VirtualClock()
    with RunDisplay(clock, pipe.writing) as display:
        run_of_two(display, clock)
    assert not [line for line in pipe.lines() if re.search(r"[\x00-\x1f]", line)]
