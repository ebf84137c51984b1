"""Complete disaggregation: what policies choose, what the controller does of it, and the rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rackloop.measurement import Verdict
from rackloop_models.disaggregation import (
    POLICIES,
    AllBusy,
    Assignment,
    Chosen,
    Event,
    History,
    Io,
    Judgement,
    LeastRecentlyUsed,
    LeastWork,
    Located,
    Mapped,
    PerIoController,
    Shape,
    Unmapped,
    complete,
    complete_rules,
    judged,
)

SHAPE = complete(["s0", "s1"], ["p0", "p1"], [f"d{n:02}" for n in range(16)])


class Rack:
    """A controller in virtual time; each I/O writes or reads a record of its own and takes a millisecond."""

    def __init__(self, policy: str) -> None:
        self.controller = PerIoController(SHAPE, POLICIES[policy]())
        self.history = History()
        self.now_s = 0.0
        self.written: list[str] = []

    def do(self, drive: str, *, is_write: bool) -> None:
        self.now_s += 0.001
        assignment = self.controller.assign(drive, self.now_s)
        self.map(assignment)
        server = assignment.place[0]
        self.history.note(Chosen(self.now_s, assignment.io, drive, server))
        self.history.note(Located(self.now_s, drive, server))
        record = drive
        crc = len(drive)
        if is_write:
            self.written.append(record)
        self.history.note(
            Io(
                self.now_s,
                self.now_s + 0.001,
                drive,
                server,
                is_write,
                record,
                crc,
                ok=True,
                asked_s=self.now_s,
                io=assignment.io,
            )
        )
        self.now_s += 0.001
        self.controller.finished(assignment)

    def map(self, assignment: Assignment) -> None:
        move = assignment.move
        if move is None:
            return
        if assignment.evicted is not None:
            self.history.note(Unmapped(self.now_s, assignment.evicted, move.target[0]))
        if move.source is not None:
            self.history.note(Unmapped(self.now_s, assignment.drive, move.source[0]))
        self.history.note(Mapped(self.now_s, assignment.drive, *move.target))


def verdicts(history: History) -> dict[str, Judgement]:
    return {judgement.rule: judgement for judgement in judged(complete_rules(SHAPE), history)}


def busy(policy: str = "least_work") -> History:
    rack = Rack(policy)
    for drive in SHAPE.drives[:8]:
        rack.do(drive, is_write=True)
    for drive in SHAPE.drives[:8]:
        rack.do(drive, is_write=False)
    return rack.history


@settings(max_examples=50, deadline=None)
@given(
    policy=st.sampled_from(sorted(POLICIES)), drives=st.lists(st.sampled_from(SHAPE.drives), min_size=1, max_size=40)
)
def test_the_rules_hold_for_any_ios(policy: str, drives: list[str]) -> None:
    rack = Rack(policy)
    for drive in drives:
        rack.do(drive, is_write=True)
        rack.do(drive, is_write=False)
    broken = [judgement for judgement in verdicts(rack.history).values() if judgement.verdict is not Verdict.PASS]
    assert not broken


def test_the_least_recently_used_drive_gives_way() -> None:
    controller = PerIoController(SHAPE, LeastRecentlyUsed())
    for t_s, drive in enumerate(("d00", "d01", "d02", "d03", "d00"), 1):
        controller.finished(controller.assign(drive, t_s))
    assigned = controller.assign("d04", 6)
    assert assigned.evicted == "d01"
    assert controller.placement.place_of("d01") is None
    assert controller.assign("d00", 7).move is None


def test_the_least_busy_server_takes_each_io_wherever_the_drive_is() -> None:
    controller = PerIoController(SHAPE, LeastWork())
    servers = []
    for t_s in range(4):
        assigned = controller.assign("d00", t_s)
        servers.append(assigned.place[0])
        controller.finished(assigned)
    assert servers == ["s0", "s1", "s1", "s0"]


def test_a_drive_that_works_is_not_moved_and_neither_is_one_evicted_that_does() -> None:
    controller = PerIoController(SHAPE, LeastRecentlyUsed())
    assigned = [controller.assign(drive, 1.0) for drive in SHAPE.drives[:4]]
    with pytest.raises(AllBusy, match="d00 works"):
        controller.assign("d00", 2.0)
    with pytest.raises(AllBusy, match="every server port"):
        controller.assign("d09", 2.0)
    controller.finished(assigned[2])
    assert controller.assign("d09", 3.0).evicted == "d02"


def spoilt(spoil: Callable[[Event], Event | None]) -> dict[str, Judgement]:
    history = busy()
    assert {judgement.verdict for judgement in verdicts(history).values()} == {Verdict.PASS}
    return verdicts(History([changed for event in history.events if (changed := spoil(event)) is not None]))


@pytest.mark.parametrize(
    ("rule", "spoil"),
    [
        ("one drive a server port", lambda event: None if isinstance(event, Unmapped) else event),
        ("the policy chooses for each I/O", lambda event: None if isinstance(event, Chosen) else event),
        (
            "the policy chooses for each I/O",
            lambda event: replace(event, server="s0") if isinstance(event, Chosen) else event,
        ),
        ("the policy chooses for each I/O", lambda event: replace(event, io=None) if isinstance(event, Io) else event),
        (
            "a drive answers only while it is mapped",
            lambda event: replace(event, server="s0") if isinstance(event, Io) else event,
        ),
        (
            "the mapping service is right",
            lambda event: replace(event, server="s1") if isinstance(event, Located) else event,
        ),
        ("no I/O is lost", lambda event: None if isinstance(event, Io) and not event.is_write else event),
    ],
)
def test_each_rule_finds_what_breaks_it(rule: str, spoil: Callable[[Event], Event | None]) -> None:
    assert spoilt(spoil)[rule].verdict is Verdict.FAIL


def test_drives_must_outnumber_ports() -> None:
    few = Shape(SHAPE.servers, SHAPE.ports, SHAPE.drives[:15])
    judgements = {judgement.rule: judgement for judgement in judged(complete_rules(few), busy())}
    assert judgements["drives outnumber server ports"].verdict is Verdict.FAIL
