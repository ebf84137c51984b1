"""The elastic controller under any load: its own rules hold, and each rule can find what would break it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rackloop.measurement import Verdict
from rackloop_models.disaggregation import (
    Active,
    Damping,
    DriveFailed,
    ElasticController,
    Erred,
    Event,
    History,
    Io,
    Judgement,
    Load,
    Located,
    Mapped,
    ServerFailed,
    ServerRecovered,
    Shape,
    Unmapped,
    another_day,
    balanced,
    dealt,
    diurnal,
    elastic,
    elastic_rules,
    judged,
    savings,
    servers_needed,
    simulate,
)

SHAPE = elastic([f"s{number}" for number in range(6)], ["p0", "p1", "p2", "p3"], [f"d{number}" for number in range(8)])
DAMPING = Damping(headroom=1.2, hold_s=1200)
STEP_S = 300.0
MOVE_S = 2.0


def day() -> History:
    return simulate(SHAPE, diurnal(days=1, step_s=STEP_S, seed=1), DAMPING, move_s=MOVE_S)


def verdicts(history: History) -> dict[str, Judgement]:
    rules = elastic_rules(SHAPE, DAMPING, within_s=MOVE_S, with_io=False)
    return {judgement.rule: judgement for judgement in judged(rules, history)}


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=2, max_size=60))
def test_the_rules_hold_under_any_load(shares: list[float]) -> None:
    loads = [Load(step * STEP_S, share) for step, share in enumerate(shares)]
    history = simulate(SHAPE, loads, DAMPING, move_s=MOVE_S)
    broken = [judgement for judgement in verdicts(history).values() if judgement.verdict is not Verdict.PASS]
    assert not broken


@pytest.mark.parametrize("move_s", [0.001, 0.1, 0.3, 2.0, STEP_S - 1])
@pytest.mark.parametrize("hold_s", [0.0, STEP_S, 1200.0])
def test_the_rules_hold_however_long_moves_take_and_servers_are_kept(move_s: float, hold_s: float) -> None:
    """As moments are no whole numbers of seconds, and a rack may begin with servers that it lets go at once."""
    damping = Damping(hold_s=hold_s)
    history = simulate(SHAPE, diurnal(days=1, step_s=STEP_S, seed=2), damping, move_s=move_s)
    for judgement in judged(elastic_rules(SHAPE, damping, within_s=move_s, with_io=False), history):
        assert judgement.verdict is Verdict.PASS, judgement


def test_a_day_and_a_night_save_server_hours_with_few_moves() -> None:
    came_to = savings(SHAPE, day())
    assert 0.2 < came_to.share_saved < 0.6
    assert came_to.server_hours_saved == pytest.approx(came_to.share_saved * 6 * (24 - STEP_S / 3600))
    assert 0 < came_to.migrations_per_hour < 2


def test_without_damping_a_load_that_swings_moves_drives_all_the_time() -> None:
    swinging = [Load(step * STEP_S, 0.9 if step % 2 else 0.1) for step in range(60)]
    damped = savings(SHAPE, simulate(SHAPE, swinging, DAMPING, move_s=MOVE_S))
    wild = savings(SHAPE, simulate(SHAPE, swinging, Damping(hold_s=0), move_s=MOVE_S))
    assert damped.migrations_per_hour == 0
    assert wild.migrations_per_hour > 10


def test_servers_are_needed_in_proportion_and_never_fewer_than_hold_all_drives() -> None:
    assert [servers_needed(SHAPE, share, 1.0) for share in (0.0, 0.3, 0.5, 0.51, 1.0)] == [2, 2, 3, 4, 6]
    assert servers_needed(SHAPE, 0.95, 1.2) == 6


@given(
    active=st.sets(st.sampled_from(SHAPE.servers), min_size=2), then=st.sets(st.sampled_from(SHAPE.servers), min_size=2)
)
def test_balancing_moves_no_drive_that_could_stay(active: set[str], then: set[str]) -> None:
    placement = dealt(SHAPE, sorted(active))
    before = {server: len(placement.drives_of(server)) for server in then}
    moves = balanced(placement, sorted(then))
    placement.make(moves)
    counts = sorted(len(placement.drives_of(server)) for server in then)
    assert sum(counts) == len(SHAPE.drives)
    assert counts[-1] - counts[0] <= 1
    surplus = sorted(before.values(), reverse=True)
    kept = sum(min(have, most) for have, most in zip(surplus, sorted(counts, reverse=True), strict=True))
    assert len(moves) == len(SHAPE.drives) - kept


def test_growth_is_at_once_and_shrinking_waits() -> None:
    controller = ElasticController(SHAPE, DAMPING)
    for t_s in (0.0, 600.0, 1199.0):
        assert controller.observe(Load(t_s, 0.1)) == []
    assert controller.observe(Load(1200.0, 0.1))
    assert len(controller.active) == 2
    assert controller.observe(Load(1260.0, 1.0))
    assert len(controller.active) == 6


def without(history: History, kind: type[Event], number: int) -> History:
    """The history less the ``number``-th event of a kind, counted from the end where negative."""
    gone = history.of(kind)[number]
    return History([event for event in history.events if event is not gone])


def changed(history: History, change: Callable[[Event], Event]) -> History:
    return History([change(event) for event in history.events])


def late(history: History) -> History:
    last = history.of(Mapped)[-1]
    return changed(history, lambda event: replace(last, t_s=last.t_s + 100) if event is last else event)


def all_at_one(history: History) -> History:
    few = history.of(Active)[-1]
    return changed(history, lambda event: replace(few, servers=frozenset({"s0"})) if event is few else event)


def left_behind(history: History) -> History:
    """The last drive that moved stays where it was, at a server that is idle from then on."""
    gone, came = history.of(Unmapped)[-1], history.of(Mapped)[-1]
    assert gone.drive == came.drive
    assert gone.server not in history.of(Active)[-1].servers
    return History([event for event in history.events if event is not gone and event is not came])


def never_moving(history: History) -> History:
    """What the controller says is right, and every drive stays where it was dealt."""
    first = history.of(Mapped)[: len(SHAPE.drives)]
    return History([event for event in history.events if event in first or not isinstance(event, Mapped | Unmapped)])


def at_two_servers(history: History) -> History:
    """The controller says the same, and all drives are at two servers from the beginning."""
    at = [Mapped(0.0, drive, server, port) for drive, (server, port) in dealt(SHAPE, ["s0", "s1"]).at.items()]
    return History([*at, *(event for event in history.events if not isinstance(event, Mapped | Unmapped))])


def flapping(history: History) -> History:
    shrunk = next(
        active
        for before, active in zip(history.of(Active), history.of(Active)[1:], strict=False)
        if len(active.servers) < len(before.servers)
    )
    again = replace(shrunk, t_s=shrunk.t_s + 60, servers=frozenset(sorted(shrunk.servers)[1:]))
    place = history.events.index(shrunk) + 1
    return History([*history.events[:place], again, *history.events[place:]])


def shared_port(history: History) -> History:
    first, second = history.of(Mapped)[:2]
    return changed(
        history, lambda event: replace(second, server=first.server, port=first.port) if event is second else event
    )


@pytest.mark.parametrize(
    ("rule", "spoil"),
    [
        ("every drive is mapped or moving", late),
        ("every drive is mapped or moving", lambda history: without(history, Mapped, -1)),
        ("every drive is mapped or moving", lambda history: without(history, Mapped, 0)),
        ("one drive a server port", shared_port),
        ("a third of the servers can hold all drives", all_at_one),
        ("a third of the servers can hold all drives", left_behind),
        ("servers follow the load", never_moving),
        ("servers follow the load", at_two_servers),
        ("changes are damped", flapping),
    ],
)
def test_each_rule_finds_what_breaks_it(rule: str, spoil: Callable[[History], History]) -> None:
    assert verdicts(day())[rule].verdict is Verdict.PASS
    assert verdicts(spoil(day()))[rule].verdict is Verdict.FAIL


@pytest.mark.parametrize("wrong_by", [-1, 1])
def test_a_controller_that_works_out_another_need_is_found(monkeypatch: pytest.MonkeyPatch, wrong_by: int) -> None:
    def wrong(shape: Shape, share: float, headroom: float) -> int:
        return min(shape.n, max(2, servers_needed(shape, share, headroom) + wrong_by))

    monkeypatch.setattr("rackloop_models.disaggregation._elastic.servers_needed", wrong)
    assert verdicts(day())["servers follow the load"].verdict is Verdict.FAIL


def test_drives_that_come_too_late_for_the_load_are_found() -> None:
    history = day()
    grown = next(
        after for before, after in itertools.pairwise(history.of(Active)) if len(after.servers) > len(before.servers)
    )

    def later(event: Event) -> Event:
        slow = isinstance(event, Mapped) and event.t_s == grown.t_s + MOVE_S
        return replace(event, t_s=event.t_s + 1) if slow and isinstance(event, Mapped) else event

    assert verdicts(changed(history, later))["servers follow the load"].verdict is Verdict.FAIL


IO = Io(10.0, 10.1, "d0", "s0", is_write=True, record="r1", crc=7, ok=True, asked_s=10.0)
READ = replace(IO, began_s=11.0, ended_s=11.1, is_write=False, asked_s=11.0)
ERROR = Erred(11.4, 11.6, "s0", "EIO")
MAPPED = Mapped(0.0, "d0", "s0", "p0")


def io_verdict(rule: str, *events: Event) -> Verdict:
    rules = elastic_rules(SHAPE, DAMPING, within_s=MOVE_S, with_io=True)
    return {judgement.rule: judgement.verdict for judgement in judged(rules, History([*events]))}[rule]


def test_an_answer_counts_only_from_the_server_that_had_the_drive() -> None:
    rule = "a drive answers only while it is mapped"
    left = Unmapped(9.0, "d0", "s0")
    assert io_verdict(rule, MAPPED, IO) is Verdict.PASS
    assert io_verdict(rule, MAPPED, replace(IO, server="s1")) is Verdict.FAIL
    assert io_verdict(rule, MAPPED, left, IO) is Verdict.FAIL
    assert io_verdict(rule, MAPPED, left, replace(IO, ok=False)) is Verdict.UNKNOWN


def test_what_was_tried_while_the_drive_was_there_does_not_excuse_an_answer_after_it_left() -> None:
    rule = "a drive answers only while it is mapped"
    left = Unmapped(9.0, "d0", "s0")
    tried_before = replace(IO, began_s=8.0)
    assert io_verdict(rule, MAPPED, left, tried_before) is Verdict.FAIL
    assert io_verdict(rule, MAPPED, left, replace(tried_before, asked_s=8.9)) is Verdict.PASS


def test_the_mapping_service_must_name_the_server_that_has_the_drive() -> None:
    rule = "the mapping service is right"
    assert io_verdict(rule, MAPPED, Located(5.0, "d0", "s0")) is Verdict.PASS
    assert io_verdict(rule, MAPPED, Located(5.0, "d0", "s1")) is Verdict.FAIL
    assert io_verdict(rule, MAPPED, Unmapped(4.0, "d0", "s0"), Located(5.0, "d0", "s0")) is Verdict.FAIL
    assert io_verdict(rule, MAPPED, Unmapped(4.0, "d0", "s0"), Located(5.0, "d0", None)) is Verdict.UNKNOWN


def test_lost_wrong_failed_and_unread_io_is_found() -> None:
    rule = "no I/O is lost"
    assert io_verdict(rule, IO, READ) is Verdict.PASS
    assert io_verdict(rule, IO, replace(READ, crc=8)) is Verdict.FAIL
    assert io_verdict(rule, IO) is Verdict.FAIL
    assert io_verdict(rule, IO, READ, replace(READ, ok=False)) is Verdict.FAIL
    assert io_verdict(rule, IO, READ, replace(IO, record="r2", ok=False)) is Verdict.FAIL
    assert io_verdict(rule) is Verdict.UNKNOWN


def test_io_that_its_client_gave_up_is_for_the_longest_io_to_judge() -> None:
    rule = "no I/O is lost"
    given_up = replace(READ, ok=False, gave_up=True, ended_s=READ.began_s + 20)
    assert io_verdict(rule, IO, READ, given_up) is Verdict.UNKNOWN
    assert io_verdict(rule, IO, given_up) is Verdict.UNKNOWN, "whether it can be read is not known"
    assert io_verdict(rule, IO, replace(READ, crc=8), given_up) is Verdict.FAIL
    rules = elastic_rules(SHAPE, DAMPING, within_s=MOVE_S, with_io=True)
    (judgement,) = (each for each in judged(rules, History([IO, READ, given_up])) if each.rule == rule)
    assert not judgement.broken
    assert "was given up after 20 s; see the longest I/O" in judgement.reason


def test_an_io_that_was_answered_with_an_error_is_lost_though_it_was_done_afterwards() -> None:
    rule = "no I/O is lost"
    erred = replace(READ, ended_s=11.9, asked_s=11.8, errors=(Erred(11.0, 11.1, "s0", "EIO"), ERROR))
    assert io_verdict(rule, MAPPED, IO, erred) is Verdict.FAIL
    assert io_verdict(rule, MAPPED, IO, READ, replace(erred, ok=False, gave_up=True)) is Verdict.FAIL
    rules = elastic_rules(SHAPE, DAMPING, within_s=MOVE_S, with_io=True)
    (judgement,) = (each for each in judged(rules, History([MAPPED, IO, erred])) if each.rule == rule)
    assert judgement.broken == (
        "read of r1 at 11 s met 2 errors that nothing explains, first from s0, which had d0, at 11.1 s: EIO",
    )


@pytest.mark.parametrize(
    ("others", "verdict"),
    [
        ((ServerFailed(11.5, "s0"),), Verdict.PASS),
        ((ServerFailed(12.0, "s0", began_s=11.5),), Verdict.PASS),
        ((ServerFailed(12.0, "s0"),), Verdict.FAIL),
        ((ServerFailed(11.5, "s1"),), Verdict.FAIL),
        ((ServerFailed(9.0, "s0"), ServerRecovered(11.5, "s0")), Verdict.PASS),
        ((ServerFailed(9.0, "s0"), ServerRecovered(11.3, "s0")), Verdict.FAIL),
        ((DriveFailed(11.5, "d0"),), Verdict.PASS),
        ((DriveFailed(12.0, "d0", began_s=11.5),), Verdict.PASS),
        ((DriveFailed(11.5, "d1"),), Verdict.FAIL),
        ((Unmapped(11.5, "d0", "s0"), Mapped(11.7, "d0", "s1", "p0")), Verdict.PASS),
        ((Unmapped(11.7, "d0", "s0"), Mapped(11.8, "d0", "s1", "p0")), Verdict.FAIL),
        ((Unmapped(11.5, "d1", "s0"), Mapped(11.7, "d1", "s1", "p0")), Verdict.FAIL),
    ],
)
def test_an_error_is_explained_by_a_failure_or_a_move_of_its_own_drive(
    others: tuple[Event, ...], verdict: Verdict
) -> None:
    erred = replace(READ, ended_s=11.9, asked_s=11.8, errors=(ERROR,))
    assert io_verdict("no I/O is lost", MAPPED, IO, *others, erred) is verdict


def test_a_rule_that_crashes_is_unknown() -> None:
    def crashing(_history: History) -> None:
        raise ZeroDivisionError("oh")

    (judgement,) = judged([("crashing", crashing)], day())  # type: ignore[list-item]
    assert judgement.verdict is Verdict.UNKNOWN
    assert "ZeroDivisionError" in judgement.reason


def test_another_day_is_like_it_and_differs_under_its_seed() -> None:
    day = diurnal(days=1, step_s=3600, seed=1)
    others = [another_day(day, seed=seed) for seed in range(3)]
    assert others[0] == another_day(day, seed=0)
    assert others[0] != others[1]
    assert others[0] != day
    for other in others:
        assert [load.t_s for load in other] == [load.t_s for load in day]
        assert all(0 <= load.share <= 1 for load in other)
        assert all(abs(new.share - old.share) < 0.2 for new, old in zip(other, day, strict=True))
