"""`rackloop test list` and `show`: the tests that a plan can select, what they take and measure, and their limits."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rackloop.errors import EXIT_PASS, BadInput
from rackloop.measurement import Limit
from rackloop.names import guess
from rackloop.parameters import declared_by
from rackloop.plan import Plan, PlanEntry, files_by_name, find_testplans, read_declared
from rackloop_cli.listing.plans import plan_files, read
from rackloop_cli.listing.rows import print_json, print_rows

_TYPES: dict[type, str] = {int: "whole number", float: "number", str: "text", bool: "true or false"}


def run(testplans: Path | None, *, as_json: bool) -> int:
    """Print every test file with what it declares of itself."""
    found = [{"name": name, **_declaration(path)} for name, path in files_by_name(find_testplans(testplans)).items()]
    if as_json:
        print_json(tests=found)
    else:
        rows = [[one["name"], one["time_class"], ", ".join(one["requires"]), one["purpose"]] for one in found]
        print_rows(("test", "takes", "requires", "this test will"), rows)
    return EXIT_PASS


def show(name: str, testplans: Path | None, *, as_json: bool) -> int:
    """Print one test: its parameters, its measures, and the limits that plans set. Raises BadInput where it is none."""
    files = files_by_name(find_testplans(testplans))
    name = name.removesuffix(".py").replace("/test_", "/")
    if name not in files:
        raise BadInput(f"there is no test {name!r}; {guess(name, files)}")
    path = files[name]
    try:
        declared = read_declared(path)
        parameters = [_parameter(key, raw) for key, raw in declared.parameters.items()]
    except ValueError as error:
        raise BadInput(str(error)) from None
    about = _declaration(path)
    limits = list(_limits(name, testplans))
    if as_json:
        print_json(name=name, **about, parameters=parameters, measures=dict(declared.measures), limits=limits)
        return EXIT_PASS
    print(f"test\t{name}\npurpose\t{about['purpose']}\nrequires\t{', '.join(about['requires'])}")
    print(f"destructive\t{str(about['destructive']).lower()}\ntakes\t{about['time_class']}\nfile\t{path}\n")
    keys = ("parameter", "type", "unit", "default", "allowed", "meaning")
    print_rows(keys, [[one[key] for key in keys] for one in parameters])
    print()
    print_rows(("measure", "unit"), [*declared.measures.items()])
    print()
    keys = ("plan", "measure", "where", "statistic", "limit", "on")
    print_rows(keys, [[one[key] for key in keys] for one in limits])
    return EXIT_PASS


def _declaration(path: Path) -> dict[str, Any]:
    """The constants of the file's marker, read without running it."""
    found: dict[str, Any] = {"purpose": "", "requires": [], "destructive": "", "time_class": "", "file": str(path)}
    try:
        module = ast.parse(path.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, UnicodeDecodeError) as error:
        return found | {"purpose": f"cannot be read: {error}"}
    for call in (node for node in ast.walk(module) if isinstance(node, ast.Call)):
        if ast.unparse(call.func) == "pytest.mark.rackloop":
            for keyword in call.keywords:
                try:
                    found[str(keyword.arg)] = ast.literal_eval(keyword.value)
                except (ValueError, TypeError):
                    continue
            break
    # One that a run refuses is listed all the same.
    requires = found["requires"]
    found["requires"] = list(map(str, requires)) if isinstance(requires, list | tuple) else [str(requires)]
    return found


def _parameter(name: str, declared: Any) -> dict[str, Any]:
    try:
        parameter = declared_by(declared)
    except ValueError as error:
        raise BadInput(f"parameter {name}: {error}") from None
    values = parameter.default if parameter.is_list else [parameter.default]
    default = ", ".join("none" if value is None else parameter.shown(value) for value in values)
    kind = _TYPES[parameter.type]
    return {
        "parameter": name,
        "type": f"list of {kind}" if parameter.is_list else kind,
        "unit": parameter.unit,
        "default": f"[{default}]" if parameter.is_list else default,
        "allowed": parameter.expected,
        "least": parameter.least if math.isfinite(parameter.least) else None,
        "most": parameter.most if math.isfinite(parameter.most) else None,
        "meaning": parameter.meaning,
    }


def _limits(name: str, testplans: Path | None) -> Iterator[dict[str, str]]:
    """The limits that each plan sets for the test; a plan that selects it without any has a line too."""
    for plan_name, path in plan_files(testplans).items():
        plan = read(path, testplans)
        entries: tuple[PlanEntry, ...] = plan.tests if isinstance(plan, Plan) else ()
        for entry in entries:
            if entry.file == name:
                yield from (_limit(plan_name, limit) for limit in entry.limits or (Limit("", text="none"),))


def _limit(plan: str, limit: Limit) -> dict[str, str]:
    statistic = f"p{limit.quantile * 100:g}" if isinstance(limit.quantile, float) else limit.quantile or ""
    found = {"plan": plan, "measure": limit.measure, "where": _pairs(limit.where), "statistic": statistic}
    return found | {"limit": limit.text, "on": _pairs(limit.on)}


def _pairs(on: Mapping[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in on.items())
