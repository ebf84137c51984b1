"""Parts of a person's lease: who has the whole of it is not kept from it by those who wait for it to end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from rackloop.clock import VirtualClock
from rackloop.errors import BadInput
from rackloop.safety.leases import Holder, Leases
from rackloop.safety.store import open_store
from tests.parts import parts

WHOLE, SRV1 = parts(whole=True), parts(servers=frozenset({"srv1"}))
ANN, BOB = Holder("ann", "here"), Holder("bob", "there")


@pytest.fixture
def leases() -> Iterator[Leases]:
    with closing(open_store(":memory:", VirtualClock())) as store:
        yield Leases(store, "lab")


def test_a_part_does_not_wait_for_those_who_wait_for_the_lease_it_is_a_part_of(leases: Leases) -> None:
    mine = leases.request(WHOLE, ANN)
    waiting = leases.request(SRV1, BOB)
    part = leases.request(SRV1, ANN, within=mine.id)
    assert part.lease
    other = leases.request(SRV1, ANN, within=mine.id)
    assert other.held_up_by == (str(part.lease),)
    leases.release(part)
    assert leases.poll(waiting).lease is None
    assert leases.poll(other).lease
    leases.release(mine)
    assert leases.poll(waiting).lease


def test_a_part_has_no_parts_that_would_outlive_the_lease(leases: Leases) -> None:
    mine = leases.request(WHOLE, ANN)
    part = leases.request(SRV1, ANN, within=mine.id)
    with pytest.raises(BadInput, match=f"lease {part.id} of lab lab is a part of lease {mine.id}: ask within that one"):
        leases.request(SRV1, ANN, within=part.id)


@pytest.mark.parametrize("purpose", ["\x1b[2J", "two\nlines", "x" * 1000])
def test_a_purpose_that_is_no_line_of_text_is_refused(leases: Leases, purpose: str) -> None:
    with pytest.raises(BadInput, match=r"the purpose .* is shown to others: give a line of at most") as refused:
        leases.request(SRV1, ANN, purpose=purpose)
    assert "\x1b" not in str(refused.value)
    assert leases.request(SRV1, ANN, purpose="a line").lease


def test_a_stored_purpose_that_steers_a_terminal_is_shown_as_it_is_written(leases: Leases) -> None:
    ticket = leases.request(SRV1, ANN, purpose="a line")
    with leases.store.transaction("lab") as tables:
        tables.rows("UPDATE lease SET purpose = ?", "\x1b[2J")
    (held,) = leases.held()
    assert (held.id, held.purpose) == (ticket.id, r"\x1b[2J")
