"""What is typed on a console is sent for as long as the server is in a lease of the user's own."""

from __future__ import annotations

from rackloop.clock import VirtualClock
from rackloop.errors import LabError
from rackloop_cli.console.permit import TypingPermit


class Store:
    """A store of leases that says whether one is held, and counts how often it is asked."""

    def __init__(self) -> None:
        self.asked = 0
        self.is_held = True
        self.trouble: LabError | None = None

    def __call__(self) -> bool:
        self.asked += 1
        if self.trouble is not None:
            raise self.trouble
        return self.is_held


def test_a_lease_that_ended_ends_the_typing_for_good() -> None:
    store, clock = Store(), VirtualClock()
    permit = TypingPermit(store, clock, at_first=True)
    assert permit.may_type()
    store.is_held = False
    clock.sleep_until_ns(clock.now_ns() + 1_000_000_000)
    assert not permit.may_type()
    assert permit.why_not == "your lease of the server is over"
    store.is_held = True
    clock.sleep_until_ns(clock.now_ns() + 5_000_000_000)
    assert not permit.may_type()


def test_the_store_is_asked_once_a_second_and_not_at_each_key() -> None:
    store, clock = Store(), VirtualClock()
    permit = TypingPermit(store, clock, at_first=True)
    for _key in range(100):
        assert permit.may_type()
        clock.sleep_until_ns(clock.now_ns() + 50_000_000)
    assert store.asked == 4


def test_nothing_is_sent_where_the_store_cannot_be_asked() -> None:
    store, clock = Store(), VirtualClock()
    permit = TypingPermit(store, clock, at_first=True)
    store.trouble = LabError("the database is gone")
    clock.sleep_until_ns(clock.now_ns() + 1_000_000_000)
    assert not permit.may_type()
    assert "the database is gone" in permit.why_not


def test_who_had_no_lease_at_first_reads_only_and_asks_nothing() -> None:
    store, clock = Store(), VirtualClock()
    permit = TypingPermit(store, clock, at_first=False)
    clock.sleep_until_ns(clock.now_ns() + 5_000_000_000)
    assert not permit.may_type()
    assert (permit.why_not, store.asked) == ("reading only", 0)
