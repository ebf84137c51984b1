"""Parameters of test plans: declared ranges, and values at and beyond their edges."""

from __future__ import annotations

import math
import runpy
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from rackloop.errors import BadInput, NotSupported
from rackloop.lab import Lab, load_lab
from rackloop.parameters import Parameter, default_of, number, whole
from tests.meta.tree import ROOT, check

PLANS = ROOT / "testplans"
SAYINGS = ("check", "drives_erased", "faults", "needs", "estimate_s")
UNITS = {"bytes": "B", "_per_s": "", "_ms": "ms", "_s": "s"}
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


def undeclared(name: str, declared: object) -> Iterator[str]:
    """What a parameter does not declare: its type, its bounds, its meaning, its unit."""
    if not isinstance(declared, Parameter):
        yield "declare it with a function of rackloop.parameters"
        return
    if not declared.meaning:
        yield "say what it means"
    if declared.type in (int, float) and not (declared.least >= 0 and math.isfinite(declared.most)):
        yield "a number is not negative and has an upper bound"
    unit = next((unit for ending, unit in UNITS.items() if name.endswith(ending)), "")
    if unit and declared.unit != unit:
        yield f"by its name its unit is {unit}, not {declared.unit!r}"


def accepted(declared: Parameter) -> Iterator[str]:
    """Values that a parameter may not have and reads, or refuses in other words than 'expected ...'."""
    outside: list[Any] = [[text] if declared.is_list else text for text in _just_outside(declared)]
    for written in [*outside, {}, None, *([[], "x"] if declared.is_list else [["1"], []])]:
        problems: dict[tuple[int, ...], str] = {}
        declared.read(written, problems)
        if not problems:
            yield f"{written!r} is accepted"
        if any("\n" in problem for problem in problems.values()):
            yield f"{written!r} is refused in several lines"
        if written in outside and not all(problem.startswith("expected ") for problem in problems.values()):
            yield f"{written!r} is refused without saying what is expected"


def badly_foreseen(file: str, name: str, lab: Lab) -> Iterator[str]:
    """Values at a parameter's edge that it refuses, or with which its test plan's estimate is no time."""
    declared = _declared(file, name)
    for edge in _at_the_edge(declared):
        if (problem := declared.problem(edge)) is not None:
            yield f"{edge!r} is refused: {problem}"
        estimate = _foreseen(PLANS / file, lab, {name: [edge] if declared.is_list else edge})
        if not 0 <= estimate < math.inf:
            yield f"with {edge!r} the estimate is {estimate}"


def _foreseen(path: Path, lab: Lab, given: dict[str, Any]) -> float:
    """The estimate of a test plan that was asked for everything it foresees, 0 where it says none."""
    module = module_of(str(path))
    parameters = {name: default_of(declared) for name, declared in module["PARAMETERS"].items()} | given
    answers = {}
    with suppress(NotSupported, BadInput):
        for saying in SAYINGS:
            if saying in module:
                answers[saying] = module[saying](lab, parameters)
    return float(answers.get("estimate_s", 0.0))


def test_parameters_declare_their_type_range_and_meaning() -> None:
    check(f"{file}: {name}: {wrong}" for file, name in ALL for wrong in undeclared(name, _declared(file, name)))


def test_what_is_just_outside_is_refused_where_it_is_read() -> None:
    check(f"{file}: {name}: {wrong}" for file, name in ALL for wrong in accepted(_declared(file, name)))


@pytest.mark.parametrize("lab", LABS)
def test_what_is_at_the_edge_is_foreseen_or_refused_in_a_sentence(lab: str) -> None:
    described = lab_of(lab)
    check(f"{file}: {name}: {wrong}" for file, name in ALL for wrong in badly_foreseen(file, name, described))


@pytest.mark.parametrize(
    ("name", "declared"),
    [
        ("blocks", 4096),
        ("blocks", replace(whole(1, "how many", most=9), meaning="")),
        ("blocks", replace(whole(1, "how many", most=9), most=math.inf)),
        ("pause_s", number(1.0, "the pause", most=9.0, unit="ms")),
        ("pause_ms", number(1.0, "the pause", most=9.0, unit="s")),
        ("block_bytes", whole(1, "the size", most=9)),
    ],
)
def test_an_undeclared_parameter_is_found(name: str, declared: object) -> None:
    assert len(list(undeclared(name, declared))) == 1


def test_a_parameter_that_accepts_what_it_may_not_have_is_found() -> None:
    class Lax(Parameter):
        def read(self, written: object, problems: dict[tuple[int, ...], str]) -> Any:
            problems |= {(): "expected less"} if written == "10" else {}

    lax = whole(1, "how many", most=9)
    assert list(accepted(lax)) == []
    found = list(accepted(Lax(**vars(lax))))
    assert "None is accepted" in found
    assert "'10' is accepted" not in found


@pytest.mark.parametrize(
    ("file", "given", "why"),
    [
        ("erasure/test_recovery.py", {"k": 254, "m": 254}, "255 together at most"),
        ("erasure/test_recovery.py", {"codes": ["300+9"]}, "at most 256 sectors"),
        ("erasure/test_codec.py", {"codes": ["65536+9"]}, "at most 65536 sectors"),
        ("erasure/test_rebuild.py", {"k": 250, "m": 6}, "255 together at most"),
        ("erasure/test_rebuild.py", {"throttle_floor_bytes_per_s": 5_000_000}, "is above throttle_bytes_per_s"),
        ("erasure/test_update.py", {"updated": [253]}, "has 1 to 252 sectors to update"),
        ("disaggregation/test_complete.py", {"ios": 64_001}, "have room for 64000 records"),
        ("disaggregation/test_elastic.py", {"steps": 43_200}, "a move takes 2 s"),
        ("disaggregation/test_configuration.py", {"servers": [2, 1]}, "must end as it begins"),
        ("disaggregation/test_configuration.py", {"servers": [2]}, "one shape alone"),
        ("disaggregation/test_configuration.py", {"servers": [1, 1]}, "one shape alone"),
        ("disaggregation/test_configuration.py", {"servers": [9, 1, 9]}, "asks for 9"),
        ("disaggregation/test_configuration.py", {"marked_bytes": 8 << 30}, "a drive in an expander has 4294967296"),
    ],
)
def test_parameters_that_do_not_go_together_are_refused_before_the_lab_is_there(
    file: str, given: dict[str, Any], why: str
) -> None:
    module = module_of(str(PLANS / file))
    parameters = {name: default_of(declared) for name, declared in module["PARAMETERS"].items()} | given
    with pytest.raises(BadInput, match=why):
        module["check"](lab_of(Path(file).parent.name), parameters)
