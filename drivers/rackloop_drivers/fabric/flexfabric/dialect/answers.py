"""The kinds of answer the switch gives: each writes a value as text and reads it back.

Reading raises ``ValueError`` where the text cannot be such an answer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

from rackloop.abilities import BoxIdentity, PortState
from rackloop.portmap import PortMap
from rackloop_drivers.fabric.flexfabric.dialect.scpi_errors import QueuedError

_MOST_DIGITS = 20
_ERROR = re.compile(r'(-?[0-9]{1,5}),"([^"]*)"')
_PAIRS = re.compile(r"\(@((?:[0-9]{1,5}![0-9]{1,5}(?:,|(?=\))))*)\)")
_VERSION = re.compile(r"[0-9]{4}\.[0-9]+")
_FIELDS = re.compile(r'(?:[^;"]|"[^"]*")+')


class Answer(Protocol):
    """One kind of answer. ``read`` and ``write`` undo each other."""

    def read(self, text: str) -> Any:
        """The value of a text; raises ValueError for any other."""
        ...

    def write(self, value: Any) -> str:
        """The text of a value."""
        ...


def split_fields(line: str) -> list[str]:
    """The answers of a line that held several queries: parted by semicolons, except inside quotes."""
    return _FIELDS.findall(line) if '"' in line else line.split(";")


def read_integer(text: str) -> int:
    """A decimal whole number that is not negative, and nothing around it."""
    if not (text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS):
        raise ValueError(f"{text!r} is no whole number")
    return int(text)


# The same few circuits are joined again and again, and most errors are none.
@lru_cache(maxsize=256)
def _read_pairs(text: str) -> PortMap:
    match = _PAIRS.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no pair list")
    pairs = (pair.split("!") for pair in match[1].split(",") if pair)
    return PortMap.of((int(low), int(high)) for low, high in pairs)


@lru_cache(maxsize=64)
def _read_error(text: str) -> QueuedError:
    match = _ERROR.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no entry of an error queue")
    return QueuedError(int(match[1]), match[2])


@dataclass(frozen=True)
class _Integer:
    def read(self, text: str) -> int:
        return read_integer(text)

    def write(self, value: int) -> str:
        return str(value)


@dataclass(frozen=True)
class _Integers:
    def read(self, text: str) -> tuple[int, ...]:
        return tuple(read_integer(part) for part in text.split(",")) if text else ()

    def write(self, value: tuple[int, ...]) -> str:
        return ",".join(map(str, value))


@dataclass(frozen=True)
class _States:
    def read(self, text: str) -> tuple[PortState, ...]:
        return tuple(PortState(part) for part in text.split(",")) if text else ()

    def write(self, value: tuple[PortState, ...]) -> str:
        return ",".join(value)


@dataclass(frozen=True)
class _Pairs:
    def read(self, text: str) -> PortMap:
        return _read_pairs(text)

    def write(self, value: PortMap) -> str:
        return f"(@{value.canonical_text()})"


@dataclass(frozen=True)
class _Identity:
    def read(self, text: str) -> BoxIdentity:
        parts = text.split(",")
        if len(parts) != 4 or not all(parts):
            raise ValueError(f"{text!r} is no identification of four fields")
        return BoxIdentity(*parts)

    def write(self, value: BoxIdentity) -> str:
        return f"{value.vendor},{value.model},{value.serial},{value.firmware}"


@dataclass(frozen=True)
class _Error:
    def read(self, text: str) -> QueuedError:
        return _read_error(text)

    def write(self, value: QueuedError) -> str:
        return f'{value.number},"{value.text}"'


@dataclass(frozen=True)
class _Version:
    def read(self, text: str) -> str:
        if _VERSION.fullmatch(text) is None:
            raise ValueError(f"{text!r} is no SCPI version")
        return text

    def write(self, value: str) -> str:
        return value


INTEGER: Answer = _Integer()
INTEGERS: Answer = _Integers()
STATES: Answer = _States()
PAIRS: Answer = _Pairs()
IDENTITY: Answer = _Identity()
ERROR: Answer = _Error()
VERSION: Answer = _Version()
