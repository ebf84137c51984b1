"""Leases against a model, move by move: never two with one server, tokens that grow, the queue in order, and an end.

They are held by people, whose time alone ends them; by processes that are seen to live or to be dead; by processes that
cannot be seen; and as parts of a person's lease.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, precondition, rule

from rackloop.errors import BadInput
from rackloop.lab import Parts
from rackloop.safety.leases import Holder, Lease, LeaseLost, Leases, Process, Ticket, _holder
from rackloop.safety.store import open_store
from tests.parts import parts
from tests.unit.harness.set_clock import SetClock

# No sum of the steps of time below is a multiple of it: whether a moment is over is never a matter of rounding.
TERM_S = 15.0125
BEAT_S = 8.3
STEPS_S = [1.1, BEAT_S, 16.7, 61.3]
PATIENCE = 4
ANN = Holder("ann", "here")
HERE = Process.this()
UNSEEN = Holder("bob", "there", Process(1, 1, "pid:[1]", HERE.boot_id))
NUMBERS = [1, 2]
SERVERS = st.sets(st.sampled_from(["srv1", "srv2", "srv3"]), min_size=1).map(frozenset)
SLICES = st.one_of(SERVERS.map(lambda names: parts(servers=names)), st.just(parts(whole=True)))


@dataclass
class Processes:
    """Those of this machine: each number with when the one that has it began, None where nobody has it."""

    started: dict[int, int | None] = field(default_factory=dict)
    begun: int = 0

    def holder(self, number: int) -> Holder:
        """The process of this number, which begins where there is none."""
        if self.started.get(number) is None:
            self.begun += 1
            self.started[number] = self.begun
        return Holder("ann", "here", Process(number, self.started[number] or 0, HERE.namespace, HERE.boot_id))

    def lives(self, holder: Holder) -> bool:
        process = holder.process
        return process is None or holder is UNSEEN or self.started.get(process.pid) == process.started

    def when_started(self, pid: int) -> int | None:
        if self.started.get(pid) is None:
            raise FileNotFoundError
        return self.started[pid]


@dataclass(eq=False)
class Known:
    """A ticket as the model has it."""

    ticket: Ticket
    holder: Holder
    place: int
    until_s: float
    within: Known | None
    token: int | None = None

    @property
    def order(self) -> tuple[int, int]:
        return -self.ticket.priority, self.place

    def is_in_the_way_of(self, other: Known) -> bool:
        if self is other or other.within is self or not self.ticket.parts.overlaps(other.ticket.parts):
            return False
        if self.token is not None:
            return self.within is not other
        return self.order < other.order and (other.within is None or self.within is other.within)


class LeasesModel(RuleBasedStateMachine):
    """What the store says after each move is what the model says."""

    tickets: Bundle[Known] = Bundle("tickets")

    def __init__(self) -> None:
        super().__init__()
        self.clock = SetClock()
        self.processes = Processes()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(_holder, "_started", self.processes.when_started)
        self.patch.setattr(_holder, "_exists", lambda _pid: False)
        self.store = open_store(":memory:", self.clock)
        self.leases = Leases(self.store, "lab")
        self.live: list[Known] = []
        self.last_token = 0
        self.asked = 0

    def teardown(self) -> None:
        try:
            self.nothing_is_stuck()
        finally:
            self.store.close()
            self.patch.undo()

    def nothing_is_stuck(self) -> None:
        """Once nobody is there any more, whoever comes has the rack within the patience for one process."""
        self.processes.started.clear()
        self.clock.advance(PATIENCE * TERM_S + 1)
        ticket = self.leases.request(parts(whole=True), ANN, priority=-9)
        assert ticket.lease is not None, ticket.held_up_by
        assert [lease.id for lease in self.leases.held()] == [ticket.id]

    @property
    def now_s(self) -> float:
        return self.clock.now_ns() / 1e9

    def is_over(self, known: Known) -> bool:
        if known.within is not None and (known.within not in self.live or self.is_over(known.within)):
            return True
        if not self.processes.lives(known.holder):
            return True
        is_seen = known.holder.process is not None and known.holder is not UNSEEN
        return self.now_s > known.until_s + (3 * TERM_S if is_seen else 0)

    def end_what_is_over(self) -> None:
        self.live = [known for known in self.live if not self.is_over(known)]

    def end(self, *ended: Known) -> None:
        self.live = [known for known in self.live if known not in ended and known.within not in ended]

    def grant(self, known: Known, token: int) -> None:
        self.raise_token(token)
        known.token = token
        known.until_s = self.now_s + TERM_S

    def raise_token(self, token: int) -> None:
        assert token > self.last_token
        self.last_token = token

    def judge(self, known: Known, ticket: Ticket) -> None:
        """What the store answered to a ticket that is live is what the model says of it."""
        may_have_it = known.token is not None or not any(other.is_in_the_way_of(known) for other in self.live)
        assert (ticket.lease is not None) == may_have_it, ticket.held_up_by
        if ticket.lease is not None and known.token is None:
            self.grant(known, ticket.lease.token)

    def ask(self, wanted: Parts, holder: Holder, priority: int, within: Known | None = None) -> Known:
        part_of = None if within is None else within.ticket.id
        ticket = self.leases.request(wanted, holder, priority=priority, term_s=TERM_S, within=part_of)
        self.end_what_is_over()
        self.asked += 1
        known = Known(ticket, holder, self.asked, self.now_s + TERM_S, within)
        self.live.append(known)
        self.judge(known, ticket)
        return known

    @rule(target=tickets, wanted=SLICES, priority=st.integers(-1, 1), who=st.sampled_from([None, 0, *NUMBERS]))
    def request(self, wanted: Parts, priority: int, who: int | None) -> Known:
        holder = ANN if who is None else self.processes.holder(who) if who else UNSEEN
        return self.ask(wanted, holder, priority)

    def may_have_parts(self, known: Known) -> bool:
        is_had = known in self.live and known.token is not None and not self.is_over(known)
        return is_had and known.holder == ANN and known.within is None

    @rule(target=tickets, which=st.integers(0, 9), wanted=SLICES, number=st.sampled_from(NUMBERS))
    def request_a_part(self, which: int, wanted: Parts, number: int) -> Known:
        wholes = [known for known in self.live if self.may_have_parts(known)] or [self.ask(wanted, ANN, 0)]
        within = wholes[which % len(wholes)]
        if within.token is None:
            return within
        part = wanted if within.ticket.parts.contains(wanted) else within.ticket.parts
        return self.ask(part, self.processes.holder(number), 0, within)

    @rule(known=tickets, wanted=SLICES)
    def request_a_part_of_what_has_none(self, known: Known, wanted: Parts) -> None:
        if not self.may_have_parts(known) or not known.ticket.parts.contains(wanted):
            with pytest.raises((BadInput, LeaseLost)):
                self.leases.request(wanted, ANN, term_s=TERM_S, within=known.ticket.id)

    @rule(known=tickets)
    def poll(self, known: Known) -> None:
        if not self.processes.lives(known.holder):
            return
        if known.token is None:
            known.until_s = self.now_s + TERM_S
        if known in self.live and not self.is_over(known):
            self.end_what_is_over()
            self.judge(known, self.leases.poll(known.ticket))
        else:
            with pytest.raises(LeaseLost):
                self.leases.poll(known.ticket)

    def is_still_had(self, known: Known) -> bool:
        """A process goes on with a late heartbeat where nobody's move found its lease over; a person's time is over."""
        if known not in self.live or (known.within is not None and self.is_over(known.within)):
            return False
        return known.holder.process is not None or self.now_s <= known.until_s

    @rule(beats=st.integers(0, 3))
    def go_on(self, beats: int) -> None:
        """Time passes for which every process renews what it holds."""
        self.heartbeat()
        for _ in range(beats):
            self.clock.advance(BEAT_S)
            self.what_is_held_is_what_the_model_has_and_never_twice()
            self.heartbeat()

    def heartbeat(self) -> None:
        for known in self.live:
            if known.token is not None and self.processes.lives(known.holder) and self.is_still_had(known):
                self.leases.renew(self.lease_of(known))
                if known.holder.process is not None:
                    known.until_s = self.now_s + TERM_S

    @rule(known=tickets)
    def take_a_token(self, known: Known) -> None:
        if known.token is None or not self.processes.lives(known.holder):
            return
        if not self.is_still_had(known):
            with pytest.raises(LeaseLost):
                self.leases.fresh_token(self.lease_of(known))
            with pytest.raises(LeaseLost):
                self.leases.renew(self.lease_of(known))
            return
        self.raise_token(self.leases.fresh_token(self.lease_of(known)))
        if known.holder.process is not None and self.now_s > known.until_s:
            known.until_s = self.now_s + TERM_S

    @rule(known=tickets)
    def keep_without_the_process(self, known: Known) -> None:
        if known.token is None or not self.processes.lives(known.holder) or not self.is_still_had(known):
            return
        self.leases.keep(self.lease_of(known), TERM_S)
        known.holder = Holder(known.holder.user, known.holder.host)
        known.until_s = self.now_s + TERM_S

    @rule(known=consumes(tickets))
    def release(self, known: Known) -> None:
        self.leases.release(known.ticket)
        self.end(known)

    @rule(known=tickets)
    def steal(self, known: Known) -> None:
        if not self.processes.lives(known.holder) or known.token is not None:
            return
        if known not in self.live or self.is_over(known):
            with pytest.raises(LeaseLost):
                self.leases.steal(known.ticket, "because")
            return
        self.end_what_is_over()
        lease, robbed = self.leases.steal(known.ticket, "because")
        expected = [other for other in self.live if other.token is not None and other.is_in_the_way_of(known)]
        assert {one.id for one in robbed} == {other.ticket.id for other in expected}
        self.end(*expected)
        self.grant(known, lease.token)

    @rule(seconds=st.sampled_from(STEPS_S))
    def let_time_pass(self, seconds: float) -> None:
        self.clock.advance(seconds)

    @rule(days=st.integers(-3, 3))
    def set_the_time_of_day(self, days: int) -> None:
        self.clock.set_by = timedelta(days=days)

    @precondition(lambda self: any(self.processes.started.values()))
    @rule(number=st.sampled_from(NUMBERS))
    def a_process_ends(self, number: int) -> None:
        self.processes.started[number] = None

    @invariant()
    def what_is_held_is_what_the_model_has_and_never_twice(self) -> None:
        held = self.leases.held()
        now = [known for known in self.live if known.token is not None and not self.is_over(known)]
        assert {lease.id: lease.token for lease in held} == {known.ticket.id: known.token for known in now}
        for number, lease in enumerate(held):
            others = (other for other in held[:number] if lease.id != other.within and other.id != lease.within)
            assert not any(lease.parts.overlaps(other.parts) for other in others)

    @invariant()
    def the_queue_is_in_order_and_whoever_may_have_it_is_told(self) -> None:
        now = [known for known in self.live if not self.is_over(known)]
        waiting = sorted((known for known in now if known.token is None), key=lambda known: known.order)
        assert [ticket.id for ticket in self.leases.queue()] == [known.ticket.id for known in waiting]
        for known in waiting:
            if not any(other.is_in_the_way_of(known) for other in now):
                assert self.leases.may_be_next(known.ticket)

    def lease_of(self, known: Known) -> Lease:
        assert known.token is not None
        at = self.clock.wall()
        return Lease(known.ticket.id, "lab", known.holder, known.ticket.parts, known.token, at, at, "", 0)


TestLeases = LeasesModel.TestCase
TestLeases.settings = settings(max_examples=40, stateful_step_count=30)
