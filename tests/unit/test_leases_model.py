"""Leases against a model, move by move: never two with one server, tokens that grow, the queue in order, time."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from rackloop.clock import VirtualClock
from rackloop.leases import Holder, Lease, LeaseLost, Leases, Slice, Ticket
from rackloop.store import open_store

TERM_S = 15.0
ANN = Holder("ann", "here")
SERVERS = st.sets(st.sampled_from(["srv1", "srv2", "srv3"]), min_size=1).map(frozenset)
SLICES = st.one_of(SERVERS.map(lambda names: Slice(servers=names)), st.just(Slice(whole=True)))


@dataclass
class Known:
    """A ticket as the model has it."""

    ticket: Ticket
    place: int
    until_s: float
    token: int | None = None

    @property
    def order(self) -> tuple[int, int]:
        return -self.ticket.priority, self.place

    def is_in_the_way_of(self, other: Known) -> bool:
        is_first = self.token is not None or self.order < other.order
        return self is not other and is_first and self.ticket.slice.overlaps(other.ticket.slice)


class LeasesModel(RuleBasedStateMachine):
    """Leases bound to people, whose time alone ends them, so that a virtual clock decides all."""

    tickets: Bundle[Known] = Bundle("tickets")

    def __init__(self) -> None:
        super().__init__()
        self.clock = VirtualClock()
        self.store = open_store(":memory:", self.clock)
        self.leases = Leases(self.store, "lab")
        self.live: list[Known] = []
        self.last_token = 0
        self.asked = 0

    def teardown(self) -> None:
        self.store.close()

    @property
    def now_s(self) -> float:
        return self.clock.now_ns() / 1e9

    def lose_those_whose_time_is_over(self) -> None:
        self.live = [known for known in self.live if self.now_s <= known.until_s]

    def judge(self, known: Known, ticket: Ticket) -> None:
        """What the store answered to a ticket that is live is what the model says of it."""
        may_have_it = known.token is not None or not any(other.is_in_the_way_of(known) for other in self.live)
        assert (ticket.lease is not None) == may_have_it, ticket.held_up_by
        if ticket.lease is not None and known.token is None:
            assert ticket.lease.token > self.last_token
            self.last_token = known.token = ticket.lease.token
            known.until_s = self.now_s + TERM_S

    @rule(target=tickets, wanted=SLICES, priority=st.integers(-1, 1))
    def request(self, wanted: Slice, priority: int) -> Known:
        ticket = self.leases.request(wanted, ANN, priority=priority, term_s=TERM_S)
        self.lose_those_whose_time_is_over()
        self.asked += 1
        known = Known(ticket, self.asked, self.now_s + TERM_S)
        self.live.append(known)
        self.judge(known, ticket)
        return known

    @rule(known=tickets)
    def poll(self, known: Known) -> None:
        self.lose_those_whose_time_is_over() if known.until_s < self.now_s else None
        if known not in self.live:
            return
        ticket = self.leases.poll(known.ticket)
        known.until_s = self.now_s + TERM_S
        self.lose_those_whose_time_is_over()
        self.judge(known, ticket)

    @rule(known=tickets)
    def take_a_token(self, known: Known) -> None:
        if known.token is None:
            return
        self.lose_those_whose_time_is_over()
        lease = self.lease_of(known)
        if known in self.live:
            token = self.leases.fresh_token(lease)
            assert token > self.last_token
            self.last_token = token
        else:
            with pytest.raises(LeaseLost):
                self.leases.fresh_token(lease)

    @rule(known=consumes(tickets))
    def release(self, known: Known) -> None:
        self.leases.release(known.ticket)
        self.live = [other for other in self.live if other is not known]

    @rule(known=tickets)
    def steal(self, known: Known) -> None:
        self.lose_those_whose_time_is_over()
        if known not in self.live or known.token is not None:
            return
        lease, robbed = self.leases.steal(known.ticket, "because")
        expected = [
            other for other in self.live if other.token is not None and other.ticket.slice.overlaps(lease.slice)
        ]
        assert {one.id for one in robbed} == {other.ticket.id for other in expected}
        assert lease.token > self.last_token
        self.last_token = known.token = lease.token
        known.until_s = self.now_s + TERM_S
        self.live = [other for other in self.live if other not in expected]

    @rule(seconds=st.sampled_from([1.0, 8.0, 16.0]))
    def let_time_pass(self, seconds: float) -> None:
        self.clock.advance(seconds)

    @invariant()
    def what_is_held_is_what_the_model_has_and_never_twice(self) -> None:
        held = self.leases.held()
        now = [known for known in self.live if known.token is not None and self.now_s <= known.until_s]
        assert {lease.id: lease.token for lease in held} == {known.ticket.id: known.token for known in now}
        for number, lease in enumerate(held):
            assert not any(lease.slice.overlaps(other.slice) for other in held[:number])

    @invariant()
    def the_queue_is_in_order(self) -> None:
        waiting = [known for known in self.live if known.token is None and self.now_s <= known.until_s]
        waiting.sort(key=lambda known: known.order)
        assert [ticket.id for ticket in self.leases.queue()] == [known.ticket.id for known in waiting]

    def lease_of(self, known: Known) -> Lease:
        assert known.token is not None
        at = self.clock.wall()
        return Lease(known.ticket.id, "lab", ANN, known.ticket.slice, known.token, at, at, "", 0)


TestLeases = LeasesModel.TestCase
TestLeases.settings = settings(max_examples=40, stateful_step_count=30)
