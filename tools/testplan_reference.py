"""Write docs/reference/test-plans.md: the tests that are shipped, their parameters and what they measure.

``python tools/testplan_reference.py``, in the environment of the tests, after a change to what a test file declares.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from rackloop.parameters import Parameter, declared_by
from rackloop.plan import files_by_name, read_declared

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference" / "test-plans.md"
_HEAD = """\
# Test plans

<!-- Written by tools/testplan_reference.py from what the test files declare. -->

The tests that are shipped, by the names that a plan selects them by. What they take is given in a plan by `with:`, or
from outside by `--set NAME=VALUE`; a list is written `[a, b]` in a plan and `a,b` with `--set`. A value outside of
what is allowed here is refused before anything is touched: as `file:line:column` in a plan, as the `--set` that said
it, with exit status 2. So are values that do not go together, such as a stripe of more than 255 units.
"""


def page() -> str:
    """The whole page."""
    files = files_by_name(ROOT / "testplans")
    return _HEAD + "".join(f"{line}\n" for name, path in files.items() for line in _section(name, path))


def _section(name: str, path: Path) -> Iterator[str]:
    declared = read_declared(path)
    about = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    yield from ("", f"## {name}", "", " ".join(about.split()), "")
    yield "| parameter | default | allowed | meaning |"
    yield "|---|---|---|---|"
    yield from (_row(parameter, declared_by(raw)) for parameter, raw in declared.parameters.items())
    measured = ", ".join(f"`{measure}` ({unit})" for measure, unit in declared.measures.items())
    headlines = [f"`{measure}`" for measure in declared.headlines]
    shown = f" The summary of a run shows {' and '.join(headlines)}." if headlines else ""
    yield from ("", f"It measures {measured}.{shown}")


def _row(name: str, parameter: Parameter) -> str:
    values = parameter.default if parameter.is_list else [parameter.default]
    default = ", ".join(parameter.shown(value) for value in values)
    default, each = (f"[{default}]", "each of the list ") if parameter.is_list else (default, "")
    return f"| `{name}` | `{default}` | {each}{parameter.expected} | {parameter.meaning} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
