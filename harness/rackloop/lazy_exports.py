"""Lazy exports: a package imports a public name from its private module when the name is first asked for.

For packages whose users want few of their names at a time. The imports under ``TYPE_CHECKING`` in the package's
``__init__``, one a line, say where each name is defined, to type checkers and to this module alike.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

# One a line, as they are written under an if; at a start, to parse a dozen packages would take ten times as long.
_EXPORT = re.compile(r"^    from (\S+) import (\w+) as \2$", re.MULTILINE)


def lazy_getattr(package: str) -> Callable[[str], Any]:
    """The ``__getattr__`` (PEP 562) of ``package``."""

    def look_up(name: str) -> Any:
        home = None if name.startswith("__") else _homes(package).get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(home), name)
        setattr(sys.modules[package], name, value)
        return value

    return look_up


@cache
def _homes(package: str) -> dict[str, str]:
    """The module of each name that ``package`` imports under ``TYPE_CHECKING``."""
    source = Path(str(sys.modules[package].__file__)).read_text(encoding="utf-8")
    return {name: module for module, name in _EXPORT.findall(source)}
