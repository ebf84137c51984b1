"""Write fixtures/rackloop_fixtures/fault.py: a function for each kind of fault, with its parameters and their types.

``python tools/fault_constructors.py``, in the environment of the tests, after a change to the catalogue of faults.
"""

from __future__ import annotations

import keyword
import shutil
import subprocess
import textwrap
from collections.abc import Iterator
from pathlib import Path

from rackloop.faults import KINDS, FaultKind
from rackloop.parameters import Parameter

ROOT = Path(__file__).resolve().parents[1]
MODULE = ROOT / "fixtures" / "rackloop_fixtures" / "fault.py"
_HEAD = '''\
"""Faults by kind, each with its parameters, as an editor completes them: ``fault.phy_drop("d01", down_s=1)``.

Written by tools/fault_constructors.py from the catalogue of :mod:`rackloop.faults`.
"""

from __future__ import annotations

from typing import Any, Literal

from rackloop.faults import FaultSpec


def _spec(kind: str, target: str, **given: Any) -> FaultSpec:
    """The fault with the parameters that were given."""
    return FaultSpec(kind, target, {name.rstrip("_"): value for name, value in given.items() if value is not None})
'''


def module() -> str:
    """The whole module, formatted as the project's code is."""
    text = _HEAD + "".join("\n".join(["", "", *_function(kind), ""]) for kind in KINDS.values())
    ruff = shutil.which("ruff") or "ruff"
    command = [ruff, "format", "--config", str(ROOT / "pyproject.toml"), "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True, cwd=ROOT).stdout


def _function(kind: FaultKind) -> Iterator[str]:
    required = [_argument(name, each) for name, each in kind.parameters.items() if each.is_required]
    optional = [_argument(name, each) for name, each in kind.parameters.items() if not each.is_required]
    arguments = ["target: str", *(["*"] if kind.parameters else []), *required, *optional]
    nouns = sorted(part.noun for part in kind.targets)
    targets = " or ".join(f"an {noun}" if noun[0] in "aeiou" else f"a {noun}" for noun in nouns)
    yield f"def {kind.name}({', '.join(arguments)}) -> FaultSpec:"
    title, _, more = kind.does.partition("; ")
    yield from _wrapped(f'"""The fault ``{kind.name}``: {title}.')
    yield ""
    yield from _wrapped(f"{more[:1].upper()}{more[1:]}{'. ' if more else ''}Its target is {targets}.")
    for name, each in kind.parameters.items():
        yield from _said(name, each)
    yield '    """'
    given = "".join(f", {_named(name)}={_named(name)}" for name in kind.parameters)
    yield f'    return _spec("{kind.name}", target{given})'


def _said(name: str, each: Parameter) -> Iterator[str]:
    default = "" if each.default is None else f" ({each.shown(each.default)})"
    yield from _wrapped(f"``{_named(name)}``: {each.meaning}{default}.", "    ")


def _wrapped(text: str, indent: str = "") -> list[str]:
    """Lines of a docstring; those after the first are indented by so much more."""
    return textwrap.wrap(text, 120, initial_indent="    ", subsequent_indent=f"    {indent}", break_on_hyphens=False)


def _argument(name: str, each: Parameter) -> str:
    kind = f"Literal{list(each.choices)!r}" if each.choices else each.type.__name__
    return f"{_named(name)}: {kind}" if each.is_required else f"{_named(name)}: {kind} | None = None"


def _named(name: str) -> str:
    """The name of an argument: Python has the word ``with`` for itself."""
    return f"{name}_" if keyword.iskeyword(name) else name


if __name__ == "__main__":
    MODULE.write_text(module(), encoding="utf-8")
