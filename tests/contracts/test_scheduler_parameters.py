"""Parameters of schedulers as their reference has them, against what the storage switch accepts and refuses."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from rackloop.errors import BadInput
from rackloop_drivers.host import LocalExecutor
from rackloop_drivers.storage_switch import SCHEDULERS, SwitchedTenant, require_admitted
from scheduler_reference import SOURCES, Parameter, parameters
from tests.deadlines import CLOCK, soon

TENANT = SwitchedTenant("t1", 0, 1 << 20, 1, None, "drive")


@pytest.fixture(scope="module")
def executor() -> Iterator[LocalExecutor]:
    with LocalExecutor(CLOCK) as local:
        yield local


def said(executor: LocalExecutor, scheduler: Mapping[str, Any]) -> str:
    """What the program says of a scheduler; nothing where it accepts it."""
    try:
        require_admitted(dict(scheduler), [TENANT], executor, soon())
    except BadInput as refused:
        return str(refused)
    return ""


def defaults_of(scheduler: str) -> dict[str, Any]:
    """All parameters of a scheduler with their defaults, as a document."""
    document: dict[str, Any] = {}
    for one in parameters(scheduler):
        if one.default is None:
            continue
        group, separator, name = one.name.rpartition(".")
        values = [json.loads(value.replace("none", "null")) for value in one.default.split(", ")]
        if not separator:
            (document[name],) = values
        elif group.endswith("[]"):
            points = document.setdefault(group.removesuffix("[]"), [{} for _ in values])
            for point, value in zip(points, values, strict=True):
                point[name] = value
        else:
            (document.setdefault(group, {})[name],) = values
    return document


def with_value(scheduler: str, one: Parameter, value: float) -> dict[str, Any]:
    """The defaults but for one parameter, which is ``value``."""
    document = defaults_of(scheduler)
    group, separator, name = one.name.rpartition(".")
    whole = [int(value)] * 4 if "[" in one.kind else int(value) if one.kind.startswith("u") else value
    if not separator:
        document[name] = whole
    else:
        inner = document[group.removesuffix("[]")]
        (inner[-1] if isinstance(inner, list) else inner)[name] = whole
    return {"kind": scheduler, **document}


def test_every_scheduler_with_parameters_is_in_the_reference() -> None:
    assert {*SOURCES} == {*SCHEDULERS} - {"none"}


@pytest.mark.parametrize("scheduler", SOURCES)
def test_the_switch_has_the_names_of_the_reference_and_accepts_the_defaults(
    executor: LocalExecutor, scheduler: str
) -> None:
    assert said(executor, {"kind": scheduler, **defaults_of(scheduler)}) == ""
    # Groups were accepted with all that is in them, none of which may be left out.
    known = re.search(r"known: ([\w, ]+?)(?: at line|$)", said(executor, {"kind": scheduler, "zzzz": 1}))
    assert known is not None
    assert {*known[1].split(", ")} == {one.name for one in parameters(scheduler) if "." not in one.name}


@pytest.mark.parametrize(
    ("scheduler", "one"),
    [
        pytest.param(scheduler, one, id=f"{scheduler}:{one.name}")
        for scheduler in SOURCES
        for one in parameters(scheduler)
        if one.bounds is not None
    ],
)
def test_the_switch_refuses_what_is_out_of_range_with_the_range(
    executor: LocalExecutor, scheduler: str, one: Parameter
) -> None:
    assert one.bounds is not None
    defaults = {each.name: each.default for each in parameters(scheduler)}
    most = one.bounds.most
    # Beyond all that a bound may be that is another parameter.
    beyond = 4e9 if "u32" in one.kind else 1e13
    refused = re.search(r"give (above )?(\S+) to (\S+)", said(executor, with_value(scheduler, one, beyond)))
    assert refused is not None
    above, low, high = refused.groups()

    def number(bound: float | str) -> float:
        return float(str(defaults[bound])) if isinstance(bound, str) else bound

    assert float(high) == number(most)
    assert bool(above) == (one.bounds.least is None)
    assert float(low) == (0.0 if one.bounds.least is None else number(one.bounds.least))
