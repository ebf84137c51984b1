"""The source tree, its files and pyproject.toml, as meta tests read them."""

from __future__ import annotations

import ast
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


MADE = frozenset({"__pycache__", "dist", "node_modules", "out", "runs", "target"})


def _walk(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.is_file():
            yield path
        elif path.is_dir() and path.name not in MADE and (path.name == ".ci" or not path.name.startswith(".")):
            yield from _walk(path)


@cache
def files(*endings: str) -> tuple[Path, ...]:
    """The files written by hand whose names have one of these endings; generated folders are left out."""
    return tuple(path for path in _walk(ROOT) if path.name.endswith(endings))


@cache
def project() -> dict[str, Any]:
    """pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


@cache
def parsed(path: Path) -> ast.Module:
    """The syntax tree of a Python file."""
    return ast.parse(path.read_text(encoding="utf-8"))


def shown(path: Path) -> str:
    """``path`` relative to the checkout, or the file name of one outside it."""
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else path.name


def beyond(
    listed: Mapping[str, tuple[int, str]], found: Iterable[tuple[Path, int]], advice: str, wrong: str
) -> Iterator[str]:
    """Places, each a file and a line, beyond those ``listed``, and entries of the list that have become too large.

    The list has a number and a reason by the file. ``wrong`` says of an entry that it has another number of places,
    with ``{name}``, ``{found}`` and ``{most}``.
    """
    lines: dict[str, list[int]] = defaultdict(list)
    for path, line in found:
        lines[shown(path)].append(line)
    for name in sorted(lines.keys() | listed.keys()):
        its, most = lines[name], listed.get(name, (0, ""))[0]
        if len(its) > most:
            yield from (f"{name}:{line}: {advice}" for line in its)
        if len(its) < most:
            yield f"{wrong.format(name=name, found=len(its), most=most)}: correct the list"


def check(offenders: Iterable[str]) -> None:
    """Fail with all offenders, one a line: where, what and what to do."""
    found = list(offenders)
    assert not found, f"{len(found)} offenders:\n" + "\n".join(found)
