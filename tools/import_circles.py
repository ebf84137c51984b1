"""Circles of imports between the modules of Rackloop's packages, type-only imports counted.

    python tools/import_circles.py

A name that a package passes on counts as an import of the module which defines it. Prints each circle and ends with
status 1 where there is one.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("harness", "oracles", "traces", "drivers", "labs", "models", "fixtures", "reports", "tools")

Graph = Mapping[str, frozenset[str]]


def main() -> None:
    """Print the circles."""
    found = circles(imports(ROOT))
    for circle in found:
        print(f"{len(circle)} modules: {', '.join(circle)}")
    print(f"{len(found)} circles")
    sys.exit(bool(found))


def imports(root: Path) -> Graph:
    """The modules that each module of the packages below ``root`` imports, in functions and for types too."""
    trees = {
        name: (path, ast.parse(path.read_text(encoding="utf-8")))
        for folder in FOLDERS
        for path in sorted((root / folder).glob("rackloop*/**/*.py"))
        for name in [_module(path.relative_to(root / folder))]
    }
    packages = {name: tree for name, (path, tree) in trees.items() if path.name == "__init__.py"}
    return {
        name: frozenset(_imported(tree, trees.keys(), packages)) - {name}
        for name, (_, tree) in trees.items()
        if name not in packages
    }


def circles(graph: Graph) -> list[list[str]]:
    """The sets of modules that each reach all others of the set, the largest first (Tarjan, 1972)."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    open_modules: list[str] = []
    found: list[list[str]] = []

    def visit(module: str) -> None:
        order[module] = lowest[module] = len(order)
        open_modules.append(module)
        for imported in sorted(graph.get(module, ())):
            if imported not in order:
                visit(imported)
                lowest[module] = min(lowest[module], lowest[imported])
            elif imported in open_modules:
                lowest[module] = min(lowest[module], order[imported])
        if lowest[module] == order[module]:
            first = open_modules.index(module)
            if len(open_modules) - first > 1:
                found.append(sorted(open_modules[first:]))
            del open_modules[first:]

    for module in sorted(graph):
        if module not in order:
            visit(module)
    return sorted(found, key=len, reverse=True)


def _module(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imported(tree: ast.Module, modules: Collection[str], packages: Mapping[str, ast.Module]) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str(module), level=0):
                for alias in node.names:
                    yield from _home(module, alias.name, modules, packages)
            case ast.Import():
                yield from (alias.name for alias in node.names if alias.name in modules)


def _home(module: str, name: str, modules: Collection[str], packages: Mapping[str, ast.Module]) -> Iterator[str]:
    """The module that ``from module import name`` needs, where it is one of ours."""
    if f"{module}.{name}" in modules:
        if f"{module}.{name}" not in packages:
            yield f"{module}.{name}"
    elif module in packages:
        for node in ast.walk(packages[module]):
            if isinstance(node, ast.ImportFrom) and any((a.asname or a.name) == name for a in node.names):
                original = next(a.name for a in node.names if (a.asname or a.name) == name)
                yield from _home(node.module or "", original, modules, packages)
    elif module in modules:
        yield module


if __name__ == "__main__":
    main()
