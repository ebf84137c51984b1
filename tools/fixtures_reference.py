"""Write docs/reference/fixtures.md: the fixtures, all of ``rack``, the marks and the options, as the code has them.

``python tools/fixtures_reference.py``, in the environment of the tests, after a change to any of them.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import get_args

from rackloop_fixtures import Measure, Progress, Rack
from rackloop_fixtures.plugin import MARKERS
from rackloop_fixtures.rack.abilities import RackAbilities
from rackloop_fixtures.rack.means import CUT_POWER, UNPLUG, Outage
from rackloop_fixtures.rack.own_fio import Pattern
from rackloop_fixtures.rack.rack import Protocol

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference" / "fixtures.md"
_FIXTURES = ROOT / "fixtures" / "rackloop_fixtures"
_FOR_TESTS = (
    "rack",
    "measure",
    "lab",
    "parameters",
    "progress",
    "schedule",
    "plan_entry",
    "drive_under_test",
    "shared_box",
)
_ROLE = re.compile(r":[a-z]+:`~?(?:[\w.]*\.)?(\w+)`")
_HEAD = """\
# Fixtures

<!-- Written by tools/fixtures_reference.py from the code. -->

What a test may ask for by the names of its arguments. `pytest --fixtures` lists the same, in any folder. A
[test of your own](../tutorials/your-own-test.md) needs nothing else: no plan, no import, no mark.
"""
_CALLS = """
`measure` and `progress` are called:
"""
_RACK = """
## The rack

Everything of the fixture `rack`. What the test changes by it is undone when the test ends.
"""
_MEANS = """
### What is done, by what there is

`unplug` and `power_cycle` take the first of these that the rack has, so that a test runs unchanged on a rack with a
switch and on servers whose drives are attached for good. What was taken is a step of the report and `means.chosen` of
the [event stream](events.md). On a simulated rack the simulated boxes do it; on a real one the switch, the kernel of
the server, the slot, the enclosure, the controller or the outlet.

| to unplug a drive | fault |
|---|---|
"""
_ABILITIES = """
### Abilities below them

What the verbs above are made of. It is there on racks that have it; else NotSupported is raised, which blocks the test
unless the plan says that it [may be skipped](plan-file.md#what-may-be-skipped).
"""
_FAULT = """
### Faults

`rack.faults.injected(SPEC)` has a [fault](faults.md) stand while its block runs, and for the duration it was given
where that is longer. `rackloop_fixtures.fault` has a function for each kind, which an editor completes:

```python
from rackloop_fixtures import fault

spec = fault.fail_slow("d01", extra_us=20_000)
assert spec.kind == "fail_slow"
```
"""


def page() -> str:
    """The whole page."""
    return _HEAD + "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    fixtures = dict(_fixtures())
    yield from ("", "## For tests", "")
    for name in _FOR_TESTS:
        yield from fixtures.pop(name)
    yield from _CALLS.splitlines()
    yield ""
    for name, kind in (("measure", Measure), ("progress", Progress)):
        yield from _method(name, kind.__call__)
    yield from ("## What they are made of", "", "For tests of the harness, and for what `rack` cannot do.", "")
    for lines in fixtures.values():
        yield from lines
    yield from _RACK.strip("\n").splitlines()
    yield ""
    yield from _members(Rack)
    for name, words in (("Protocol", get_args(Protocol)), ("Pattern", get_args(Pattern))):
        yield from (f"`{name}` is one of {_listed(words)}.", "")
    yield from _MEANS.strip("\n").splitlines()
    yield from (f"| {_subject(means.kind)} | `{means.kind}` |" for means in UNPLUG)
    yield from ("", "The power of a part is cut by the first of " + _listed([means.kind for means in CUT_POWER]) + ".")
    yield from ("", "### What an outage says", "", _prose(Outage.__doc__), "")
    yield from ("### Options of fio", "", "| option | type | meaning |", "|---|---|---|")
    yield from _options()
    yield from _FAULT.rstrip("\n").splitlines()
    yield from _ABILITIES.rstrip("\n").splitlines()
    yield ""
    yield from _members(RackAbilities)
    yield from ("## Marks", "", "| mark | meaning |", "|---|---|")
    for marker in MARKERS:
        mark, _, meaning = marker.partition(": ")
        yield f"| `pytest.mark.{mark}` | {meaning} |"
    yield from ("", "## Options of pytest", "", "| option | meaning |", "|---|---|")
    yield from _pytest_options()


def _fixtures() -> Iterator[tuple[str, list[str]]]:
    for node in ast.parse((_FIXTURES / "fixtures.py").read_text(encoding="utf-8")).body:
        for decorator in node.decorator_list if isinstance(node, ast.FunctionDef) else ():
            said = ast.unparse(decorator)
            if isinstance(node, ast.FunctionDef) and said.startswith("pytest.fixture"):
                scope = "one a session" if "session" in said else "one a test"
                kind = ast.unparse(node.returns) if node.returns else ""
                kind = re.sub(r"^Iterator\[(.*)\]$", r"\1", kind)
                said = _prose(ast.get_docstring(node))
                yield node.name, [f"### `{node.name}`", "", f"`{kind}`, {scope}.", "", said, ""]


def _members(kind: type) -> Iterator[str]:
    for name, member in vars(kind).items():
        if name.startswith("_"):
            continue
        if isinstance(member, property):
            yield from (f"#### `rack.{name}`", "", _prose(member.__doc__), "")
        elif callable(member):
            yield from _method(f"rack.{name}", member)


def _method(name: str, method: Callable[..., object]) -> Iterator[str]:
    found = inspect.signature(inspect.unwrap(method))
    returned = str(found.return_annotation)
    shown = f"({', '.join(_arguments(found))})"
    managed = re.match(r"Iterator\[(.*)\]$", returned)
    call = f"with {name}{shown} as ..." if managed else f"{name}{shown}"
    result = managed[1] if managed else returned
    yield from (f"#### `{name}`", "", "```text", f"{call} -> {result}", "```", "", _prose(inspect.getdoc(method)), "")


def _arguments(signature: inspect.Signature) -> Iterator[str]:
    """Its arguments as they are written; annotations are texts, as every module here has them."""
    is_after_star = False
    for each in signature.parameters.values():
        if each.name == "self":
            continue
        if each.kind is each.KEYWORD_ONLY and not is_after_star:
            is_after_star = True
            yield "*"
        stars = "**" if each.kind is each.VAR_KEYWORD else ""
        default = "" if each.default is each.empty else f" = {json.dumps(each.default)}"
        yield f"{stars}{each.name}: {each.annotation}{default.replace('null', 'None').replace('[]', '()')}"


def _options() -> Iterator[str]:
    """A row for each key of FioOptions, which has a text below it."""
    module = ast.parse((_FIXTURES / "rack" / "own_fio.py").read_text(encoding="utf-8"))
    body = next(node.body for node in module.body if isinstance(node, ast.ClassDef) and node.name == "FioOptions")
    for node, after in itertools.pairwise(body):
        if isinstance(node, ast.AnnAssign) and isinstance(after, ast.Expr):
            name, kind = ast.unparse(node.target), ast.unparse(node.annotation)
            yield f"| `{name}` | `{kind}` | {ast.literal_eval(after.value)} |"


def _pytest_options() -> Iterator[str]:
    for node in ast.walk(ast.parse((_FIXTURES / "plugin.py").read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "addoption":
            given = {keyword.arg: keyword.value for keyword in node.keywords}
            shown = ast.literal_eval(node.args[0])
            if "metavar" in given:
                shown += " " + ast.literal_eval(given["metavar"])
            yield f"| `{shown}` | {ast.literal_eval(given['help'])} |"


def _subject(kind: str) -> str:
    """The rack or drive that a means is for."""
    direct = "a drive that is attached for good"
    return {
        "phy_drop": "a rack with a switch, a drive with a port to itself",
        "slot_power_loss": f"{direct}: NVMe, in a slot with a power switch",
        "link_disable": f"{direct}: NVMe, in any slot",
        "device_off": f"{direct}: in an enclosure",
        "phy_disable": f"{direct}: SAS or SATA, at an HBA with PHYs",
        "hot_unplug": f"{direct}: any other",
    }[kind]


def _listed(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)


def _prose(docstring: str | None) -> str:
    """A docstring as Markdown."""
    text = inspect.cleandoc(docstring or "").replace("``", "`")
    return _ROLE.sub(r"`\1`", text)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
