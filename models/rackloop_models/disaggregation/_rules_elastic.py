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
        ("a third of the servers can hold all drives", partial(a_third_holds_all, shape)),
        ("servers follow the load", partial(servers_follow_the_load, damping.hold_s)),
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
            broken.append(f"nobody chose a server for the I/O on {io.record}")
        elif (choice.drive, choice.server) != (io.drive, io.server) or choice.t_s > io.ended_s:
            broken.append(f"the I/O on {io.record} was for {choice.server}, and {io.server} did it")
    return Findings(len(ios), broken)


def a_third_holds_all(shape: Shape, history: History) -> Findings:
    """A third of the servers has ports enough, and never do fewer servers have drives than have ports for them."""
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
    # A drive at a server that is idle would be on hours that were counted as saved.
    changes = [*actives[1:], None]
    for active, after in zip(actives, changes, strict=True):
        until_s = math.inf if after is None else after.t_s
        arrived = [mapped for mapped in history.of(Mapped) if active.t_s <= mapped.t_s < until_s]
        broken += [
            f"{mapped.drive} came to {mapped.server} at {mapped.t_s:g} s, which is idle"
            for mapped in arrived
            if mapped.server not in active.servers
        ]
    return Findings(len(actives), broken)


def servers_follow_the_load(hold_s: float, history: History) -> Findings:
    """There are never fewer servers than the load needs, and not more for longer than ``hold_s``."""
    needs, actives = history.of(Need), history.of(Active)
    step_s = max((later.t_s - need.t_s for need, later in itertools.pairwise(needs)), default=0.0)
    broken = []
    for need in needs:
        count = len(next(active for active in reversed(actives) if active.t_s <= need.t_s).servers)
        if count < need.servers:
            broken.append(f"at {need.t_s:g} s the load needed {need.servers} servers, {count} had drives")
        since_s = need.t_s - hold_s - step_s
        window = [other.servers for other in needs if since_s <= other.t_s <= need.t_s]
        is_steady = needs[0].t_s <= since_s and not any(since_s < active.t_s < need.t_s for active in actives)
        if is_steady and count > max(window):
            broken.append(f"at {need.t_s:g} s {count} servers had drives, and for {hold_s:g} s fewer would have done")
    return Findings(len(needs), broken)


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
