"""Declarations of test files, read without importing them: parameters, measures and test functions."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rackloop.parameters import VOCABULARY, Parameter

_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.LShift: operator.lshift,
}

_FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Declared:
    """A test file: its ``PARAMETERS``, ``MEASURES`` with their SI units, and its test functions.

    A parameter is what :mod:`rackloop.parameters` makes, or a plain default. ``headlines`` are the measures that sum a
    test up, none where they cannot be read without running the file. ``playing`` are those of its functions
    that ask for the fixture ``schedule``.
    """

    parameters: Mapping[str, Any]
    measures: Mapping[str, str]
    functions: frozenset[str]
    playing: frozenset[str] = frozenset()
    headlines: tuple[str, ...] = ()


def files_by_name(root: Path) -> dict[str, Path]:
    """Every test file below ``root`` by its name in plans: ``fabric/identity`` for ``fabric/test_identity.py``."""
    return {
        path.relative_to(root).with_name(path.stem.removeprefix("test_")).as_posix(): path
        for path in sorted(root.rglob("test_*.py"))
    }


def path_of(root: Path, name: str) -> Path:
    """The file below ``root`` that a plan means by ``name``: ``test_NAME.py``, or where there is none ``NAME.py``."""
    subject, _, base = name.rpartition("/")
    path = root / subject / f"test_{base}.py"
    return path if path.exists() else path.with_name(f"{base}.py")


def read_declared(path: Path) -> Declared:
    """The declarations of the test file at ``path``. Raises ValueError, saying what is wrong with it."""
    try:
        module = ast.parse(path.read_bytes(), str(path))
    except SyntaxError as error:
        raise ValueError(f"{path}:{error.lineno or 1} is not Python: {error.msg}") from None
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from None
    constants: dict[str, Any] = {}
    reasons: dict[str, str] = {}
    for statement in module.body:
        match statement:
            case ast.Assign(targets=[target], value=value) | ast.AnnAssign(target=target, value=ast.expr() as value):
                constants |= _assigned(target, value, constants, reasons)
            case ast.ImportFrom(module="rackloop.parameters", names=names):
                constants |= {(name.asname or name.name): VOCABULARY.get(name.name) for name in names}
    tests = [node for node in ast.walk(module) if isinstance(node, _FUNCTION) and node.name.startswith("test_")]
    return Declared(
        parameters=_mapping(path, constants, "PARAMETERS", reasons),
        measures=_mapping(path, constants, "MEASURES", reasons),
        functions=frozenset(node.name for node in tests),
        playing=frozenset(node.name for node in tests if "schedule" in {argument.arg for argument in node.args.args}),
        headlines=tuple(named if isinstance(named := constants.get("HEADLINES"), list) else ()),
    )


def _mapping(path: Path, constants: Mapping[str, Any], name: str, reasons: Mapping[str, str]) -> Mapping[str, Any]:
    found = constants.get(name, {})
    if not isinstance(found, dict):
        why = reasons.get(name, "")
        message = f"{path}: {name} is not a dictionary of constants, so that it cannot be read without running it{why}"
        raise ValueError(message)  # noqa: TRY004 - the file is wrong, not the call
    return found


def _assigned(
    target: ast.expr, value: ast.expr, constants: Mapping[str, Any], reasons: dict[str, str]
) -> dict[str, Any]:
    """The names that an assignment gives; those that are not constant are None, and ``reasons`` has why."""
    try:
        computed, why = _computed(value, constants), ""
    except (KeyError, TypeError, ValueError, ArithmeticError) as error:
        computed, why = None, f": {error}" if isinstance(error, _NotDeclared) else ""
    match target:
        case ast.Name(id=name):
            reasons[name] = why
            return {name: computed}
        case ast.Tuple(elts=elements) if isinstance(computed, list) and len(elements) == len(computed):
            named = zip(elements, computed, strict=True)
            return {element.id: one for element, one in named if isinstance(element, ast.Name)}
    return {}


class _NotDeclared(ValueError):
    """A parameter that cannot be what its declaration says."""


def _computed(node: ast.expr, constants: Mapping[str, Any]) -> Any:
    """The value of a constant expression: literals, arithmetic, names assigned before, and declared parameters."""
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return constants[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_computed(operand, constants)
        case ast.BinOp(left=left, op=op, right=right):
            return _OPERATORS[type(op)](_computed(left, constants), _computed(right, constants))
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            return [_computed(element, constants) for element in elements]
        case ast.Dict(keys=keys, values=values) if None not in keys:
            return {_computed(k, constants): _computed(v, constants) for k, v in zip(keys, values, strict=True) if k}
        case ast.Call(func=ast.Name(id=name)) if constants.get(name) in VOCABULARY.values():
            return _declared(node, constants)
    raise ValueError


def _declared(call: ast.Call, constants: Mapping[str, Any]) -> Parameter:
    made: Callable[..., Parameter] = _computed(call.func, constants)
    positional = [_computed(argument, constants) for argument in call.args]
    named = {keyword.arg: _computed(keyword.value, constants) for keyword in call.keywords if keyword.arg}
    try:
        return made(*positional, **named)
    except (TypeError, ValueError, re.error) as error:
        raise _NotDeclared(f"line {call.lineno}: {error}") from None
