"""A test plan declares itself before it runs."""

from __future__ import annotations

import ast
import runpy
from contextlib import suppress
from pathlib import Path

import pytest

from rackloop.errors import NotSupported
from rackloop.lab import load_lab
from rackloop.parameters import default_of
from tests.meta.tree import ROOT, shown

PLANS = sorted((ROOT / "testplans").rglob("test_*.py"))
SKELETON = ROOT / "tools" / "skeletons" / "testplan.py"
TIME_CLASSES = {"seconds", "minutes", "hours"}


def assigned(path: Path) -> dict[str, ast.expr]:
    """What each constant of a module is set to."""
    values: dict[str, ast.expr] = {}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                values[name] = value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                values[name] = value
    return values


def declaration(path: Path) -> dict[str, object]:
    """The arguments of the module's ``pytest.mark.rackloop``."""
    mark = assigned(path).get("pytestmark")
    assert isinstance(mark, ast.Call), "no pytestmark = pytest.mark.rackloop(...)"
    assert ast.unparse(mark.func) == "pytest.mark.rackloop"
    return {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in mark.keywords}


def test_there_are_test_plans() -> None:
    assert PLANS


@pytest.mark.parametrize("path", [*PLANS, SKELETON], ids=shown)
def test_a_test_plan_says_what_it_is_for_and_what_it_needs(path: Path) -> None:
    declared = declaration(path)
    assert declared.keys() == {"purpose", "requires", "destructive", "time_class"}
    purpose = str(declared["purpose"])
    assert purpose[:1].islower(), f"a purpose goes on after 'This test will': {purpose!r}"
    assert isinstance(declared["requires"], list)
    assert all(isinstance(ability, str) for ability in declared["requires"])
    assert isinstance(declared["destructive"], bool)
    assert declared["time_class"] in TIME_CLASSES


@pytest.mark.parametrize("path", [*PLANS, SKELETON], ids=shown)
def test_a_test_plan_names_its_parameters_and_measurements(path: Path) -> None:
    constants = assigned(path)
    parameters, measures = constants["PARAMETERS"], ast.literal_eval(constants["MEASURES"])
    assert isinstance(parameters, ast.Dict)
    assert all(isinstance(key, ast.Constant) and isinstance(key.value, str) for key in parameters.keys)
    assert measures, "a test that measures nothing cannot be judged"
    assert all("." in name and unit for name, unit in measures.items()), "a measure is dotted and has a unit"


@pytest.mark.parametrize("path", PLANS, ids=shown)
def test_a_subject_is_a_folder(path: Path) -> None:
    assert len(path.relative_to(ROOT / "testplans").parts) == 2


@pytest.mark.parametrize("lab", sorted((ROOT / "labs").glob("*.yaml")), ids=shown)
@pytest.mark.parametrize("path", PLANS, ids=shown)
def test_a_test_plan_foresees_what_it_would_do_on_any_rack(path: Path, lab: Path) -> None:
    described = load_lab(str(lab))
    module = runpy.run_path(str(path))
    parameters = {name: default_of(declared) for name, declared in module["PARAMETERS"].items()}
    for name in module.keys() & {"check", "drives_erased", "faults", "needs", "estimate_s"}:
        with suppress(NotSupported):
            module[name](described, parameters)
