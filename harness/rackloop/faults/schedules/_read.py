"""Schedules from files: every problem at once, at its line and column."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rackloop.errors import BadInput, DescriptionError
from rackloop.faults import KINDS, FaultSpec
from rackloop.faults.schedules._bounds import bound_problems
from rackloop.faults.schedules._schedule import WORDS, Bound, FaultChoice, RandomSchedule, Schedule, Step
from rackloop.faults.schedules._schedulefile import MOST_DRAWN, WrittenChoice, WrittenSchedule, WrittenStep
from rackloop.lab.yaml import Examined, M, compose, compose_file, examine
from rackloop.lab.yaml import Step as PathStep
from rackloop.names import guess

if TYPE_CHECKING:
    from rackloop.lab import Lab
    from rackloop.lab.yaml import Document, Plain

_RANDOM_ONLY = ("duration", "every", "random")
_SCRIPTED_ONLY = ("steps", "repeats")
_STAND_INS: dict[tuple[str, ...], Plain] = {
    ("steps", "*", "at"): "0 s",
    ("steps", "*", "lasts"): "1 s",
    ("random", "*", "lasts"): "1 s",
}
"""Times that are wrong leave the rest of a step to be looked at."""
_ORDERLY = "the steps stand in the order they begin"


def load_schedule(path: str | Path, lab: Lab | None = None) -> Schedule | RandomSchedule:
    """The schedule in a file. Raises BadInput where there is none, DescriptionError with every problem it has.

    With a ``lab`` its faults are held against that as well, as far as each can be by itself.
    """
    path = Path(path).expanduser()
    if not path.is_file():
        raise BadInput(f"there is no schedule at {path}; check the path")
    return _loaded(compose_file(path), lab)


def read_schedule(text: str, name: str = "schedule") -> Schedule | RandomSchedule:
    """The schedule in ``text``; ``name`` is the file that messages name. Raises DescriptionError as above."""
    return _loaded(compose(text, name))


def _loaded(document: Document, lab: Lab | None = None) -> Schedule | RandomSchedule:
    examined = examine(document, WrittenSchedule, stand_ins=_STAND_INS)
    found = examined_schedule(examined, (), examined.value, lab=lab) if examined.value else None
    examined.finish()
    assert found is not None  # noqa: S101 - finish raises where it is
    return found


def examined_schedule(
    examined: Examined[M],
    path: tuple[PathStep, ...],
    written: WrittenSchedule,
    name: str = "",
    *,
    lab: Lab | None = None,
) -> Schedule | RandomSchedule | None:
    """The schedule that stands at ``path`` of a document under examination; what is wrong with it is reported there.

    None where too little is right. ``name`` is the schedule's where it gives itself none.
    """
    keys = examined.written_keys(*path)
    if written.file is not None:
        if others := keys - {"file"}:
            examined.report(path, f"has a file and {', '.join(sorted(others))}; the file has all of it")
            return None
        return _from_file(examined, path, written.file, lab)
    called = written.schedule if "schedule" in keys or not name else name
    given = [key for key in (*_SCRIPTED_ONLY, *_RANDOM_ONLY) if key in keys]
    if not {"steps", "random"} & set(given):
        examined.report(path, "has neither steps: nor random:; say which faults begin when, or which may be drawn")
        return None
    is_random = "random" in given
    for key in given:
        if key in (_SCRIPTED_ONLY if is_random else _RANDOM_ONLY):
            other = "random" if is_random else "steps"
            examined.report((*path, key), f"does not go with {other}:; delete one of them", key=True)
    return (_random if is_random else _scripted)(examined, path, written, called, lab)


def _from_file(
    examined: Examined[Any], path: tuple[PathStep, ...], file: Path, lab: Lab | None
) -> Schedule | RandomSchedule | None:
    try:
        return load_schedule(file, lab)
    except DescriptionError as error:
        examined.problems += error.problems
    except BadInput as error:
        examined.report(path, str(error))
    return None


def _scripted(
    examined: Examined[Any], path: tuple[PathStep, ...], written: WrittenSchedule, name: str, lab: Lab | None
) -> Schedule:
    steps, places = [], []
    # What is wrong by itself is not held against the bound, or it would be told of others that are right.
    sound: list[int] = []
    for index, step in enumerate(written.steps):
        here = (*path, "steps", index)
        told = len(examined.problems)
        fault = FaultSpec(step.fault, step.target, _parameters(examined, here, step, (step.target,), lab))
        steps.append(Step(step.at, step.lasts, fault))
        places.append(examined.place(here))
        if not examined.is_sound(*here):
            continue
        if sound and step.at < steps[sound[-1]].at_s:
            examined.report((*here, "at"), f"begins before the step above it; {_ORDERLY}: move it up")
        if len(examined.problems) == told:
            sound.append(index)
    bound, pauses = Bound(**written.most.model_dump()), (written.recovery, written.pause)
    schedule = Schedule(name, tuple(steps), bound, *pauses, written.repeats, written.seed, tuple(places))
    for index, problem in bound_problems(replace(schedule, steps=tuple(steps[index] for index in sound))):
        examined.report((*path, "steps", sound[index]), problem)
    return schedule


def _random(
    examined: Examined[Any], path: tuple[PathStep, ...], written: WrittenSchedule, name: str, lab: Lab | None
) -> RandomSchedule | None:
    here = [(*path, "random", index) for index in range(len(written.random))]
    choices = [_choice(examined, at, choice, lab) for at, choice in zip(here, written.random, strict=True)]
    missing = [key for key in ("duration", "every") if getattr(written, key) is None]
    for key in missing:
        if examined.is_sound(*path, key):
            examined.report(path, f"draws faults and does not say {key}:, such as {key}: 30 s")
    if not choices:
        examined.report((*path, "random"), "is empty; name a fault that may be drawn")
    if missing or not choices or written.duration is None or written.every is None:
        return None
    if (about := written.duration / written.every) > MOST_DRAWN:
        about_many = f"about {about:,.0f} faults; at most {MOST_DRAWN:,} are allowed"
        examined.report((*path, "every"), f"would draw {about_many}: make it longer, or duration shorter")
        return None
    return RandomSchedule(
        name,
        tuple(choices),
        written.every,
        written.duration,
        Bound(**written.most.model_dump()),
        written.recovery,
        written.pause,
        written.seed,
        tuple(map(examined.place, here)),
    )


def _choice(
    examined: Examined[Any], here: tuple[PathStep, ...], written: WrittenChoice, lab: Lab | None
) -> FaultChoice:
    least, most = written.lasts[0], written.lasts[-1]
    if least > most:
        examined.report((*here, "lasts"), "the least time is above the most; write [least, most]")
    targets = [target for target in written.targets if target not in WORDS]
    parameters = _parameters(examined, here, written, targets, lab, WORDS)
    return FaultChoice(written.fault, written.targets, (least, most), written.weight, parameters)


def _parameters(
    examined: Examined[Any],
    here: tuple[PathStep, ...],
    written: WrittenStep | WrittenChoice,
    targets: Iterable[str],
    lab: Lab | None,
    words: Iterable[str] = (),
) -> dict[str, Any]:
    """The parameters of a fault, held against its kind, and with a lab the fault held against that.

    ``words`` are what ``targets`` could have been besides what the lab has.
    """
    if written.fault not in KINDS:
        examined.report((*here, "fault"), f"there is no fault called {written.fault!r}; {guess(written.fault, KINDS)}")
        _report_unknown(examined, here, targets, lab, words)
        return {}
    kind = KINDS[written.fault]
    told = len(examined.problems)
    values = {}
    for name, text in written.parameters.items():
        place = (*here, "with", name)
        if name not in kind.parameters:
            examined.report(place, f"{kind.name} has no such parameter; {guess(name, kind.parameters)}", key=True)
            continue
        problems: dict[tuple[int, ...], str] = {}
        values[name] = kind.parameters[name].read(text, problems)
        if problems:
            examined.report(place, problems[()])
    for problem in kind.missing(written.parameters):
        examined.report(here, problem)
    if lab is not None and len(examined.problems) == told:
        found = (p for target in targets for p in kind.problems(lab, FaultSpec(kind.name, target, values), words))
        for problem in dict.fromkeys(found):
            examined.report(here, problem)
    else:
        _report_unknown(examined, here, targets, lab, words)
    return values


def _report_unknown(
    examined: Examined[Any], here: tuple[PathStep, ...], targets: Iterable[str], lab: Lab | None, words: Iterable[str]
) -> None:
    """Report the targets that the lab does not have, of a fault that is wrong otherwise."""
    if lab is None:
        return
    for target in targets:
        try:
            lab.part(target, words)
        except BadInput as error:
            examined.report(here, str(error))
