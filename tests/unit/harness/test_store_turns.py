"""The queue for the turn at the switch: in order of arrival, and nobody who stopped holds the others up for ever."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from rackloop.clock import Deadline, VirtualClock
from rackloop.safety.store._engine import TURN_S, EngineFailed
from rackloop.safety.store._turns import Place

CLOCK = VirtualClock()


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[Callable[[], Place]]:
    """Gives the next place of one queue."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(closing(Place(tmp_path / "turn", CLOCK)))


def has_it(place: Place, wait_s: float = 0.0) -> bool:
    return place.wait(Deadline.after(CLOCK, wait_s))


def test_who_gives_the_turn_back_comes_after_all_who_wait(queue: Callable[[], Place]) -> None:
    first, second, third = queue(), queue(), queue()
    for _ in range(3):
        assert [has_it(place) for place in (third, second, first)] == [False, False, True]
        first.close()
        first, second, third = second, third, queue()


def test_who_gives_up_waiting_is_not_waited_for(queue: Callable[[], Place]) -> None:
    first, second, third = queue(), queue(), queue()
    second.close()
    assert not has_it(third, 1.0)
    first.close()
    assert has_it(third)


def test_who_stops_in_its_turn_is_stepped_over_by_the_next_alone(queue: Callable[[], Place]) -> None:
    _stopped, second, third = queue(), queue(), queue()
    assert not has_it(third, 0.9 * TURN_S)
    assert not has_it(second, 0.9 * TURN_S)
    assert has_it(second, 0.2 * TURN_S)
    assert not has_it(third, 0.9 * TURN_S)
    second.close()
    assert has_it(third)


def test_a_long_queue_makes_nobody_impatient(queue: Callable[[], Place]) -> None:
    before, last = [queue() for _ in range(5)], queue()
    for place in before:
        assert has_it(place)
        assert not has_it(last, 0.9 * TURN_S)
        place.close()
    assert has_it(last)


def test_a_queue_that_cannot_be_had_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(EngineFailed, match="cannot be opened: No such file or directory"):
        Place(tmp_path / "nowhere" / "turn", CLOCK)
