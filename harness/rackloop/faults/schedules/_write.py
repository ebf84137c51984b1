"""A schedule as YAML that reads back as the same schedule."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from decimal import Decimal
from typing import Any

from rackloop.faults.schedules._schedule import FaultChoice, RandomSchedule, Schedule, Step

_WIDEST = 1 << 20


def schedule_yaml(schedule: Schedule | RandomSchedule) -> str:
    """The text of a schedule's file: a line for each fault."""
    return "".join(f"{line}\n" for line in schedule_lines(schedule))


def schedule_lines(schedule: Schedule | RandomSchedule) -> Iterator[str]:
    """The lines of :func:`schedule_yaml`, for a file that has more than a schedule."""
    most = schedule.most
    head: dict[str, Any] = {
        "schedule": schedule.name,
        "seed": schedule.seed,
        "most": most.faults if most.faults == most.drives == most.servers else asdict(most),
        "recovery": time_text(schedule.recovery_s) if schedule.recovery_s else None,
        "pause": list(schedule.pause) or None,
    }
    if isinstance(schedule, RandomSchedule):
        head |= {"duration": time_text(schedule.duration_s), "every": time_text(schedule.every_s)}
        key, items = "random", [_choice(choice) for choice in schedule.choices]
    else:
        head["repeats"] = None if schedule.repeats == 1 else schedule.repeats
        key, items = "steps", [_step(step) for step in schedule.steps]
    yield from (f"{name}: {flow(value)}" for name, value in head.items() if value is not None)
    yield f"{key}:" if items else f"{key}: []"
    yield from (f"  - {flow(item)}" for item in items)


def flow(value: Any) -> str:
    """``value`` as YAML on one line, for a reader to whom every scalar is a text: ``on`` and ``0`` need no quotes."""
    import yaml

    class Plain(yaml.SafeDumper):
        yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - as its base has it

    text: str = yaml.dump(
        _texts(value), Dumper=Plain, default_flow_style=True, sort_keys=False, width=_WIDEST, allow_unicode=True
    )
    return text.removesuffix("\n").removesuffix("\n...")


def time_text(seconds: float) -> str:
    """A time as a file has it, in full: ``50 ms``, ``1.5 s``; it reads back as the same number."""
    exact = Decimal(repr(seconds))
    return f"{(exact * 1000).normalize():f} ms" if 0 < exact < 1 else f"{exact.normalize():f} s"


def _texts(value: Any) -> Any:
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case list():
            return [_texts(item) for item in value]
        case dict():
            return {key: _texts(item) for key, item in value.items()}
    return value


def _step(step: Step) -> dict[str, Any]:
    fault = step.fault
    return {
        "at": time_text(step.at_s),
        "lasts": time_text(step.lasts_s),
        "fault": fault.kind,
        "target": fault.target,
        **({"with": dict(fault.parameters)} if fault.parameters else {}),
    }


def _choice(choice: FaultChoice) -> dict[str, Any]:
    return {
        "fault": choice.kind,
        "targets": list(choice.targets),
        "lasts": [time_text(each) for each in choice.lasts_s],
        **({"weight": choice.weight} if choice.weight != 1 else {}),
        **({"with": dict(choice.parameters)} if choice.parameters else {}),
    }
