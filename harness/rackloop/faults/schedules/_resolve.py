"""Schedules resolved on a lab: targets found, parts that faults take, the bound kept."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import TYPE_CHECKING

from rackloop.errors import BadInput
from rackloop.faults import FaultSpec, kind_of_fault
from rackloop.faults.schedules._bounds import Taking, require_within_bound
from rackloop.faults.schedules._random import drawn
from rackloop.faults.schedules._schedule import WORDS, FaultChoice, RandomSchedule, Schedule, place_before

if TYPE_CHECKING:
    from rackloop.lab import Lab, Part, Parts


def taking_of(lab: Lab) -> Taking:
    """Says what a fault takes in ``lab``, by its blast radius at the baseline."""
    known: dict[str, Parts] = {}

    def taking(fault: FaultSpec) -> Parts:
        key = repr(fault)
        if key not in known:
            known[key] = kind_of_fault(fault).blast_radius(lab, fault)
        return known[key]

    return taking


def words_of(lab: Lab) -> dict[str, tuple[str, ...]]:
    """The targets that ``drives``, ``ports`` and ``servers`` stand for: those in use that may be broken."""
    return {
        "drives": tuple(drive for drive in lab.places if lab.drives[drive].scratch),
        "ports": tuple(f"{server}.{port}" for server, ports in lab.baseline.items() for port in ports),
        "servers": tuple(lab.servers),
    }


Unsupported = Callable[[FaultSpec], str | None]
"""The reason why the rack or a lease cannot make a fault that the description allows; None where it can."""


def all_supported(_fault: FaultSpec) -> None:
    """Take every fault of a description for supported."""


def unsupported_out_of_service(
    rack: Lab, out: Collection[Part], unsupported: Unsupported = all_supported
) -> Unsupported:
    """``unsupported``, and that a fault would reach a part of ``rack`` that is out of service."""

    def why(fault: FaultSpec) -> str | None:
        if (said := unsupported(fault)) is not None:
            return said
        radius = kind_of_fault(fault).blast_radius(rack, fault)
        reached = " and ".join(part.said for part in sorted(out) if radius.reaches(part))
        return f"it would reach what is out of service: {reached}" if reached else None

    return why


def on_lab(
    given: Schedule | RandomSchedule, lab: Lab, seed: int, *names: str, unsupported: Unsupported = all_supported
) -> Schedule:
    """The schedule as it is played on ``lab``, drawn with ``seed`` if it is random and has none itself.

    ``names`` are what it is drawn for, such as a test. Faults that are ``unsupported`` are not drawn. Raises BadInput
    with every fault that the lab cannot have, every unsupported one of a script, and every step that exceeds the bound;
    and where nothing can be drawn.
    """
    if isinstance(given, RandomSchedule):
        found = _with_targets(given, lab)
        _require_targets(found)
        _require_possible(lab, found, WORDS)
        found = drawable(given, lab, unsupported)
        taking = taking_of(lab)
        chosen = drawn(found, found.seed if found.seed is not None else seed, *names, taking=taking)
        require_within_bound(chosen, taking)
        return chosen
    _require_possible(lab, given)
    never = [
        f"{given.where(index)}: {why}"
        for index, step in enumerate(given.steps)
        if (why := unsupported(step.fault)) is not None
    ]
    if never:
        raise BadInput("\n".join(never))
    require_within_bound(given, taking_of(lab))
    return given


def left_out(given: Schedule | RandomSchedule, lab: Lab, unsupported: Unsupported) -> list[str]:
    """The faults of a schedule that ``lab`` cannot have and why: they are not drawn, and a script with one not played.

    Those of the kinds that are right.
    """
    found = _with_targets(given, lab) if isinstance(given, RandomSchedule) else given
    faults = {repr(fault): fault for _, fault in found.placed_faults()}
    return [f"{fault}: {why}" for fault in faults.values() if (why := unsupported(fault)) is not None]


def _with_targets(given: RandomSchedule, lab: Lab) -> RandomSchedule:
    """The same with the names that its words stand for."""
    words = words_of(lab)
    return replace(
        given,
        choices=tuple(
            replace(choice, targets=tuple(t for target in choice.targets for t in words.get(target, (target,))))
            for choice in given.choices
        ),
    )


def drawable(given: RandomSchedule, lab: Lab, unsupported: Unsupported) -> RandomSchedule:
    """The schedule with its words replaced by names of ``lab``, and without the faults that are unsupported.

    Raises BadInput where nothing is left.
    """
    found = _with_targets(given, lab)
    choices: list[FaultChoice] = []
    places: list[str] = []
    for index, choice in enumerate(found.choices):
        if targets := tuple(fault.target for fault in choice.faults() if unsupported(fault) is None):
            choices.append(replace(choice, targets=targets))
            places += found.places[index : index + 1]
    if not choices:
        reasons = dict.fromkeys(left_out(given, lab, unsupported))
        raise BadInput("\n".join(f"schedule {found.name} can draw nothing here: {reason}" for reason in reasons))
    return replace(found, choices=tuple(choices), places=tuple(places))


def _require_targets(chances: RandomSchedule) -> None:
    for index, choice in enumerate(chances.choices):
        if not choice.targets:
            place = place_before(chances.places, index)
            raise BadInput(f"{place}schedule {chances.name}: {choice.kind} has no target in this lab")


def _require_possible(lab: Lab, given: Schedule | RandomSchedule, words: tuple[str, ...] = ()) -> None:
    problems = dict.fromkeys(
        f"{place}schedule {given.name}: {fault}: {problem}"
        for place, fault in given.placed_faults()
        for problem in kind_of_fault(fault).problems(lab, fault, words)
    )
    if problems:
        raise BadInput("\n".join(problems))
