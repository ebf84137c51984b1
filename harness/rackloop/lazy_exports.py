"""Lazy exports of a package: a public name is imported from its private module when it is first asked for.

For packages that much of what uses them wants little of. The names stand once, as imports under ``TYPE_CHECKING``:
type checkers read them there, and so does the package when it is asked for one.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any


def lazy_getattr(package: str, modules: Mapping[str, str] | None = None) -> Callable[[str], Any]:
    """The ``__getattr__`` (PEP 562) of ``package``.

    ``modules`` says which of its modules has each public name, where the package's own source does not.
    """

    def look_up(name: str) -> Any:
        module = (_imports_for_checkers(package) if modules is None else modules).get(name)
        if module is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(module if modules is None else f"{package}.{module}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return look_up


@cache
def _imports_for_checkers(package: str) -> Mapping[str, str]:
    """The module that each name under ``if TYPE_CHECKING:`` of a package comes from."""
    source = Path(str(sys.modules[package].__file__)).read_bytes()
    return {
        alias.name: str(node.module)
        for block in ast.parse(source).body
        if isinstance(block, ast.If)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
