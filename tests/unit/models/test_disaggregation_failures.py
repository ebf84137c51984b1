"""The failure controller: spares, redistribution, and rules that find what breaks them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rackloop.measurement import Verdict
from rackloop_models.disaggregation import (
    Announced,
    CapacityGone,
    DriveFailed,
    Event,
    FailureController,
    Heartbeats,
    History,
    Judgement,
    Mapped,
    Move,
    Redistribution,
    ServerFailed,
    ServerRecovered,
    Unmapped,
    failure,
    failure_rules,
    judged,
)

SHAPE = failure([f"s{n}" for n in range(6)], ["p0", "p1", "p2", "p3"], [f"d{n:02}" for n in range(14)], spares=2)
TAKES_S = 0.5
WITHIN_S = 1.0
POLICIES = list(Redistribution)


class Rack:
    """A controller in virtual time and the history of what it did; each failure is over in half a second."""

    def __init__(self, policy: Redistribution) -> None:
        self.policy = policy
        self.controller = FailureController(SHAPE, policy)
        self.history = History()
        self.now_s = 0.0
        for drive, (server, port) in self.controller.placement.at.items():
            self.history.note(Mapped(0.0, drive, server, port))
            self._announce(server, drive)

    def _announce(self, server: str, drive: str) -> None:
        self.history.note(Announced(self.now_s, server, drive, frozenset({f"{drive}-a", f"{drive}-b"})))

    def _make(self, moves: list[Move]) -> None:
        for move in moves:
            if move.source is not None:
                self.history.note(Unmapped(self.now_s, move.drive, move.source[0]))
        self.now_s += TAKES_S
        for move in moves:
            self.history.note(Mapped(self.now_s, move.drive, *move.target))
            self._announce(move.target[0], move.drive)

    def fail_server(self, server: str) -> None:
        self.now_s += 10
        self.history.note(ServerFailed(self.now_s, server))
        self.now_s += 0.1
        self._make(self.controller.server_failed(server))

    def bring_back(self, server: str) -> None:
        self.now_s += 10
        self.history.note(ServerRecovered(self.now_s, server))
        self._make(self.controller.server_back(server))

    def fail_drive(self, drive: str) -> None:
        self.now_s += 10
        self.history.note(DriveFailed(self.now_s, drive))
        self._make([self.controller.drive_failed(drive)])

    def verdicts(self) -> dict[str, Judgement]:
        return verdicts(self.history, self.policy)


def verdicts(history: History, policy: Redistribution) -> dict[str, Judgement]:
    drives_fail = bool(history.of(DriveFailed))
    rules = failure_rules(SHAPE, policy, within_s=WITHIN_S, drives_fail=drives_fail, with_io=False)
    return {judgement.rule: judgement for judgement in judged(rules, history)}


@settings(max_examples=60, deadline=None)
@given(
    policy=st.sampled_from(POLICIES), failing=st.permutations(SHAPE.servers), count=st.integers(1, 3), data=st.data()
)
def test_the_rules_hold_for_any_half_of_the_servers(
    policy: Redistribution, failing: list[str], count: int, data: st.DataObject
) -> None:
    rack = Rack(policy)
    for server in failing[:count]:
        rack.fail_server(server)
        if data.draw(st.booleans()) and rack.controller.spares:
            rack.fail_drive(data.draw(st.sampled_from(sorted(rack.controller.placement.at))))
    for server in data.draw(st.permutations(failing[:count])):
        rack.bring_back(server)
    broken = [judgement for judgement in rack.verdicts().values() if judgement.verdict is not Verdict.PASS]
    assert not broken


def test_spread_adds_at_most_its_share_to_each_survivor_and_one_adds_all_to_one() -> None:
    taken = {}
    for policy in POLICIES:
        moves = FailureController(SHAPE, policy).server_failed("s2")
        assert len(moves) == SHAPE.k // 2
        taken[policy] = Counter(move.target[0] for move in moves)
    assert max(taken[Redistribution.SPREAD].values()) == 1
    assert list(taken[Redistribution.ONE].values()) == [2]
    assert "s2" not in taken[Redistribution.SPREAD] | taken[Redistribution.ONE]


def test_a_server_more_than_half_is_one_too_many() -> None:
    for policy in POLICIES:
        controller = FailureController(SHAPE, policy)
        for server in ("s0", "s1", "s2"):
            controller.server_failed(server)
        assert len(controller.placement.at) == len(SHAPE.drives)
        with pytest.raises(CapacityGone, match="more than half"):
            controller.server_failed("s3")


def test_a_spare_takes_the_place_until_none_is_left() -> None:
    controller = FailureController(SHAPE, Redistribution.ONE)
    place = controller.placement.at["d00"]
    assert controller.drive_failed("d00") == Move("d12", None, place)
    controller.drive_failed("d12")
    with pytest.raises(CapacityGone, match="no spare"):
        controller.drive_failed("d01")
    with pytest.raises(ValueError, match="at no server"):
        controller.drive_failed("d01")


def test_a_failure_told_twice_and_a_server_that_never_failed_move_nothing() -> None:
    controller = FailureController(SHAPE, Redistribution.SPREAD)
    assert controller.server_failed("s0")
    assert controller.server_failed("s0") == []
    assert controller.server_back("s1") == []
    back = controller.server_back("s0")
    assert {move.target[0] for move in back} == {"s0"}
    assert len(back) == SHAPE.k // 2


def test_a_server_is_given_up_when_it_was_silent_for_too_long_and_only_once() -> None:
    beats = Heartbeats(["s0", "s1"], patience_s=3.0, now_s=0.0, misses=0)
    beats.heard("s1", 2.0)
    assert beats.lost(2.9) == []
    assert beats.lost(3.0) == ["s0"]
    assert beats.lost(4.9) == []
    assert beats.lost(5.0) == ["s1"]


def test_silence_alone_does_not_give_a_server_up() -> None:
    beats = Heartbeats(["s0"], patience_s=3.0, now_s=0.0, misses=2)
    beats.missed("s0")
    assert beats.lost(100.0) == []
    beats.heard("s0", 100.0)
    beats.missed("s0")
    assert beats.lost(200.0) == []
    beats.missed("s0")
    assert beats.lost(102.9) == []
    assert beats.lost(103.0) == ["s0"]


def test_beyond_half_of_the_servers_nothing_is_claimed() -> None:
    rack = Rack(Redistribution.SPREAD)
    for server in ("s0", "s1", "s2"):
        rack.fail_server(server)
    rack.history.note(ServerFailed(rack.now_s + 1, "s3"))
    assert rack.verdicts()["no drive is lost"].verdict is Verdict.UNKNOWN


def spoilt(spoil: Callable[[Event], Event | None], policy: Redistribution) -> dict[str, Judgement]:
    """The verdicts on a failed server and a failed drive, after each event was spoilt (None takes it away)."""
    rack = Rack(policy)
    rack.fail_server("s0")
    rack.fail_drive("d05")
    rack.history.note(ServerRecovered(rack.now_s + 20, "s0"))
    assert {judgement.verdict for judgement in rack.verdicts().values()} == {Verdict.PASS}
    events = [changed for event in rack.history.events if (changed := spoil(event)) is not None]
    return verdicts(History(events), policy)


def is_move(event: Event) -> bool:
    return isinstance(event, Mapped) and event.t_s > 0


@pytest.mark.parametrize(
    ("rule", "spoil", "policy"),
    [
        (
            "half the ports of a server are free at first",
            lambda event: replace(event, server="s1", port="p3") if event == Mapped(0.0, "d00", "s0", "p0") else event,
            Redistribution.ONE,
        ),
        (
            "one drive a server port",
            lambda event: replace(event, port="p0") if is_move(event) else event,
            Redistribution.ONE,
        ),
        (
            "a failed server's drives go where they should",
            lambda event: replace(event, server="s4", port="p3") if is_move(event) and event.drive == "d00" else event,
            Redistribution.ONE,
        ),
        (
            "a failed server's drives go where they should",
            lambda event: (
                replace(event, server="s4", port=f"p{event.t_s > 0:d}{event.drive}")
                if is_move(event) and event.drive in {"d00", "d06"}
                else event
            ),
            Redistribution.SPREAD,
        ),
        (
            "a failed server's drives go where they should",
            lambda event: replace(event, t_s=event.t_s + 1.5) if is_move(event) and event.drive == "d00" else event,
            Redistribution.SPREAD,
        ),
        (
            "no drive is lost",
            lambda event: None if is_move(event) and event.drive == "d00" else event,
            Redistribution.ONE,
        ),
        (
            "blocks are announced again",
            lambda event: None if isinstance(event, Announced) and event.t_s > 0 else event,
            Redistribution.SPREAD,
        ),
        (
            "blocks are announced again",
            lambda event: (
                replace(event, blocks=frozenset({"d00-a"})) if isinstance(event, Announced) and event.t_s > 0 else event
            ),
            Redistribution.SPREAD,
        ),
        (
            "blocks are announced again",
            # By a server that is up and has not got it.
            lambda event: replace(event, server="s5") if isinstance(event, Announced) and event.t_s > 0 else event,
            Redistribution.SPREAD,
        ),
        (
            "blocks are announced again",
            # By the right server, before it has it.
            lambda event: (
                replace(event, t_s=event.t_s - TAKES_S / 2) if isinstance(event, Announced) and event.t_s > 0 else event
            ),
            Redistribution.SPREAD,
        ),
        (
            "a spare takes a failed drive's place",
            lambda event: None if is_move(event) and event.drive == "d12" else event,
            Redistribution.ONE,
        ),
        (
            "a spare takes a failed drive's place",
            lambda event: replace(event, port="p3") if is_move(event) and event.drive == "d12" else event,
            Redistribution.ONE,
        ),
    ],
)
def test_each_rule_finds_what_breaks_it(
    rule: str, spoil: Callable[[Event], Event | None], policy: Redistribution
) -> None:
    assert spoilt(spoil, policy)[rule].verdict is Verdict.FAIL
