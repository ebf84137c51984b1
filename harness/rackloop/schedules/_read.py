"""Schedules from files: every problem at once, at its line and column."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rackloop.description._document import Step as PathStep
from rackloop.description._document import compose, compose_file
from rackloop.description._examine import Examined, M, examine
from rackloop.description._schedulefile import WrittenChoice, WrittenSchedule, WrittenStep
from rackloop.errors import BadInput, DescriptionError
from rackloop.faults import KINDS, FaultSpec
from rackloop.names import guess
from rackloop.schedules._bounds import bound_problems
from rackloop.schedules._parameters import missing_parameters, parameters_of
from rackloop.schedules._schedule import Bound, FaultChoice, RandomSchedule, Schedule, Step

if TYPE_CHECKING:
    from rackloop.description._document import Document

_RANDOM_ONLY = ("duration", "every", "random")
_SCRIPTED_ONLY = ("steps", "repeats")
_ORDERLY = "the steps stand in the order they begin"


def load_schedule(path: str | Path) -> Schedule | RandomSchedule:
    """The schedule in a file. Raises BadInput where there is none, DescriptionError with every problem it has."""
    path = Path(path).expanduser()
    if not path.is_file():
        raise BadInput(f"there is no schedule at {path}; check the path")
    return _loaded(compose_file(path), path)


def read_schedule(text: str, name: str = "schedule") -> Schedule | RandomSchedule:
    """The schedule in ``text``; ``name`` is the file that messages name. Raises DescriptionError as above."""
    return _loaded(compose(text, name), Path(name))


def _loaded(document: Document, path: Path) -> Schedule | RandomSchedule:
    examined = examine(document, WrittenSchedule, context={"file": path.absolute()}, stand_ins={})
    found = examined_schedule(examined, (), examined.value) if examined.value else None
    examined.finish()
    assert found is not None  # noqa: S101 - finish raises where it is
    return found


def examined_schedule(
    examined: Examined[M], path: tuple[PathStep, ...], written: WrittenSchedule, name: str = ""
) -> Schedule | RandomSchedule | None:
    """The schedule that stands at ``path`` of a document under examination; what is wrong with it is reported there.

    None where too little is right. ``name`` is the schedule's where it gives itself none.
    """
    keys = examined.written_keys(*path)
    if written.file is not None:
        if others := keys - {"file"}:
            examined.report(path, f"has a file and {', '.join(sorted(others))}; the file has all of it")
            return None
        return _from_file(examined, path, written.file)
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
    return (_random if is_random else _scripted)(examined, path, written, called)


def _from_file(examined: Examined[Any], path: tuple[PathStep, ...], file: Path) -> Schedule | RandomSchedule | None:
    try:
        return load_schedule(file)
    except DescriptionError as error:
        examined.problems += error.problems
    except BadInput as error:
        examined.report(path, str(error))
    return None


def _scripted(examined: Examined[Any], path: tuple[PathStep, ...], written: WrittenSchedule, name: str) -> Schedule:
    steps = []
    places = []
    for index, step in enumerate(written.steps):
        here = (*path, "steps", index)
        fault = FaultSpec(step.fault, step.target, _parameters(examined, here, step))
        steps.append(Step(step.at, step.lasts, fault))
        places.append(examined.place(here))
        if index and step.at < written.steps[index - 1].at:
            examined.report((*here, "at"), f"begins before the step above it; {_ORDERLY}: move it up")
    schedule = Schedule(
        name,
        tuple(sorted(steps, key=lambda step: step.at_s)),
        _bound(written),
        written.recovery,
        written.pause,
        written.repeats,
        written.seed,
        tuple(places),
    )
    if schedule.steps == tuple(steps):
        for index, problem in bound_problems(schedule):
            examined.report((*path, "steps", index), problem)
    return schedule


def _random(
    examined: Examined[Any], path: tuple[PathStep, ...], written: WrittenSchedule, name: str
) -> RandomSchedule | None:
    choices = []
    places = []
    for index, choice in enumerate(written.random):
        here = (*path, "random", index)
        choices.append(_choice(examined, here, choice))
        places.append(examined.place(here))
    missing = [key for key in ("duration", "every") if getattr(written, key) is None]
    for key in missing:
        if examined.is_sound(*path, key):
            examined.report(path, f"draws faults and does not say {key}:, such as {key}: 30 s")
    if not choices:
        examined.report((*path, "random"), "is empty; name a fault that may be drawn")
    if missing or not choices or written.duration is None or written.every is None:
        return None
    return RandomSchedule(
        name,
        tuple(choices),
        written.every,
        written.duration,
        _bound(written),
        written.recovery,
        written.pause,
        written.seed,
        tuple(places),
    )


def _choice(examined: Examined[Any], here: tuple[PathStep, ...], written: WrittenChoice) -> FaultChoice:
    least, most = written.lasts[0], written.lasts[-1]
    if least > most:
        examined.report((*here, "lasts"), "the least time is above the most; write [least, most]")
    parameters = _parameters(examined, here, written)
    return FaultChoice(written.fault, written.targets, (least, most), written.weight, parameters)


def _parameters(
    examined: Examined[Any], here: tuple[PathStep, ...], written: WrittenStep | WrittenChoice
) -> dict[str, Any]:
    """The parameters of a fault, held against its kind."""
    if written.fault not in KINDS:
        examined.report((*here, "fault"), f"there is no fault called {written.fault!r}; {guess(written.fault, KINDS)}")
        return {}
    kind = KINDS[written.fault]
    problems: dict[str, str] = {}
    values = parameters_of(kind, written.parameters, problems)
    for name, problem in problems.items():
        examined.report((*here, "with", name), problem, key=name not in kind.parameters)
    for problem in missing_parameters(kind, written.parameters):
        examined.report(here, problem)
    return values


def _bound(written: WrittenSchedule) -> Bound:
    return Bound(written.most.faults, written.most.drives, written.most.servers)
