"""The report of a run of ``smartctl``, as text and as the JSON document of smartctl 7.3."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntFlag
from typing import Any

INFORMATION = "=== START OF INFORMATION SECTION ==="

_SIZES = " KMGTP"


class Found(IntFlag):
    """The bits of smartctl's exit status that a drive can set (``smartctl(8)``, Exit Status)."""

    NOTHING = 0
    BAD_COMMAND_LINE = 1
    OPEN_FAILED = 2
    COMMAND_FAILED = 4
    FAILING = 8
    PREFAIL_BELOW_THRESHOLD = 16
    ERRORS_LOGGED = 64


@dataclass
class Report:
    """The sections that were asked for (``wanted``), and what has been found so far."""

    wanted: Collection[str]
    now: datetime
    lines: list[str] = field(default_factory=list)
    document: dict[str, Any] = field(default_factory=dict)
    found: Found = Found.NOTHING

    def say(self, *lines: str) -> None:
        """Add lines of text."""
        self.lines += lines

    def wants(self, *sections: str) -> bool:
        """Whether one of these sections was asked for."""
        return not set(sections).isdisjoint(self.wanted)

    def give(self, **fields: Any) -> None:
        """Add fields to the document; an object that is there already is added to."""
        for name, value in fields.items():
            if isinstance(value, dict) and name in self.document:
                self.document[name] |= value
            else:
                self.document[name] = value

    @property
    def local_time(self) -> str:
        """The server's time as ``asctime`` and its zone."""
        return asctime(self.now)


def asctime(now: datetime) -> str:
    """A time as C writes it, and UTC, which is the zone of mock servers."""
    return f"{now:%a %b} {now.day:2} {now:%H:%M:%S %Y} UTC"


def capacity(size_bytes: int) -> str:
    """A size in three digits, cut off and not rounded, as smartctl has it: ``8.58 GB``."""
    power = min((len(str(size_bytes)) - 1) // 3, len(_SIZES) - 1)
    unit = 1000**power
    whole, rest = divmod(size_bytes, unit)
    if power == 0:
        return f"{whole} B"
    decimals = max(0, 3 - len(str(whole)))
    fraction = f".{rest * 10**decimals // unit:0{decimals}}" if decimals else ""
    return f"{whole}{fraction} {_SIZES[power]}B"
