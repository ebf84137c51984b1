"""`rackloop plan list`: the plans that are found by name, and what each is for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rackloop.errors import EXIT_PASS, BadInput, DescriptionError
from rackloop.lab.yaml import SUFFIXES
from rackloop.plan import Plan, find_testplans, load_plan
from rackloop.units import counted
from rackloop_cli.listing.rows import print_json, print_rows


def run(testplans: Path | None, *, as_json: bool) -> int:
    """Print the plans of ``testplans/`` here and those of the folder of tests."""
    found = []
    for name, path in plan_files(testplans).items():
        plan = read(path, testplans)
        tests = [entry.file for entry in plan.tests] if isinstance(plan, Plan) else []
        about = plan.purpose if isinstance(plan, Plan) else plan
        found.append({"name": name, "tests": tests, "purpose": about, "file": str(path)})
    if as_json:
        print_json(plans=found)
    else:
        rows: list[list[Any]] = [[one["name"], len(one["tests"]), one["purpose"], one["file"]] for one in found]
        print_rows(("name", "tests", "purpose", "file"), rows)
    return EXIT_PASS


def plan_files(testplans: Path | None) -> dict[str, Path]:
    """The files of plans by the names that `rackloop run` finds them by."""
    found: dict[str, Path] = {}
    for folder in (Path("testplans"), find_testplans(testplans)):
        for path in sorted(folder.iterdir()) if folder.is_dir() else ():
            if path.suffix in SUFFIXES:
                found.setdefault(path.stem, path)
    return dict(sorted(found.items()))


def read(path: Path, testplans: Path | None) -> Plan | str:
    """The plan in a file, or in a few words why it is none."""
    try:
        return load_plan(path, find_testplans(testplans))
    except DescriptionError as error:
        return f"{counted(len(error.problems), 'problem')}, the first: {error.problems[0]}"
    except BadInput as error:
        return str(error)
