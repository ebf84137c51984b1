"""Circles of imports between the modules of each Rust crate.

    python tools/rust_circles.py

A name that a module re-exports counts as an import of the module which defines it. Code under ``#[cfg(test)]`` is not
counted. Prints each circle and ends with status 1 where there is one that ``ALLOWED`` does not name.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import tree_sitter_rust
from tree_sitter import Language, Node, Parser

from import_circles import ROOT, Graph, circles

PARSER = Parser(Language(tree_sitter_rust.language()))

# One conversation over a request that has to wait: its I/O path submits it to a drive, the drive's queue holds it with
# the path to return to, and the mover or the flusher ends it. Each type holds the next one.
ALLOWED = [
    [
        "rackd::drive",
        "rackd::flusher",
        "rackd::io_path",
        "rackd::io_path::mover",
    ]
]

Names = tuple[str, ...]


@dataclass(frozen=True)
class Module:
    """A file's imports by the name they get, the paths its code spells out, and the names its code uses."""

    passed_on: Mapping[str, Names]
    imported: Mapping[str, Names]
    paths: frozenset[Names]
    used: frozenset[str]
    test_modules: frozenset[str]


def main() -> None:
    """Print the circles."""
    found = circles(imports(ROOT))
    for circle in found:
        print(f"{len(circle)} modules: {', '.join(circle)}{' (allowed)' if circle in ALLOWED else ''}")
    print(f"{len(found)} circles")
    sys.exit(any(circle not in ALLOWED for circle in found))


def imports(root: Path) -> Graph:
    """The modules that each module of the crates below ``root`` uses, by names that begin with their crate's."""
    graph: dict[str, frozenset[str]] = {}
    for crate in sorted((root / "native" / "crates").iterdir()):
        modules = _modules(crate / "src")
        for path, module in modules.items():
            found = {_home(modules, path, names) for names in _wanted(modules, path, module)}
            graph["::".join((crate.name, *path))] = frozenset(
                "::".join((crate.name, *home)) for home in found if home is not None and home != path
            )
    return graph


def _modules(source: Path) -> dict[Names, Module]:
    modules = {}
    for path in sorted(source.rglob("*.rs")):
        names = path.relative_to(source).with_suffix("").parts
        if names == ("main",) and (source / "lib.rs").exists():
            continue  # The program over a library: a crate of its own.
        names = names[:-1] if names[-1] in ("mod", "lib", "main") else names
        modules[names] = _read(PARSER.parse(path.read_bytes()).root_node)
    tests = {(*path, name) for path, module in modules.items() for name in module.test_modules}
    return {path: module for path, module in modules.items() if path not in tests}


def _read(file: Node) -> Module:
    passed_on: dict[str, Names] = {}
    imported: dict[str, Names] = {}
    paths: set[Names] = set()
    leaves: list[str] = []
    test_modules: set[str] = set()

    def visit(node: Node, *, is_inline: bool = False) -> None:
        parent = "self" if is_inline else "super"  # What a module in braces calls its parent is the file.
        is_test = False
        for child in node.children:
            if child.type == "attribute_item":
                is_test = is_test or _text(child) == "#[cfg(test)]"
                continue
            if child.type in ("line_comment", "block_comment"):
                continue
            if is_test:
                name = child.child_by_field_name("name")
                test_modules.update([_text(name)] if child.type == "mod_item" and name else [])
            elif child.type == "use_declaration":
                is_public = any(part.type == "visibility_modifier" for part in child.children)
                argument = child.child_by_field_name("argument")
                uses = dict(_uses(argument, ()) if argument else ())
                if is_inline:
                    paths.update(tuple(parent if part == "super" else part for part in path) for path in uses.values())
                else:
                    (passed_on if is_public else imported).update(uses)
            elif child.children:
                visit(child, is_inline=is_inline or child.type == "mod_item")
            else:
                leaves.append(parent if child.type == "super" else _text(child))
            is_test = False

    visit(file)
    return Module(
        passed_on, imported, frozenset(paths.union(_paths(leaves))), frozenset(leaves), frozenset(test_modules)
    )


def _text(node: Node) -> str:
    return (node.text or b"").decode()


def _uses(node: Node, before: Names) -> Iterator[tuple[str, Names]]:
    """Each name that a ``use`` brings and the path it stands for; a glob brings ``*``."""
    match node.type:
        case "use_list":
            for child in node.named_children:
                yield from _uses(child, before)
        case "scoped_use_list":
            path, names = node.child_by_field_name("path"), node.child_by_field_name("list")
            if names:
                yield from _uses(names, (*before, *(_text(path).split("::") if path else ())))
        case "use_as_clause":
            path, alias = node.child_by_field_name("path"), node.child_by_field_name("alias")
            if path and alias:
                yield _text(alias), (*before, *_text(path).split("::"))
        case "use_wildcard":
            yield "*", (*before, *_text(node).removesuffix("::*").split("::"))
        case _:
            names_of = (*before, *(part for part in _text(node).split("::") if part != "self"))
            yield names_of[-1], names_of


def _paths(leaves: list[str]) -> Iterator[Names]:
    """The paths ``a::b::c`` in code, in the arguments of macros too."""
    path: list[str] = []
    for leaf in [*leaves, ";"]:
        if leaf == "::" or not path or path[-1] == "::":
            path.append(leaf)
            continue
        if len(path) > 1:
            yield tuple(name for name in path if name != "::")
        path = [leaf]


def _wanted(modules: Mapping[Names, Module], path: Names, module: Module) -> Iterator[Names]:
    yield from module.imported.values()
    yield from (names for name, names in module.passed_on.items() if name in module.used)
    for names in module.paths:
        if names[0] in ("crate", "super", "self") or (*path, names[0]) in modules:
            yield names


def _home(modules: Mapping[Names, Module], path: Names, names: Names) -> Names | None:
    """The module that defines what ``names`` stands for in the module at ``path``, where it is this crate's."""
    if (*path, names[0]) in modules:
        return _inside(modules, path, names)
    if names[0] not in ("crate", "super", "self"):
        return None
    for place, name in enumerate(names):
        match name:
            case "crate":
                path = ()
            case "super":
                path = path[:-1]
            case "self":
                pass
            case _:
                return _inside(modules, path, names[place:])
    return path


def _inside(modules: Mapping[Names, Module], path: Names, names: Names) -> Names:
    """The module that defines what ``names`` stands for in a module that is known to hold it."""
    if not names:
        return path
    if (*path, names[0]) in modules:
        return _inside(modules, (*path, names[0]), names[1:])
    brought = {**modules[path].imported, **modules[path].passed_on}.get(names[0])
    return (_home(modules, path, brought) if brought else None) or path


if __name__ == "__main__":
    main()
