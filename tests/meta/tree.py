"""The source tree as the meta-tests read it."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
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
    """The files that people write, whose names end so; nothing that a program makes."""
    return tuple(path for path in _walk(ROOT) if path.name.endswith(endings))


@cache
def project() -> dict[str, Any]:
    """pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def shown(path: Path) -> str:
    """``path`` as a test's id."""
    return str(path.relative_to(ROOT))
