"""A schedule of faults as it is written, in a file of its own or in an entry of a plan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationInfo

from rackloop.lab.yaml import Description, File, Moment, Name, Scalar, Seconds, matching, text_of, whole, wrong
from rackloop.names import kind_of
from rackloop.units import NUMBER

_MOST = 10_000
MOST_DRAWN = 10_000
"""The number of faults that a random schedule may draw on average."""


def _weight(value: object, _info: ValidationInfo) -> float:
    text = text_of(value, "a number above zero")
    if not NUMBER.fullmatch(text) or not 0 < float(text) <= 1e6:
        raise wrong(f"expected a number above zero, at most a million, found {kind_of(text)}")
    return float(text)


def _from_number(value: object) -> object:
    """One number is the bound of everything."""
    return {"faults": value, "drives": value, "servers": value} if isinstance(value, str) else value


def _from_one(value: object) -> object:
    """A text is a list of one."""
    return [value] if isinstance(value, str) else value


def _from_file_name(value: object) -> object:
    """A text is the name of the file that has the schedule."""
    return {"file": value} if isinstance(value, str) else value


def _or_one(schema: dict[str, Any]) -> None:
    schema["anyOf"] = [schema.pop("items", {"type": "string"}), {"type": "array"}]


def or_a_text(schema: dict[str, Any]) -> None:
    """Let editors know that a text will do."""
    schema.setdefault("anyOf", []).append({"type": "string"})


FaultName = Annotated[str, matching(r"[a-z][a-z0-9_]{0,31}", "the name of a fault such as phy_drop")]
Target = Annotated[
    str,
    matching(r"[A-Za-z][A-Za-z0-9_./: -]{0,63}", "what is broken, as the lab names it, such as d01, srv1 or srv1.p0"),
]
Count = Annotated[int, whole(0, 1_000_000)]


class WrittenBound(Description):
    """The most that may be broken at once."""

    faults: Annotated[int, whole(1, 1_000_000)] = 1
    """Faults that stand at once."""
    drives: Count = 1
    """Drives that these may touch; servers have all their drives with them."""
    servers: Count = 1
    """Servers that these may touch."""


class WrittenStep(Description):
    """A fault at a moment."""

    at: Moment
    """The time it begins, from the beginning of the schedule, such as 1.5 s."""
    lasts: Seconds
    """Its duration, such as 500 ms."""
    fault: FaultName
    """The kind of fault, such as hang."""
    target: Target
    """The part to break, as the lab names it: d01, srv1, srv1.p0, switch."""
    parameters: Mapping[Name, Any] = Field(default={}, alias="with")
    """The fault's parameters that differ from its defaults, such as {factor: 10}."""


class WrittenChoice(Description):
    """A fault that may be drawn."""

    fault: FaultName
    """The kind of fault, such as hang."""
    targets: Annotated[tuple[Target, ...], Field(min_length=1, json_schema_extra=_or_one), BeforeValidator(_from_one)]
    """The parts that may be broken: names of the lab, or drives, ports or servers for all that it has."""
    lasts: Annotated[
        tuple[Seconds, ...], Field(min_length=1, max_length=2, json_schema_extra=_or_one), BeforeValidator(_from_one)
    ]
    """Its duration, such as 500 ms, or the least and the most, such as [100 ms, 2 s]."""
    weight: Annotated[float, Scalar(_weight, {"type": "number"})] = 1.0
    """Its weight in the draw, beside those of the others."""
    parameters: Mapping[Name, Any] = Field(default={}, alias="with")
    """The fault's parameters that differ from its defaults, such as {factor: 10}."""


class WrittenSchedule(Description):
    """A schedule: written ``steps``, or ``random`` faults that a seed draws."""

    schedule: Name = "unnamed"
    """The schedule's name, which reports carry."""
    file: File | None = None
    """The file that has the schedule, instead of all other keys."""
    seed: Annotated[int, whole(0, 2**63 - 1)] | None = None
    """The seed that draws it, or drew it; without it the run's own does."""
    most: Annotated[WrittenBound, BeforeValidator(_from_number), Field(json_schema_extra=or_a_text)] = WrittenBound()
    """The most that may be broken at once: a number for all, or such as {faults: 2, drives: 4, servers: 1}."""
    recovery: Moment = 0.0
    """The time without a fault before the next one begins, unless another one stands."""
    pause: Annotated[tuple[Name, ...], BeforeValidator(_from_one)] = ()
    """Conditions of the test while which no fault begins, such as [recovering]."""
    repeats: Annotated[int, whole(1, _MOST)] = 1
    """The number of times that the steps are played."""
    steps: tuple[WrittenStep, ...] = ()
    """The faults, in the order they begin."""
    duration: Seconds | None = None
    """The time for which faults are drawn, such as 30 s."""
    every: Seconds | None = None
    """The mean time from one drawn fault to the next, such as 2 s."""
    random: tuple[WrittenChoice, ...] = ()
    """The faults that may be drawn."""


PlanSchedule = Annotated[WrittenSchedule, BeforeValidator(_from_file_name), Field(json_schema_extra=or_a_text)]
"""A schedule in a plan: what it is, or the name of its file."""
