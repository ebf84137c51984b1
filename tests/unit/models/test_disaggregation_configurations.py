"""Configuration disaggregation: several shapes of one rack, and the rules for changing from one to another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from rackloop.errors import BadInput
from rackloop.measurement import Verdict
from rackloop_models.disaggregation import (
    Configuration,
    Event,
    History,
    Judgement,
    Mapped,
    PowerCycled,
    Reconfiguring,
    Unmapped,
    Wipe,
    Wiped,
    changes,
    configuration,
    configuration_rules,
    judged,
    with_servers,
)

SHAPE = configuration(["s0", "s1", "s2", "s3"], ["p0", "p1", "p2", "p3"], ["e0", "e1"])
DRIVES_IN = {"e0": ("d0", "d1"), "e1": ("d2", "d3")}
PAIRS = ((1, 150), (2, 151))


def deployed() -> History:
    """One server with all, two servers with half each, and back, power cut each time."""
    history, t_s = History(), 0.0
    now: Configuration | None = None
    for count in (1, 2, 1):
        wanted = with_servers(SHAPE, count)
        history.note(Reconfiguring(t_s, wanted.name, is_on=True))
        if now is None:
            for expander, place in wanted.at.items():
                history.note(Mapped(t_s, expander, *place))
        else:
            for move in changes(SHAPE, now, wanted):
                assert move.source is not None
                for drive in DRIVES_IN[move.drive]:
                    history.note(Wiped(t_s, drive, "sanitize", is_clean=True))
                history.note(Unmapped(t_s + 1, move.drive, move.source[0]))
                history.note(Mapped(t_s + 2, move.drive, *move.target))
        history.note(Reconfiguring(t_s + 3, wanted.name, is_on=False))
        history.note(PowerCycled(t_s + 4, "switch", PAIRS, PAIRS))
        now, t_s = wanted, t_s + 10
    return history


def verdicts(history: History, wipe: Wipe = Wipe.SANITIZE) -> dict[str, Judgement]:
    return {judgement.rule: judgement for judgement in judged(configuration_rules(DRIVES_IN, wipe), history)}


def test_a_deployment_keeps_the_rules() -> None:
    assert {judgement.verdict for judgement in verdicts(deployed()).values()} == {Verdict.PASS}


def test_where_nothing_is_wiped_no_wiping_is_judged() -> None:
    rule = "drives are wiped before another server has them"
    assert rule in verdicts(deployed(), Wipe.OVERWRITE)
    assert rule not in verdicts(deployed(), Wipe.NONE)


def spoilt(spoil: Callable[[Event], Event | None]) -> dict[str, Judgement]:
    return verdicts(History([changed for event in deployed().events if (changed := spoil(event)) is not None]))


@pytest.mark.parametrize(
    ("rule", "spoil"),
    [
        (
            "one expander a server port",
            lambda event: replace(event, server="s0", port="p0") if isinstance(event, Mapped) else event,
        ),
        (
            "expanders move only when the rack is reconfigured",
            lambda event: None if isinstance(event, Reconfiguring) else event,
        ),
        (
            "expanders move only when the rack is reconfigured",
            lambda event: None if isinstance(event, Mapped) and event.t_s == 12 else event,
        ),
        (
            "the map survives power cycling",
            lambda event: replace(event, after=PAIRS[:1]) if isinstance(event, PowerCycled) else event,
        ),
        (
            "drives are wiped before another server has them",
            lambda event: None if isinstance(event, Wiped) and event.drive == "d3" else event,
        ),
        (
            "drives are wiped before another server has them",
            lambda event: replace(event, is_clean=False) if isinstance(event, Wiped) else event,
        ),
        (
            "shapes come from one description and go back to it",
            lambda event: None if isinstance(event, Mapped) and event.t_s == 22 else event,
        ),
        (
            "shapes come from one description and go back to it",
            lambda event: replace(event, server="s0", port="p1") if isinstance(event, Mapped) and event.t_s else event,
        ),
    ],
)
def test_each_rule_finds_what_breaks_it(rule: str, spoil: Callable[[Event], Event | None]) -> None:
    judgement = spoilt(spoil)[rule]
    assert judgement.verdict is not Verdict.PASS
    assert judgement.reason


@pytest.mark.parametrize("after", [Unmapped, Mapped])
def test_drives_that_are_wiped_only_when_another_server_may_have_them_are_found(after: type[Event]) -> None:
    wiped: list[Event] = []
    events: list[Event] = []
    for event in deployed().events:
        if isinstance(event, Wiped):
            wiped.append(event)
            continue
        events.append(event)
        if isinstance(event, after):
            events += wiped
            wiped = []
    rule = "drives are wiped before another server has them"
    judgement = verdicts(History(events))[rule]
    assert judgement.verdict is Verdict.FAIL
    assert judgement.broken[0] == "d2 was not wiped before s1 had it"


def test_a_configuration_has_every_expander_at_a_port_of_its_own() -> None:
    with pytest.raises(BadInput, match="disagree about e1"):
        Configuration("half", {"e0": ("s0", "p0")}).placement(SHAPE)
    with pytest.raises(BadInput, match="cannot come"):
        Configuration("both", {"e0": ("s0", "p0"), "e1": ("s0", "p0")}).placement(SHAPE)
