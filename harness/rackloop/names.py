"""Names: what one is, how a message quotes what it found and guesses what was meant."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from zlib import crc32

from rackloop.errors import BadInput

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,31}")
"""The name of a thing in a lab description, and of the lab."""

_LONGEST_QUOTE = 60
_LONGEST_LIST = 12
_LONGEST_FILE = 100
_IS_PLAIN = re.compile(r"[A-Za-z0-9_./-]{1,60}")
_TEST = re.compile(r"[\w./]+(::\w+)*(\[[\w.-]*\w\])?", re.ASCII)


def quoted(text: str) -> str:
    """``text`` in quotes, cut where it is long."""
    return repr(text if len(text) <= _LONGEST_QUOTE else text[: _LONGEST_QUOTE - 3] + "...")


def in_one_line(text: str, longest: int) -> str:
    """``text`` in one line of at most ``longest`` characters."""
    flat = " ".join(text.split())
    return flat if len(flat) <= longest else f"{flat[: longest - 3]}..."


def printable(text: str) -> str:
    """``text`` for a terminal: what would steer it, escape sequences above all, is shown as it is written in Python."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def require_line(what: str, text: str) -> None:
    """Raise BadInput where ``text``, a ``what`` that other users are shown, is no line of at most 500 characters."""
    if printable(text) != text or len(text) > 500:
        raise BadInput(f"the {what} {quoted(text)} is shown to others: give a line of at most 500 characters")


def file_name(text: str) -> str:
    """``text`` as a part of a path: ``fabric-identity`` for ``fabric/identity``. Each test has its own."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-")
    if len(name) <= _LONGEST_FILE and _TEST.fullmatch(text):
        return name
    return f"{name[:_LONGEST_FILE]}-{crc32(text.encode(errors='backslashreplace')):08x}".strip("-")


def kind_of(value: object) -> str:
    """The kind of value found where something else was expected."""
    if isinstance(value, str):
        return quoted(value)
    return "nothing" if value is None else "a mapping" if isinstance(value, dict) else "a list"


def guess(found: str, known: Iterable[str]) -> str:
    """``did you mean 'd01'?`` where a known name is close to ``found``, else the known names."""
    names = sorted(str(name) for name in known)
    # A box whose outlet was left out is meant before another box whose name is as like.
    begun = [name for name in names if name.startswith(f"{found}/")]
    if close := begun[:1] or difflib.get_close_matches(found[:_LONGEST_QUOTE], names, n=1):
        return f"did you mean {quoted(close[0])}?"
    if not names:
        return "there are none"
    shown = ", ".join(name if _IS_PLAIN.fullmatch(name) else quoted(name) for name in names[:_LONGEST_LIST])
    return f"known: {shown}" + (f" and {len(names) - _LONGEST_LIST} more" if len(names) > _LONGEST_LIST else "")
