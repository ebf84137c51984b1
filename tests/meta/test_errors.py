"""The errors of all source roots: one tree, and its drawing in the reference."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path

from rackloop.errors import RackloopError
from tests.meta.tree import ROOT, files, parsed, project

PACKAGES = [ROOT / folder for folder in project()["tool"]["hatch"]["build"]["targets"]["wheel"]["only-include"]]
SOURCES = [path for path in files(".py") if any(path.is_relative_to(package) for package in PACKAGES)]
PAGE = ROOT / "docs" / "reference" / "errors.md"


def dotted(path: Path) -> str:
    """The dotted name of a file's module, or of the package that a private module belongs to."""
    package = next(package for package in PACKAGES if path.is_relative_to(package))
    parts = path.relative_to(package.parent).with_suffix("").parts
    return ".".join(part for part in parts if not part.startswith("_"))


def children() -> Mapping[str, Sequence[tuple[str, str]]]:
    """By the name of each class, its subclasses: name and module."""
    found = defaultdict(list)
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                for base in node.bases:
                    found[ast.unparse(base).rpartition(".")[2]].append((node.name, dotted(path)))
    return found


def drawing(below: Mapping[str, Sequence[tuple[str, str]]], name: str, indent: str = "") -> Iterator[str]:
    """The lines of the tree below ``name``."""
    its = sorted(below[name])
    for number, (child, module) in enumerate(its, start=1):
        branch, bar = ("└── ", "    ") if number == len(its) else ("├── ", "│   ")
        yield f"{indent}{branch}{child}".ljust(40) + ".".join(module.split(".")[:2])
        yield from drawing(below, child, indent + bar)


def test_the_reference_draws_the_tree_of_errors() -> None:
    drawn = "\n".join(["RackloopError".ljust(40) + "rackloop.errors", *drawing(children(), "RackloopError")])
    assert f"```text\n{drawn}\n```" in PAGE.read_text(encoding="utf-8"), f"the tree is now\n{drawn}"


def test_an_error_that_a_package_gives_out_is_in_the_tree() -> None:
    outside = []
    for init in (path for path in SOURCES if path.name == "__init__.py"):
        package = import_module(dotted(init.parent / "_"))
        imports = [node for node in ast.walk(parsed(init)) if isinstance(node, ast.ImportFrom)]
        for name in (alias.asname for node in imports for alias in node.names if alias.asname):
            found = getattr(package, name)
            if isinstance(found, type) and issubclass(found, Exception) and not issubclass(found, RackloopError):
                outside.append(f"{package.__name__}.{name}")
    assert outside == []
