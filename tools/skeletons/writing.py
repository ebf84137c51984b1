"""Writing of skeletons: each is real code under an example's name, renamed when it is written.

Standard library only: tools/new-driver runs before anything is installed.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

_IMPORT = re.compile(r"^(from \S+ import )(\w+(?:, \w+)+)$", re.MULTILINE)


def refuse(message: str) -> NoReturn:
    """End with the one message, as bad input."""
    print(message, file=sys.stderr)
    sys.exit(2)


def camel_case(name: str) -> str:
    """``acme_strip`` as ``AcmeStrip``."""
    return "".join(word.capitalize() for word in name.split("_"))


def renamed(text: str, names: Mapping[str, str]) -> str:
    """``text`` with each name replaced; names that stand in sorted lists are sorted again."""
    for example, name in names.items():
        text = text.replace(example, name)
    return _IMPORT.sub(lambda found: found[1] + _sorted(found[2]), text)


def _sorted(names: str) -> str:
    """As ruff sorts them: constants, then classes, then functions."""
    return ", ".join(sorted(names.split(", "), key=lambda name: (not name.isupper(), name[0].islower(), name)))


def write_new(root: Path, files: Mapping[Path, str]) -> None:
    """Write ``files`` and name them on standard output; ends as bad input, writing none, when one is there already."""
    there = [str(path.relative_to(root)) for path in files if path.exists()]
    if there:
        refuse(f"these files exist already and stay as they are: {', '.join(there)}; choose another name")
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(path.relative_to(root))
