"""Packages: their exports, imports and requirements, and the places that name each."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from importlib import import_module
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from import_circles import circles, imports
from tests.meta.tree import ROOT, check, files, parsed, project, shown

WHEEL = project()["tool"]["hatch"]["build"]["targets"]["wheel"]["only-include"]
PACKAGES = [ROOT / folder for folder in WHEEL if (ROOT / folder / "py.typed").is_file()]
NAMES = {package.name for package in PACKAGES}
INITS = [path for package in PACKAGES for path in sorted(package.rglob("__init__.py"))]


def exports(path: Path) -> tuple[set[str], set[str]]:
    """The public names that a package's ``__init__.py`` makes, and those it imports without exporting them.

    With lazy exports (``rackloop.lazy_exports``) these are the names in its ``TYPE_CHECKING`` block.
    """
    body = parsed(path).body
    if any(isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__getattr__" for node in body):
        promises = [node for node in body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
        making = [promise for node in promises for promise in node.body]
    else:
        making = body
    names: set[str] = set()
    hidden: set[str] = set()
    for node in making:
        match node:
            case ast.ImportFrom(module="__future__"):
                continue
            case ast.ImportFrom() | ast.Import():
                names |= {alias.asname or alias.name.split(".")[0] for alias in node.names}
                hidden |= {alias.name for alias in node.names if alias.asname is None}
            case ast.FunctionDef() | ast.ClassDef():
                names.add(node.name)
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
    return {name for name in names if not name.startswith("_")}, hidden


def hidden_exports(inits: Iterable[Path]) -> Iterator[str]:
    """Names that a package imports and does not export: to type checkers they are its own affair."""
    for path in inits:
        if hidden := exports(path)[1]:
            yield f"{shown(path)}: {sorted(hidden)}: a package exports what it imports, as in import Rack as Rack"


def missing_exports(inits: Iterable[Path]) -> Iterator[str]:
    """Public names that the imported package does not have."""
    for path in inits:
        package = import_module(".".join(path.relative_to(ROOT).parent.parts[1:]))
        if missing := sorted(name for name in exports(path)[0] if not hasattr(package, name)):
            yield f"{shown(path)}: importing the package does not make {missing}"


def test_packages_export_their_public_names() -> None:
    check(hidden_exports(INITS))
    check(missing_exports(INITS))


@pytest.mark.parametrize(
    "text",
    [
        "from rack import Rack\n",
        "from rack import Rack as Rack\nfrom rack import Drive\n",
        "if TYPE_CHECKING:\n    from rack import Rack\n__getattr__ = lazy_getattr(__name__)\n",
    ],
)
def test_a_hidden_export_is_found(tmp_path: Path, text: str) -> None:
    init = tmp_path / "__init__.py"
    init.write_text(text)
    assert len(list(hidden_exports([init]))) == 1


def test_every_package_is_typed_and_named_everywhere() -> None:
    tool = project()["tool"]
    found = {path.parent.name for path in files("__init__.py") if path.parent.name.startswith("rackloop")}
    found.discard("rackloop_native")  # the other wheel's
    assert found == NAMES
    assert set(tool["importlinter"]["root_packages"]) == NAMES
    layers = next(contract for contract in tool["importlinter"]["contracts"] if contract["type"] == "layers")
    assert {name.strip() for layer in layers["layers"] for name in layer.split("|")} == NAMES
    roots = {package.parent.name for package in PACKAGES}
    assert set(tool["hatch"]["build"]["dev-mode-dirs"]) == roots
    assert roots <= set(tool["mypy"]["mypy_path"])
    assert roots <= set(tool["mypy"]["files"])


def test_every_kind_of_driver_is_kept_apart() -> None:
    kinds = {
        f"rackloop_drivers.{init.parent.name}" for init in (ROOT / "drivers/rackloop_drivers").glob("*/__init__.py")
    }
    contracts = project()["tool"]["importlinter"]["contracts"]
    apart = next(
        set(contract["modules"]) for contract in contracts if contract["name"].startswith("Drivers of different")
    )
    # Parts that several kinds share are no kind of their own.
    shared = {f"rackloop_drivers.{name}" for name in ("block_io", "boxes", "host_tools", "rackd")}
    assert apart == kinds - shared


def imported(path: Path) -> Iterator[str]:
    """The top-level packages that a module imports, wherever in it."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.split(".")[0]


def canonical(requirement: str) -> str:
    """The normal form of the name that a requirement begins with."""
    return re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", requirement)[0]).lower()


def unrequired_imports(paths: Iterable[Path], required: set[str]) -> Iterator[str]:
    """Imports of what is neither Python's, nor ours, nor of a required distribution."""
    owners = packages_distributions()
    for path in paths:
        for name in sorted(set(imported(path)) - sys.stdlib_module_names - NAMES - {"rackloop_native"}):
            if not required & {canonical(owner) for owner in owners.get(name, [name])}:
                yield f"{shown(path)}: imports {name}: add it to the dependencies in pyproject.toml"


def private_imports(folders: Iterable[Path], names: set[str]) -> Iterator[str]:
    """Imports of another package's private module."""
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            for number, module in modules_of(path):
                if module[0] in names and not _may_import(path.relative_to(folder.parent), module):
                    yield f"{shown(path)}:{number}: {'.'.join(module)}: import it from the package, not its module"


def modules_of(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The modules that a file imports from, as line number and parts of the name."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.lineno, node.module.split(".")


def test_what_is_imported_is_required() -> None:
    extras = project()["project"].get("optional-dependencies", {})
    shipped = [required for extra, names in extras.items() if extra != "dev" for required in names]
    required = {canonical(name) for name in [*project()["project"]["dependencies"], *shipped]}
    check(unrequired_imports((path for package in PACKAGES for path in sorted(package.rglob("*.py"))), required))


def test_an_unrequired_import_is_found(tmp_path: Path) -> None:
    path = tmp_path / "plot.py"
    path.write_text("import os\nimport numpy.linalg\ndef draw():\n    from no_such_package import x\n")
    assert [found.split(": ")[1] for found in unrequired_imports([path], {"numpy"})] == ["imports no_such_package"]


def absent_names(paths: Iterable[Path], inits: Iterable[Path]) -> Iterator[str]:
    """Imports of names that a package does not have; behind a lazy ``__getattr__`` mypy takes any name to be there."""
    known: dict[str, set[str]] = {}
    for init in inits:
        package = init.parent
        beside = {path.stem for path in package.glob("*.py")} | {path.name for path in package.iterdir()}
        root = next(folder for folder in package.parents if not (folder / "__init__.py").exists())
        known[".".join(package.relative_to(root).parts)] = exports(init)[0] | beside
    for path in paths:
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ImportFrom) and node.module in known:
                for name in sorted({alias.name for alias in node.names} - known[node.module]):
                    if not name.startswith("__"):
                        yield f"{shown(path)}:{node.lineno}: {node.module} has no {name}"


def test_imported_names_exist() -> None:
    check(absent_names(files(".py"), INITS))


def test_an_absent_name_is_found(tmp_path: Path) -> None:
    package = tmp_path / "rackloop" / "lab"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").touch()
    lazily = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from rackloop.lab._rack import Rack\n"
    (package / "__init__.py").write_text(f"{lazily}__getattr__ = lazy_getattr(__name__)\n")
    user = tmp_path / "user.py"
    user.write_text("from rackloop.lab import Rack, yaml, Shelf\n")
    (package / "yaml").mkdir()
    found = list(absent_names([user], [package / "__init__.py"]))
    assert [told.split(": ", 1)[1] for told in found] == ["rackloop.lab has no Shelf"]


def test_no_package_imports_a_private_module_of_another() -> None:
    check(private_imports(PACKAGES, NAMES))


def test_a_private_import_is_found(tmp_path: Path) -> None:
    package = tmp_path / "harness" / "rackloop"
    for name in ("lab", "plan"):
        (package / name).mkdir(parents=True)
    (package / "lab" / "__init__.py").write_text("from rackloop.lab._rack import Rack\n")
    (package / "plan" / "plan.py").write_text("import os\nfrom rackloop.lab._rack import Rack\n")
    assert [found.split(": ")[:2] for found in private_imports([package], {"rackloop"})] == [
        ["plan.py:2", "rackloop.lab._rack"]
    ]


def _may_import(importer: Path, module: list[str]) -> bool:
    private = next((place for place, part in enumerate(module) if part.startswith("_")), None)
    return private is None or importer.parts[:private] == tuple(module[:private])


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert circles(imports(ROOT)) == []


def test_a_circle_of_imports_is_found(tmp_path: Path) -> None:
    package = tmp_path / "harness" / "rackloop"
    (package / "lab").mkdir(parents=True)
    (package / "lab" / "__init__.py").write_text("from rackloop.lab._rack import Rack")
    (package / "lab" / "_rack.py").write_text("def read():\n    from rackloop.plan import Plan\n")
    (package / "plan.py").write_text("if TYPE_CHECKING:\n    from rackloop.lab import Rack\n")
    (package / "clock.py").write_text("import time")
    assert circles(imports(tmp_path)) == [["rackloop.lab._rack", "rackloop.plan"]]
