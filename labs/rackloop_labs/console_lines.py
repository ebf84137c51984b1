"""Lines of a console on the harness's clock."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import IO

from rackloop.abilities import Heard
from rackloop.clock import Clock

_LONGEST = 4096
# A string, as of a window's title, ends with a bell or ST (ECMA-48); what stands in it is no text.
_ESCAPES = re.compile(r"\x1b(?:[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|\[[0-?]*[ -/]*[@-~]|[()][0-9A-Za-z]|[@-Z\\-_=>78c])")
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_REDACTED = "***"


@dataclass(frozen=True)
class ConsoleLine:
    """A line, and the moment when its first character was sent, right to ``error_ns``.

    One that ``is_remark`` is of the harness: that it listens, that it does not, and why.
    """

    at_ns: int
    error_ns: int
    text: str
    is_remark: bool = False


class LineAssembler:
    """Makes lines of bytes. Colours and other terminal controls are left out, and ``secrets`` are covered up."""

    def __init__(self, secrets: Sequence[str] = ()) -> None:
        self._secrets = secrets
        self._data = bytearray()
        self._first: Heard | None = None

    def feed(self, heard: Heard) -> Iterator[ConsoleLine]:
        """The lines that ``heard`` completes."""
        for piece in heard.data.splitlines(keepends=True) if heard.data else ():
            if self._first is None:
                self._first = heard
            self._data += piece
            if piece.endswith(b"\n") or len(self._data) >= _LONGEST:
                yield from self.flush()

    def flush(self) -> Iterator[ConsoleLine]:
        """Give up waiting for the end of a line, and return the part of it that is there."""
        first, self._first = self._first, None
        text = self._clean(bytes(self._data))
        self._data.clear()
        if first is not None:
            half = (first.until_ns - first.since_ns) // 2
            yield ConsoleLine(first.since_ns + half, half, text)

    def _clean(self, raw: bytes) -> str:
        text = raw.decode(errors="replace").strip("\r\n")
        # Most lines have nothing to leave out.
        if not text.isprintable():
            text = _ESCAPES.sub("", text).strip("\r\n").replace("\r", " ")
            text = _CONTROLS.sub("", text)
        text = text.rstrip()
        for secret in self._secrets:
            text = text.replace(secret, _REDACTED)
        return text


class ConsoleLog:
    """A file of the lines of one console: the time of day, the run's clock in seconds, give or take, what it said.

    Raises OSError where it cannot be written.
    """

    def __init__(self, path: Path, title: str, clock: Clock) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file: IO[str] = path.open("a", encoding="utf-8")
        # Between the two the clocks differ by as little as the machine takes for one of them.
        self._day_s = clock.wall().timestamp() - clock.now_ns() / 1e9
        self._file.write(f"# {title}\n# time of day (UTC), seconds of the run's clock, give or take, what it said\n")

        self._file.flush()

    def write(self, lines: Iterable[ConsoleLine]) -> None:
        """Add lines; all are in the file when this returns."""
        self._file.write("".join(f"{rendered(line, self._day_s)}\n" for line in lines))
        self._file.flush()

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()


def rendered(line: ConsoleLine, day_s: float) -> str:
    """A line as a log has it; ``day_s`` is the time of day (Unix) at which the clock showed 0."""
    second, us = divmod(round(day_s * 1e6 + line.at_ns / 1e3), 1_000_000)
    text = f"--- {line.text} ---" if line.is_remark else line.text
    stamp = f"{_day_text(second)}.{us:06}Z  {line.at_ns / 1e9:15.6f} ±{line.error_ns / 1e9:.6f}"
    return f"{stamp}  {text}".rstrip()


@lru_cache(maxsize=64)
def _day_text(second: int) -> str:
    """A second of Unix time, to the second; many lines have the same."""
    return f"{datetime.fromtimestamp(second, UTC):%Y-%m-%dT%H:%M:%S}"
