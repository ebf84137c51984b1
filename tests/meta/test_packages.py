"""Packages: their doors, and the places where each has to be named."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from import_circles import circles, imports
from tests.meta.tree import ROOT, files, project, shown

WHEEL = project()["tool"]["hatch"]["build"]["targets"]["wheel"]["only-include"]
PACKAGES = [ROOT / folder for folder in WHEEL if (ROOT / folder / "py.typed").is_file()]
NAMES = {package.name for package in PACKAGES}
INITS = [path for package in PACKAGES for path in sorted(package.rglob("__init__.py"))]


def door(path: Path) -> tuple[set[str], list[str] | None]:
    """The public names that a package's ``__init__.py`` makes, and its ``__all__``.

    A door that opens late (``rackloop.lazy_exports``) makes what it promises the type checker.
    """
    body = ast.parse(path.read_text(encoding="utf-8")).body
    if any(isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__getattr__" for node in body):
        promises = [node for node in body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
        making = [promise for node in promises for promise in node.body]
    else:
        making = body
    names: set[str] = set()
    for node in making:
        match node:
            case ast.ImportFrom(module="__future__"):
                continue
            case ast.ImportFrom() | ast.Import():
                names |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
            case ast.FunctionDef() | ast.ClassDef():
                names.add(node.name)
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
    exported = [
        node.value for node in body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    ]
    return {name for name in names if not name.startswith("_")}, ast.literal_eval(exported[0]) if exported else None


@pytest.mark.parametrize("path", INITS, ids=shown)
def test_the_door_of_a_package_is_complete(path: Path) -> None:
    names, exported = door(path)
    if exported is None:
        assert not names, f"{shown(path)} makes {sorted(names)} and has no __all__"
    else:
        assert set(exported) == names  # that it is sorted is ruff's to say (RUF022)
        assert len(exported) == len(names)
        package = import_module(".".join(path.relative_to(ROOT).parent.parts[1:]))
        assert all(hasattr(package, name) for name in exported)


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
    # What several kinds read servers with is a kind of its own no more than rackd.py is.
    assert apart == kinds - {"rackloop_drivers.host_tools"}


def imported(path: Path) -> Iterator[str]:
    """The top-level packages that a module imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.split(".")[0]


def canonical(requirement: str) -> str:
    """The normal form of the name that a requirement begins with."""
    return re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", requirement)[0]).lower()


@pytest.mark.parametrize("package", PACKAGES, ids=shown)
def test_what_is_imported_is_required(package: Path) -> None:
    extras = project()["project"].get("optional-dependencies", {})
    shipped = [required for extra, names in extras.items() if extra != "dev" for required in names]
    required = {canonical(name) for name in [*project()["project"]["dependencies"], *shipped]}
    owners = packages_distributions()
    missing = {
        f"{shown(path)} imports {name}"
        for path in package.rglob("*.py")
        for name in imported(path)
        if name not in sys.stdlib_module_names
        and name not in NAMES | {"rackloop_native"}
        and not required & {canonical(owner) for owner in owners.get(name, [name])}
    }
    assert not missing, "in pyproject.toml these are no dependencies: " + "; ".join(sorted(missing))


def test_no_package_imports_a_private_module_of_another() -> None:
    offenders = [
        f"{shown(path)}:{node.lineno}: {node.module}"
        for package in PACKAGES
        for path in sorted(package.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in NAMES
        if not _may_import(path.relative_to(package.parent), node.module.split("."))
    ]
    assert offenders == []


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
