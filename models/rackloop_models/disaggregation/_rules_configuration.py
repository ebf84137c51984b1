"""Rules of configuration disaggregation."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from rackloop_models.disaggregation._configuration import Wipe
from rackloop_models.disaggregation._history import History, Mapped, PowerCycled, Reconfiguring, Unmapped, Wiped
from rackloop_models.disaggregation._judging import Findings, Rule
from rackloop_models.disaggregation._rules_common import one_drive_a_place


def configuration_rules(
    drives_in: Mapping[str, tuple[str, ...]], wipe: Wipe, *, power_cut: bool = True
) -> list[tuple[str, Rule]]:
    """The rules of configuration disaggregation; ``drives_in`` are the drives of each expander.

    The rule of power cycles is left out where no power was cut, those of wipes where nothing was to be wiped.
    """
    rules: list[tuple[str, Rule]] = [
        ("one expander a server port", one_drive_a_place),
        ("expanders move only when the rack is reconfigured", moved_only_when_reconfigured),
        ("shapes come from one description and go back to it", shapes_go_back),
    ]
    if power_cut:
        rules.append(("the map survives power cycling", the_map_survives_power))
    if wipe is not Wipe.NONE:
        rules.append(("drives are wiped before another server has them", partial(erased_before_move, drives_in)))
    return rules


def moved_only_when_reconfigured(history: History) -> Findings:
    """Outside of a reconfiguration no expander comes or goes, and at its end each is at a server."""
    is_on, seen, broken = False, 0, []
    known: set[str] = set()
    away: set[str] = set()
    for event in history.events:
        match event:
            case Reconfiguring():
                is_on = event.is_on
                seen += 1
                if not is_on and away:
                    broken.append(f"{', '.join(sorted(away))} was at no server when {event.name} was done")
            case Mapped() | Unmapped():
                if not is_on and event.drive in known:
                    broken.append(f"{event.drive} moved at {event.t_s:g} s, outside a reconfiguration")
                known.add(event.drive)
                (away.discard if isinstance(event, Mapped) else away.add)(event.drive)
    return Findings(seen, broken)


def the_map_survives_power(history: History) -> Findings:
    """The live map is the same before power was cut and after it came back."""
    cycles = history.of(PowerCycled)
    broken = [
        f"after {cycle.what} had no power {len(set(cycle.before) ^ set(cycle.after))} pairs of the map differ"
        for cycle in cycles
        if cycle.before != cycle.after
    ]
    return Findings(len(cycles), broken)


def erased_before_move(drives_in: Mapping[str, tuple[str, ...]], history: History) -> Findings:
    """Each drive of an expander that went to another server was erased before, and read back so.

    Before is in the same reconfiguration and while the server that had it still did: once an expander is taken from its
    server it may be anybody's.
    """
    at: dict[str, str] = {}
    clean: set[str] = set()
    wiped_when_it_left: dict[str, frozenset[str]] = {}
    broken, seen = [], 0
    for event in history.events:
        match event:
            case Reconfiguring(is_on=True):
                clean = set()
                wiped_when_it_left.clear()
            case Wiped():
                (clean.add if event.is_clean else clean.discard)(event.drive)
            case Unmapped():
                wiped_when_it_left[event.drive] = frozenset(clean)
            case Mapped():
                if at.get(event.drive, event.server) != event.server:
                    inside = drives_in[event.drive]
                    unwiped = sorted(set(inside) - wiped_when_it_left.get(event.drive, clean))
                    seen += len(inside)
                    broken += [f"{drive} was not wiped before {event.server} had it" for drive in unwiped]
                at[event.drive] = event.server
    return Findings(seen, broken)


def shapes_go_back(history: History) -> Findings:
    """There were several configurations, and at the end the rack is as it was at the first."""
    done = [event.name for event in history.of(Reconfiguring) if not event.is_on]
    if not done:
        return Findings(0, ())
    places: dict[str, tuple[str, str]] = {}
    at_end_of: list[dict[str, tuple[str, str]]] = []
    for event in history.events:
        match event:
            case Mapped():
                places[event.drive] = (event.server, event.port)
            case Reconfiguring(is_on=False):
                at_end_of.append(dict(places))
    broken = []
    if len({frozenset(end.items()) for end in at_end_of}) < 2:
        broken.append("all configurations were the same")
    if done[-1] != done[0] or at_end_of[-1] != at_end_of[0]:
        broken.append(f"the rack was {done[0]} at first and is {done[-1]} now, with expanders elsewhere")
    return Findings(len(done), broken)
