"""Declarations of test plans."""

from __future__ import annotations

import ast
import runpy
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from rackloop.errors import NotSupported
from rackloop.lab import load_lab
from rackloop.parameters import default_of
from tests.meta.tree import ROOT, check, parsed, shown

PLANS = sorted((ROOT / "testplans").rglob("test_*.py"))
SKELETON = ROOT / "tools" / "rackloop_cli" / "new" / "_testplan.py"
DECLARED = {"purpose", "requires", "destructive", "time_class"}
TIME_CLASSES = {"seconds", "minutes", "hours"}


def assigned(path: Path) -> dict[str, ast.expr]:
    """The values of a module's constants."""
    values: dict[str, ast.expr] = {}
    for node in parsed(path).body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                values[name] = value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                values[name] = value
    return values


def undeclared(paths: Iterable[Path]) -> Iterator[str]:
    """What test plans leave out of their ``pytest.mark.rackloop``, or declare wrongly."""
    for path in paths:
        mark = assigned(path).get("pytestmark")
        if not isinstance(mark, ast.Call) or ast.unparse(mark.func) != "pytest.mark.rackloop":
            yield f"{shown(path)}: add pytestmark = pytest.mark.rackloop(...)"
            continue
        declared = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in mark.keywords}
        yield from (f"{shown(path)}:{mark.lineno}: {wrong}" for wrong in wrong_declarations(declared))


def wrong_declarations(declared: Mapping[str, object]) -> Iterator[str]:
    """What is wrong with the arguments of a ``pytest.mark.rackloop``."""
    if declared.keys() != DECLARED:
        yield f"declare {sorted(DECLARED)}, not {sorted(declared)}"
        return
    requires = declared["requires"]
    if not str(declared["purpose"])[:1].islower():
        yield f"a purpose goes on after 'This test will': {declared['purpose']!r}"
    if not isinstance(requires, list) or not all(isinstance(ability, str) for ability in requires):
        yield "requires is a list of names of abilities"
    if not isinstance(declared["destructive"], bool):
        yield "destructive is True or False"
    if declared["time_class"] not in TIME_CLASSES:
        yield f"time_class is one of {sorted(TIME_CLASSES)}"


def unnamed(paths: Iterable[Path]) -> Iterator[str]:
    """What test plans leave out of their ``PARAMETERS`` and ``MEASURES``."""
    for path in paths:
        constants = assigned(path)
        parameters, measures = constants.get("PARAMETERS"), ast.literal_eval(constants.get("MEASURES", "{}"))
        keys = parameters.keys if isinstance(parameters, ast.Dict) else [None]
        if not all(isinstance(key, ast.Constant) and isinstance(key.value, str) for key in keys):
            yield f"{shown(path)}: PARAMETERS is a dict display with strings as keys"
        if not measures:
            yield f"{shown(path)}: MEASURES is empty: a test that measures nothing cannot be judged"
        for name, unit in measures.items():
            if "." not in name or not unit:
                yield f"{shown(path)}: {name!r}: {unit!r}: a measure is dotted and has a unit"
        for name in set(ast.literal_eval(constants.get("HEADLINES", "()"))) - measures.keys():
            yield f"{shown(path)}: HEADLINES has {name!r}, which is not in MEASURES"


def misplaced(paths: Iterable[Path], folder: Path) -> Iterator[str]:
    """Test plans that are not in a subject's folder."""
    for path in paths:
        if len(path.relative_to(folder).parts) != 2:
            yield f"{shown(path)}: put it in testplans/SUBJECT/"


def test_there_are_test_plans() -> None:
    assert PLANS


def test_test_plans_declare_their_purpose_and_requirements() -> None:
    check(undeclared([*PLANS, SKELETON]))


def test_test_plans_name_their_parameters_and_measurements() -> None:
    check(unnamed([*PLANS, SKELETON]))


def test_a_subject_is_a_folder() -> None:
    check(misplaced(PLANS, ROOT / "testplans"))


def test_test_plans_foresee_what_they_would_do_on_any_rack() -> None:
    labs = [load_lab(str(lab)) for lab in sorted((ROOT / "labs").glob("*.yaml"))]
    assert labs
    for path in PLANS:
        module = runpy.run_path(str(path))
        parameters = {name: default_of(declared) for name, declared in module["PARAMETERS"].items()}
        for name in module.keys() & {"check", "drives_erased", "faults", "needs", "estimate_s"}:
            for lab in labs:
                with suppress(NotSupported):
                    module[name](lab, parameters)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "pytestmark = pytest.mark.slow()",
        "pytestmark = pytest.mark.rackloop(purpose='read')",
        *(
            f"pytestmark = pytest.mark.rackloop(purpose={purpose}, requires={requires}, destructive={destructive}, "
            f"time_class={time_class})"
            for purpose, requires, destructive, time_class in [
                ("'Reads'", "[]", "True", "'hours'"),
                ("'read'", "'fabric'", "True", "'hours'"),
                ("'read'", "[]", "1", "'hours'"),
                ("'read'", "[]", "True", "'days'"),
            ]
        ),
    ],
)
def test_a_wrong_declaration_is_found(tmp_path: Path, text: str) -> None:
    path = tmp_path / "test_made_up.py"
    path.write_text(text)
    assert len(list(undeclared([path]))) == 1


@pytest.mark.parametrize(
    "text",
    [
        "PARAMETERS = {}\nMEASURES = {}",
        "PARAMETERS = {}\nMEASURES = {'latency': 's'}",
        "PARAMETERS = {}\nMEASURES = {'read.latency': ''}",
        "PARAMETERS = {1: None}\nMEASURES = {'read.latency': 's'}",
        "PARAMETERS = dict()\nMEASURES = {'read.latency': 's'}",
    ],
)
def test_an_unnamed_parameter_or_measurement_is_found(tmp_path: Path, text: str) -> None:
    path = tmp_path / "test_made_up.py"
    path.write_text(text)
    assert len(list(unnamed([path]))) == 1


def test_a_misplaced_test_plan_is_found(tmp_path: Path) -> None:
    paths = [tmp_path / "fabric" / "test_remap.py", tmp_path / "test_remap.py"]
    assert list(misplaced(paths, tmp_path)) == ["test_remap.py: put it in testplans/SUBJECT/"]
