"""Rules of complete and of dynamic elastic disaggregation."""

from __future__ import annotations

import itertools
import math
from functools import partial

from rackloop_models.disaggregation._elastic import Damping
from rackloop_models.disaggregation._history import Active, Chosen, History, Io, Mapped, Need
from rackloop_models.disaggregation._judging import Findings, Rule
from rackloop_models.disaggregation._rules_common import (
    always_mapped_or_moving,
    answers_only_while_mapped,
    no_io_is_lost,
    one_drive_a_place,
    the_mapping_service_is_right,
)
from rackloop_models.disaggregation._shape import DRIVES_PER_PORT, Shape

_IO_RULES: tuple[tuple[str, Rule], ...] = (
    ("a drive answers only while it is mapped", answers_only_while_mapped),
    ("the mapping service is right", the_mapping_service_is_right),
    ("no I/O is lost", no_io_is_lost),
)


def complete_rules(shape: Shape) -> list[tuple[str, Rule]]:
    """The rules of complete disaggregation."""
    return [
        ("drives outnumber server ports", partial(_outnumbering, shape)),
        ("one drive a server port", one_drive_a_place),
        ("the policy chooses for each I/O", the_policy_chooses_for_each_io),
        *_IO_RULES,
    ]


def elastic_rules(shape: Shape, damping: Damping, *, within_s: float, with_io: bool) -> list[tuple[str, Rule]]:
    """The rules of dynamic elastic disaggregation. A move takes ``within_s`` at most; ``with_io``: I/O was made."""
    return [
        ("every drive is mapped or moving", partial(always_mapped_or_moving, shape.drives, within_s)),
        ("one drive a server port", one_drive_a_place),
        ("a third of the servers can hold all drives", partial(a_third_holds_all, shape, within_s)),
        ("servers follow the load", partial(servers_follow_the_load, shape, damping, within_s)),
        ("changes are damped", partial(changes_are_damped, damping.hold_s)),
        *(_IO_RULES if with_io else ()),
    ]


def _outnumbering(shape: Shape, _history: History) -> Findings:
    least = DRIVES_PER_PORT * shape.n * shape.k
    broken = [f"{len(shape.drives)} drives share {shape.n * shape.k} server ports"] * (len(shape.drives) < least)
    return Findings(1, broken)


def the_policy_chooses_for_each_io(history: History) -> Findings:
    """Each I/O was done by the server that was chosen for it, on the drive it was chosen for, after the choice."""
    chosen = {choice.io: choice for choice in history.of(Chosen)}
    ios = history.of(Io)
    broken = []
    for io in ios:
        choice = chosen.get(-1 if io.io is None else io.io)
        if choice is None:
            broken.append(f"no server was chosen for the I/O on {io.record}")
        elif (choice.drive, choice.server) != (io.drive, io.server) or choice.t_s > io.ended_s:
            broken.append(f"the I/O on {io.record} was for {choice.server}, and {io.server} did it")
    return Findings(len(ios), broken)


def a_third_holds_all(shape: Shape, within_s: float, history: History) -> Findings:
    """A third of the servers has ports enough, and never do fewer servers have drives than have ports for them.

    No drive comes to an idle server, nor stays there for longer than a move takes: ``within_s``.
    """
    third = math.ceil(shape.n / 3)
    broken = []
    if third * shape.k < len(shape.drives):
        broken.append(f"{third} servers of {shape.k} ports cannot hold {len(shape.drives)} drives")
    actives = history.of(Active)
    broken += [
        f"at {active.t_s:g} s {len(active.servers)} servers were to hold {len(shape.drives)} drives"
        for active in actives
        if len(active.servers) * shape.k < len(shape.drives)
    ]
    # A drive at a server that is idle would be on hours that were counted as saved. What came at the moment of a change
    # and was noted before it, came before it.
    noted = [event for event in history.events if isinstance(event, Active | Mapped)]
    now: Active | None = None
    for event in sorted(noted, key=lambda event: event.t_s):
        if isinstance(event, Active):
            now = event
        elif now is not None and event.server not in now.servers:
            broken.append(f"{event.drive} came to {event.server} at {event.t_s:g} s, which is idle")
    stays = history.stays()
    for active, later in itertools.zip_longest(actives, actives[1:]):
        by_s = active.t_s + within_s
        if by_s < (history.ends_s if later is None else later.t_s):
            broken += [
                f"{stay.drive} stayed at {stay.server}, which is idle from {active.t_s:g} s on"
                for stay in stays
                if stay.server not in active.servers and stay.since_s <= active.t_s and stay.until_s > by_s
            ]
    return Findings(len(actives), broken)


def servers_follow_the_load(shape: Shape, damping: Damping, within_s: float, history: History) -> Findings:
    """The servers that have drives carry the load, and not more of them than that takes for longer than ``hold_s``.

    What a load takes is worked out here, and a server serves while drives are mapped to it: nothing is taken from the
    controller's word. It has ``within_s`` for its moves, and no longer than to the next moment of load.
    """
    needs, stays = history.of(Need), history.stays()
    changed_s = [mapped.t_s for mapped in history.of(Mapped)]
    step_s = max((later.t_s - need.t_s for need, later in itertools.pairwise(needs)), default=0.0)
    enough = {need.t_s: _enough(shape, need.load * damping.headroom) for need in needs}
    broken = []
    for need, later in itertools.zip_longest(needs, needs[1:]):
        by_s = min(need.t_s + within_s, math.inf if later is None else later.t_s)
        count = len({stay.server for stay in stays if stay.since_s <= by_s <= stay.until_s})
        if count < enough[need.t_s]:
            broken.append(f"the load at {need.t_s:g} s takes {enough[need.t_s]} servers, at {by_s:g} s {count} served")
        since_s = need.t_s - damping.hold_s - step_s
        most = max(enough[other.t_s] for other in needs if since_s <= other.t_s <= need.t_s)
        is_steady = needs[0].t_s <= since_s and not any(since_s < t_s < need.t_s for t_s in changed_s)
        if is_steady and count > most:
            broken.append(f"at {by_s:g} s {count} servers served, and {most} had done for {damping.hold_s:g} s")
    return Findings(len(needs), broken)


def _enough(shape: Shape, wanted: float) -> int:
    """The fewest servers whose ports hold all drives and that can do this share of what all can; one drive each."""
    enough = (
        count
        for count in range(1, shape.n)
        if count * shape.k >= len(shape.drives) and count >= wanted * shape.n - 1e-9
    )
    return min(next(enough, shape.n), len(shape.drives))


def changes_are_damped(hold_s: float, history: History) -> Findings:
    """No server is let go sooner than ``hold_s`` after the last change; a change is one in number."""
    actives = history.of(Active)
    broken = []
    for before, after in itertools.pairwise(actives):
        fewer = len(after.servers) < len(before.servers)
        if fewer and after.t_s - before.t_s < hold_s:
            broken.append(f"servers were let go at {after.t_s:g} s, {after.t_s - before.t_s:g} s after the last change")
        if len(after.servers) == len(before.servers):
            broken.append(f"at {after.t_s:g} s servers were exchanged for no gain")
    return Findings(len(actives), broken)
