"""Every parameter of every test plan says what it may be, and a value at the edge is either used or refused."""

from __future__ import annotations

import math
import runpy
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from rackloop.errors import BadInput, NotSupported
from rackloop.lab import Lab, load_lab
from rackloop.parameters import Parameter, default_of
from tests.meta.tree import ROOT

PLANS = ROOT / "testplans"
SAYINGS = ("check", "drives_erased", "faults", "needs", "estimate_s")
LABS = ("mock", "mock-direct", "disaggregation", "erasure")

module_of = cache(runpy.run_path)
lab_of = cache(load_lab)


def _all() -> Iterator[tuple[str, str]]:
    for path in sorted(PLANS.rglob("test_*.py")):
        for name in module_of(str(path))["PARAMETERS"]:
            yield path.relative_to(PLANS).as_posix(), name


ALL = list(_all())


def _declared(file: str, name: str) -> Any:
    return module_of(str(PLANS / file))["PARAMETERS"][name]


def _just_outside(declared: Parameter) -> Iterator[str]:
    """Texts of values that a parameter may not have, each just beside one that it may, or of another type."""
    if declared.type in (int, float):
        step = declared.multiple if declared.type is int else 1e-9
        yield f"{declared.least - step:.12g}"
        yield f"{declared.most + max(step, declared.most * 1e-6):.12g}"
        yield from ("-1", "nan", "inf", "1e999", "1e-400x", "")
        if declared.multiple > 1:
            yield str(int(declared.least) + 1)
    if declared.type is bool:
        yield from ("2", "", "maybe")
    if declared.type is str:
        yield from ("x" * 2000, "\x1b[2J", "a\nb")
    if declared.choices or declared.pattern:
        yield from ("", "x", "5")
    yield "?" * 300 if not (declared.longest > 300) else "?" * 2000


def _at_the_edge(declared: Parameter) -> Iterator[Any]:
    """Values that it may have, at the ends of what is allowed."""
    if declared.type is int:
        yield from (int(declared.least), int(declared.most) // declared.multiple * declared.multiple)
    elif declared.type is float:
        yield from (float(declared.least), float(declared.most))
    elif declared.type is bool:
        yield from (True, False)
    else:
        yield from declared.choices
        yield from [""] if default_of(declared) in ("", [""]) else []


@pytest.mark.parametrize(("file", "name"), ALL)
def test_a_parameter_declares_its_type_range_and_meaning(file: str, name: str) -> None:
    declared = _declared(file, name)
    assert isinstance(declared, Parameter), "declare it with a function of rackloop.parameters"
    assert declared.meaning
    if declared.type in (int, float):
        assert math.isfinite(declared.most), "a number has an upper bound"
        assert declared.least >= 0
    assert {"_s": "s", "_ms": "ms", "bytes": "B"}.get(name[-5:] if name.endswith("bytes") else name[-3:], "") in {
        "",
        declared.unit,
    }


@pytest.mark.parametrize(("file", "name"), ALL)
def test_what_is_just_outside_is_refused_where_it_is_read(file: str, name: str) -> None:
    declared = _declared(file, name)
    for written in _just_outside(declared):
        problems: dict[tuple[int, ...], str] = {}
        declared.read([written] if declared.is_list else written, problems)
        assert problems, f"{written!r} is accepted"
        assert all(problem.startswith("expected ") and "\n" not in problem for problem in problems.values())
    wrongs: list[Any] = [{}, None, *([[], "x"] if declared.is_list else [["1"], []])]
    for wrong in wrongs:
        problems = {}
        declared.read(wrong, problems)
        assert problems, f"{wrong!r} is accepted"


@pytest.mark.parametrize("lab", LABS)
@pytest.mark.parametrize(("file", "name"), ALL)
def test_what_is_at_the_edge_is_foreseen_or_refused_in_a_sentence(file: str, name: str, lab: str) -> None:
    declared, described = _declared(file, name), lab_of(lab)
    for edge in _at_the_edge(declared):
        assert declared.problem(edge) is None
        _foresee(PLANS / file, described, {name: [edge] if declared.is_list else edge})


def _foresee(path: Path, lab: Lab, given: dict[str, Any]) -> None:
    module = module_of(str(path))
    parameters = {name: default_of(declared) for name, declared in module["PARAMETERS"].items()} | given
    with suppress(NotSupported, BadInput):
        for saying in SAYINGS:
            if saying in module:
                found = module[saying](lab, parameters)
                if saying == "estimate_s":
                    assert 0 <= found < math.inf


@pytest.mark.parametrize(
    ("file", "given", "why"),
    [
        ("erasure/test_recovery.py", {"k": 254, "m": 254}, "255 together at most"),
        ("erasure/test_recovery.py", {"codes": ["300+9"]}, "at most 256 sectors"),
        ("erasure/test_codec.py", {"codes": ["65536+9"]}, "at most 65536 sectors"),
        ("erasure/test_rebuild.py", {"k": 250, "m": 6}, "255 together at most"),
        ("erasure/test_rebuild.py", {"throttle_floor_bytes_per_s": 5_000_000}, "is above throttle_bytes_per_s"),
        ("erasure/test_update.py", {"updated": [253]}, "has 1 to 252 sectors to update"),
        ("disaggregation/test_configuration.py", {"servers": [2, 1]}, "must end as it begins"),
        ("disaggregation/test_configuration.py", {"servers": [9]}, "asks for 9"),
    ],
)
def test_parameters_that_do_not_go_together_are_refused_before_the_lab_is_there(
    file: str, given: dict[str, Any], why: str
) -> None:
    module = module_of(str(PLANS / file))
    parameters = {name: default_of(declared) for name, declared in module["PARAMETERS"].items()} | given
    with pytest.raises(BadInput, match=why):
        module["check"](lab_of("erasure"), parameters)
