"""Fencing at the switch, on the wire: a stale holder is refused there, and holders of parts share it in turns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from rackloop.abilities import Applied, LiveMap, stager
from rackloop.clock import Deadline, VirtualClock
from rackloop.errors import BadInput, HigherToken, LockedOut, NotSupported, StaleGeneration
from rackloop.lab import Lab, Parts, parts_at, parts_of
from rackloop.portmap import Full, MapChange, Open, Partial, PortMap
from rackloop.record.acts import SaveBootMap
from rackloop.safety import heal
from rackloop.safety.leases import HeldLease, LeaseLost, Leases, LeaseTerms, fenced, holding
from rackloop.safety.store import Store, open_store
from rackloop.safety.undo import ActRecorder, Equipment, Journal, journalled, undoing
from rackloop_drivers.fabric.flexfabric import (
    Exchange,
    FlexFabric,
    FlexFabricPhy,
    open_flexfabric,
)
from tests.deadlines import CLOCK, soon
from tests.switch_in_memory import switch_in_memory, tcp
from tests.unit.harness.sim_rack import BASELINE, described


class Rack:
    """A real switch peer, a store beside it, and any number of controllers."""

    def __init__(self, stack: ExitStack, folder: Path, url: str) -> None:
        self._stack = stack
        self.folder = folder
        self.url = url
        self.lab: Lab = described(folder)
        self.on_exchange: Callable[[Exchange], None] | None = None

    def store(self) -> Store:
        return self._stack.enter_context(closing(open_store(self.folder / "store.sqlite", CLOCK)))

    def holding(self, part: Parts, *, steal_why: str | None = None) -> HeldLease:
        leases = Leases(self.store(), self.lab.name)
        return self._stack.enter_context(holding(leases, part, LeaseTerms(steal_why=steal_why)))

    def equipment(self, held: HeldLease) -> Equipment:
        """The switch as this controller has it."""
        fabric, phy = self.fabric(held.lease.token if held.parts.whole else None)
        return Equipment(fabric, phy) if held.parts.whole else Equipment(*fenced(fabric, phy, held))

    def fabric(self, token: int | None = None) -> tuple[FlexFabric, FlexFabricPhy]:
        """The switch, by a session of its own."""
        session = open_flexfabric(self.url, CLOCK, soon(), token=token, on_exchange=self.on_exchange)
        self._stack.callback(session.close)
        return FlexFabric(session), FlexFabricPhy(session)

    def acting(self, held: HeldLease) -> Equipment:
        return journalled(self.equipment(held), self.recorder(held))

    def recorder(self, held: HeldLease) -> ActRecorder:
        disturbs = frozenset({"d03"})
        return ActRecorder(self.lab, Journal(held.leases.store), f"run {held.lease.id}", lease=held, disturbs=disturbs)


@pytest.fixture
def rack(tmp_path: Path) -> Iterator[Rack]:
    with switch_in_memory(BASELINE) as thread, ExitStack() as stack:
        yield Rack(stack, tmp_path, tcp(thread))


def part_of(rack: Rack, server: str) -> Parts:
    return parts_of(rack.lab, [server])


def test_a_stale_holder_of_the_rack_is_refused_at_the_switch(rack: Rack) -> None:
    stale = rack.equipment(rack.holding(parts_of(rack.lab)))
    stale.fabric.apply(Open(frozenset({1})), soon())
    thief = rack.equipment(rack.holding(parts_of(rack.lab), steal_why="an outage"))
    with pytest.raises(LockedOut) as refused:
        stale.fabric.apply(Open(frozenset({2})), soon())
    assert refused.value.code == -203
    with pytest.raises(LockedOut):
        open_flexfabric(rack.url, CLOCK, soon(), token=1)
    assert thief.fabric.live_map(soon()).pairs == BASELINE.without([1])


def test_a_stale_holder_of_the_rack_is_refused_in_the_journal_before(rack: Rack) -> None:
    held = rack.holding(parts_of(rack.lab))
    stale = rack.acting(held)
    rack.holding(part_of(rack, "srv2"), steal_why="an outage")
    with pytest.raises(LeaseLost, match=r"stolen by .* \(an outage\)"):
        stale.fabric.apply(Open(frozenset({1})), soon())
    assert Journal(held.leases.store).standing(rack.lab.name) == []
    assert stale.fabric.live_map(soon()).pairs == BASELINE


def test_holders_of_parts_share_the_switch_and_see_their_part_alone(rack: Rack) -> None:
    first, second = (rack.acting(rack.holding(part_of(rack, name))) for name in ("srv1", "srv2"))
    for _ in range(3):
        first.fabric.apply(Partial(PortMap.of([(1, 102)])), soon())
        second.fabric.apply(Full(PortMap.of([(5, 104), (6, 103)])), soon())
        assert first.fabric.live_map(soon()).pairs == PortMap.of([(1, 102)])
        assert second.fabric.live_map(soon()).pairs == PortMap.of([(5, 104), (6, 103)])
        first.fabric.apply(Full(PortMap.of([(1, 101), (2, 102)])), soon())
    assert second.fabric.live_map(soon()).pairs == PortMap.of([(5, 104), (6, 103)])


@pytest.mark.parametrize(
    ("servers", "exchanges"),
    [
        (None, [":ROUT:LOAD", ":TRIG"]),
        (["srv1"], [":SYST:LOCK:REQ", ":ROUT:LOAD", ":SYST:LOCK:REL", ":SYST:LOCK:REQ", ":TRIG", ":SYST:LOCK:REL"]),
    ],
)
def test_a_remap_takes_no_exchange_to_read_the_live_map(
    rack: Rack, servers: list[str] | None, exchanges: list[str]
) -> None:
    sent: list[str] = []
    rack.on_exchange = lambda exchange: sent.append(exchange.sent)
    acting = rack.acting(rack.holding(parts_of(rack.lab, servers)))
    fabric, live = stager(acting.fabric), acting.fabric.live_map(soon())
    for drive in (102, 101):
        change = Partial(PortMap.of([(1, drive)]))
        sent.clear()
        applied = fabric.trigger(fabric.stage(change, soon()), soon())
        assert [_act(message) for message in sent] == exchanges
        assert not any(":ROUT:MAP?;" in message for message in sent)
        live = LiveMap(applied.generation, change.after(live.pairs))
    assert acting.fabric.live_map(soon()) == live


def _act(message: str) -> str:
    """What a message has the switch do; a lock may go before the act that it is for."""
    return next(act for act in (":ROUT:LOAD", ":TRIG", ":SYST:LOCK:REL", ":SYST:LOCK:REQ") if f"{act} " in message)


def test_a_part_is_staged_ahead_and_goes_stale_when_another_acts(rack: Rack) -> None:
    first, second = (rack.acting(rack.holding(part_of(rack, name))) for name in ("srv1", "srv2"))
    fabric = stager(first.fabric)
    fabric.trigger(fabric.stage(Full(PortMap.of([(1, 102)])), soon()), soon())
    assert first.fabric.live_map(soon()).pairs == PortMap.of([(1, 102)])
    assert second.fabric.live_map(soon()).pairs == PortMap.of([(5, 103), (6, 104)])
    staged = fabric.stage(Partial(PortMap.of([(1, 101)])), soon())
    second.fabric.apply(Open(frozenset({5})), soon())
    with pytest.raises(StaleGeneration):
        fabric.trigger(staged, soon())
    assert first.fabric.live_map(soon()).pairs == PortMap.of([(1, 102)])
    for change in (Open(frozenset({5})), Partial(PortMap.of([(1, 103)]))):
        with pytest.raises(BadInput, match=r"not in the lease|is not in lease"):
            fabric.stage(change, soon())


def test_who_lost_the_rack_cannot_trigger_what_it_staged(rack: Rack) -> None:
    mine = rack.holding(part_of(rack, "srv1"))
    fabric = stager(rack.acting(mine).fabric)
    staged = fabric.stage(Open(frozenset({1})), soon())
    rack.holding(part_of(rack, "srv1"), steal_why="an outage")
    with pytest.raises(LeaseLost, match="stolen"):
        fabric.trigger(staged, soon())
    assert Journal(mine.leases.store).standing(rack.lab.name) == []


def test_nothing_outside_the_part_is_touched(rack: Rack) -> None:
    held = rack.holding(part_of(rack, "srv1"))
    acting, bare = rack.acting(held), rack.equipment(held)
    for fabric in (acting.fabric, bare.fabric):
        for change in (
            Open(frozenset({5})),
            Partial(PortMap.of([(1, 103)])),
            Full(PortMap.of([(1, 101), (2, 104)])),
        ):
            with pytest.raises(BadInput, match=r"not in the lease|is not in lease"):
                fabric.apply(change, soon())
        with pytest.raises(NotSupported, match="shared with other leases"):
            fabric.save_boot_map(soon())
    assert acting.phy
    with pytest.raises(BadInput, match="is not in lease"):
        acting.phy.drop([5], 0.01, soon(), request_id=1)
    assert Journal(held.leases.store).standing(rack.lab.name) == []
    whole = rack.equipment(rack.holding(parts_of(rack.lab), steal_why="to look"))
    assert whole.fabric.live_map(soon()).pairs == BASELINE


def test_who_stops_in_its_turn_is_stepped_over_and_refused_and_asks_again(rack: Rack) -> None:
    stopped, other = (rack.holding(part_of(rack, name)) for name in ("srv1", "srv2"))
    # Who waits for the turn does so in no time.
    other.leases.store._engine._clock = VirtualClock()  # type: ignore[attr-defined]
    others = rack.equipment(other).phy
    assert others
    fabric, _ = rack.fabric()
    refused: list[LockedOut] = []

    def act(change: MapChange, deadline: Deadline, *, on: LiveMap | None = None) -> Applied:
        if not refused:
            others.drop([5], 0.01, soon(), request_id=1)
        try:
            return FlexFabric.apply(fabric, change, deadline, on=on)
        except LockedOut as error:
            refused.append(error)
            raise

    fabric.apply = act  # type: ignore[method-assign]
    fenced(fabric, None, stopped)[0].apply(Open(frozenset({1})), soon())
    assert [error.code for error in refused] == [-203]
    assert fabric.live_map(soon()).pairs == BASELINE.without([1])


def test_an_act_that_is_not_its_turn_in_time_says_so(rack: Rack) -> None:
    mine, theirs = (rack.holding(part_of(rack, name)) for name in ("srv1", "srv2"))
    deadline = Deadline.after(CLOCK, 0.02)
    with (
        theirs.leases.store.turn(rack.lab.name, 20.0),
        pytest.raises(LockedOut, match=r"the switch of lab bench was not free for this act in time.* lease the whole"),
    ):
        rack.equipment(mine).fabric.apply(Open(frozenset({1})), deadline)
    assert rack.equipment(mine).fabric.live_map(soon()).pairs == PortMap.of([(1, 101), (2, 102)])


def test_a_part_is_undone_without_what_others_did(rack: Rack) -> None:
    mine, theirs = rack.holding(part_of(rack, "srv1")), rack.holding(part_of(rack, "srv2"))
    other = rack.acting(theirs)
    with undoing(rack.equipment(mine), rack.recorder(mine), CLOCK) as acting:
        acting.fabric.apply(Partial(PortMap.of([(1, 102)])), soon())
        other.fabric.apply(Open(frozenset({5})), soon())
        assert acting.phy
        acting.phy.drop([2], 0.05, soon(), request_id=7)
    assert rack.equipment(mine).fabric.live_map(soon()).pairs == PortMap.of([(1, 101), (2, 102)])
    assert other.fabric.live_map(soon()).pairs == PortMap.of([(6, 104)])
    assert [entry.run for entry in Journal(theirs.leases.store).standing(rack.lab.name)] == [f"run {theirs.lease.id}"]


def test_who_lost_the_rack_leaves_it_as_it_is_for_who_has_it(rack: Rack) -> None:
    mine = rack.holding(part_of(rack, "srv1"))

    def work() -> None:
        with undoing(rack.equipment(mine), rack.recorder(mine), CLOCK) as acting:
            acting.fabric.apply(Open(frozenset({1})), soon())
            rack.holding(part_of(rack, "srv1"), steal_why="an outage")

    with pytest.raises(LeaseLost, match="stolen"):
        work()
    assert len(Journal(mine.leases.store).standing(rack.lab.name)) == 1


def test_a_lease_that_is_lost_between_the_journal_and_the_switch_leaves_nothing_to_undo(rack: Rack) -> None:
    mine = rack.holding(part_of(rack, "srv1"))
    acting = journalled(rack.equipment(mine), rack.recorder(mine))
    ask_for_a_token = mine.fresh_token

    def robbed(above: int = 0) -> int:
        rack.holding(part_of(rack, "srv1"), steal_why="an outage")
        return ask_for_a_token(above)

    mine.fresh_token = robbed  # type: ignore[method-assign]
    with pytest.raises(LeaseLost, match="stolen"):
        acting.fabric.apply(Open(frozenset({1})), soon())
    assert Journal(mine.leases.store).standing(rack.lab.name) == []


def test_heal_of_a_part_whose_circuit_leads_outside_says_to_heal_the_whole_rack(rack: Rack) -> None:
    leases = Leases(rack.store(), rack.lab.name)
    with holding(leases, parts_of(rack.lab)) as whole:
        rack.equipment(whole).fabric.apply(Partial(PortMap.of([(1, 103)])), soon())
    mine = rack.holding(part_of(rack, "srv1"))
    journal = Journal(leases.store)
    lab, equipment = rack.lab.restricted(mine.parts), rack.equipment(mine)
    report = heal(lab, journal, equipment, CLOCK, soon(), lease=mine)
    (problem,) = report.problems
    assert "ports 103 are not in the lease" in problem
    assert "`rackloop heal bench` heals the whole rack" in problem
    journal.intend("bench", "run", "switch", what=SaveBootMap(), inverse=[Partial(PortMap.of([(1, 101)]))])
    report = heal(lab, journal, equipment, CLOCK, soon(), lease=mine)
    assert [problem.partition(":")[0] for problem in report.problems] == ["port map", "switch"]
    assert len(journal.standing("bench")) == 1


def test_an_act_by_hand_waits_for_who_has_the_port(rack: Rack) -> None:
    rack.holding(part_of(rack, "srv1"))
    leases = Leases(rack.store(), rack.lab.name)
    assert leases.request(parts_at(rack.lab, [101, 5]), rack.holding(part_of(rack, "srv2")).lease.holder).lease is None


def fence_off(rack: Rack, *, holds: bool) -> int:
    """Show the switch a token that no store of the lab gave, as one that was replaced did; it."""
    foreign = Leases(rack.store(), rack.lab.name).last_token() + 10**9
    fabric, _ = rack.fabric()
    fabric.take_lock(foreign, soon())
    if not holds:
        fabric.release_lock(foreign, soon())
    return foreign


@pytest.mark.parametrize("holds", [False, True], ids=["free", "held"])
def test_a_switch_that_has_seen_a_higher_token_says_so_and_no_tokens_are_burnt(rack: Rack, holds: bool) -> None:
    mine = rack.holding(part_of(rack, "srv1"))
    foreign = fence_off(rack, holds=holds)
    before = mine.leases.last_token()
    acting = journalled(rack.equipment(mine), rack.recorder(mine))
    way_out = f"heal bench --above {foreign}`" if holds else "heal bench`"
    with pytest.raises(
        HigherToken, match=f"lower than {foreign}, which the switch has granted.*See that it is not in use.*{way_out}"
    ):
        acting.fabric.apply(Open(frozenset({1})), soon())
    assert mine.leases.last_token() <= before + 2
    assert Journal(mine.leases.store).standing(rack.lab.name) == []


def test_a_token_above_one_that_is_given_opens_the_switch_again(rack: Rack) -> None:
    mine = rack.holding(parts_of(rack.lab))
    foreign = fence_off(rack, holds=True)
    with pytest.raises(HigherToken) as refused:
        rack.equipment(mine)
    assert (refused.value.highest, refused.value.holder) == (foreign, foreign)
    fabric, _ = rack.fabric(mine.fresh_token(foreign))
    fabric.apply(Open(frozenset({1})), soon())
    # Those who come after have higher ones still.
    assert mine.fresh_token() > foreign + 1


def test_a_store_that_replaces_another_gives_higher_tokens(rack: Rack, tmp_path: Path) -> None:
    clock = VirtualClock()
    tokens = []
    for number in range(2):
        store = open_store(tmp_path / f"{number}.sqlite", clock)
        with closing(store), holding(Leases(store, rack.lab.name), parts_of(rack.lab)) as held:
            tokens += [held.lease.token, *(held.fresh_token() for _ in range(10))]
        clock.advance(60)
    assert tokens == sorted(set(tokens))
