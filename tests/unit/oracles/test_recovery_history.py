"""What a read may bring, by the history: held against registers that do each write at some moment of its own."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rackloop.seed import Stream
from rackloop_oracles.recovery import History, Write

BLOCK = 300  # not of the first bucket


def read(history: History) -> frozenset[int]:
    return history.candidates(BLOCK, history.moment(), history.moment())


def written(history: History, *, is_acknowledged: bool = True) -> Write:
    write = history.begin_write(BLOCK, 1)
    history.end_write(write, is_acknowledged=is_acknowledged)
    return write


def flushed(history: History) -> None:
    history.note_flush(history.moment())


def seen(history: History, generation: int) -> None:
    began = history.moment()
    history.note_seen(np.array([BLOCK]), np.array([generation], np.uint64), began)


def test_an_acknowledged_write_supersedes_what_came_before() -> None:
    history = History(400)
    assert read(history) == {0}
    written(history)
    written(history)
    assert read(history) == {2}
    assert history.newest[BLOCK] == 2


def test_a_write_in_flight_may_be_seen_or_not() -> None:
    history = History(400)
    written(history)
    write = history.begin_write(BLOCK, 1)
    assert read(history) == {1, 2}
    history.end_write(write, is_acknowledged=True)
    assert read(history) == {2}


def test_a_write_that_failed_may_be_seen_until_a_later_one_is_acknowledged() -> None:
    history = History(400)
    written(history)
    written(history, is_acknowledged=False)
    assert read(history) == {1, 2}
    assert history.newest[BLOCK] == 1
    written(history)
    assert read(history) == {3}


def test_of_writes_that_overlap_either_may_be_last() -> None:
    history = History(400)
    first, second = history.begin_write(BLOCK, 1), history.begin_write(BLOCK, 1)
    history.end_write(second, is_acknowledged=True)
    history.end_write(first, is_acknowledged=True)
    assert read(history) == {1, 2}


def test_a_power_cut_takes_back_what_was_not_flushed() -> None:
    history = History(400)
    written(history)
    flushed(history)
    written(history)
    in_flight = history.begin_write(BLOCK, 1)
    history.note_power_cut()
    assert read(history) == {1, 2, 3}
    history.end_write(in_flight, is_acknowledged=True)
    assert not in_flight.is_acknowledged
    written(history)
    assert read(history) == {4}
    history.note_power_cut()
    assert read(history) == {1, 2, 3, 4}


def test_a_flush_covers_only_what_was_acknowledged_before_it_began() -> None:
    history = History(400)
    began = history.moment()
    written(history)
    history.note_flush(began)
    history.note_power_cut()
    assert read(history) == {0, 1}


def test_what_was_seen_stays_until_power_is_cut() -> None:
    history = History(400)
    written(history)
    flushed(history)
    written(history)
    history.note_power_cut()
    seen(history, 1)
    assert read(history) == {1}
    assert history.newest[BLOCK] == 1
    history.note_power_cut()
    assert read(history) == {1, 2}


def test_what_was_seen_of_an_older_write_is_not_what_is_expected_of_a_newer() -> None:
    history = History(400)
    written(history)
    began = history.moment()
    written(history)
    history.note_seen(np.array([BLOCK]), np.array([1], np.uint64), began)
    assert history.newest[BLOCK] == 2
    assert read(history) == {2}


STEPS = st.lists(st.sampled_from(["begin", "end", "fail", "do", "flush", "cut", "read", "read"]), max_size=40)


@settings(max_examples=300, deadline=None)
@given(STEPS, st.randoms(use_true_random=False))
def test_a_register_with_a_cache_never_brings_what_is_not_a_candidate(steps: list[str], chance: Stream) -> None:
    """Writes are done at some moment between beginning and end; the cache reaches the drive when it likes."""
    history = History(400)
    cache = drive = 0
    running: dict[int, Write] = {}
    not_done: set[int] = set()
    for step in steps:
        if chance.random() < 0.3:
            drive = cache
        match step:
            case "begin":
                write = history.begin_write(BLOCK, 1)
                running[write.generation] = write
                not_done.add(write.generation)
            case "do" if not_done:
                cache = chance.choice(sorted(not_done))
                not_done.remove(cache)
            case "end" | "fail" if running:
                write = running.pop(chance.choice(sorted(running)))
                if write.generation in not_done:
                    not_done.remove(write.generation)
                    if step == "end" or chance.random() < 0.5:
                        cache = write.generation
                history.end_write(write, is_acknowledged=step == "end")
            case "flush":
                began = history.moment()
                drive = cache
                history.note_flush(began)
            case "cut":
                for generation in sorted(not_done):
                    if chance.random() < 0.5:
                        cache = generation
                        drive = cache if chance.random() < 0.5 else drive
                cache = drive
                running.clear()
                not_done.clear()
                history.note_power_cut()
            case "read":
                began = history.moment()
                assert cache in history.candidates(BLOCK, began, history.moment())
                if cache:
                    history.note_seen(np.array([BLOCK]), np.array([cache], np.uint64), began)
                    assert int(history.newest[BLOCK]) in history.candidates(BLOCK, began, history.moment())
