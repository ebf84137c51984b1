"""The log of a lab's process, rate-limited so that no client can fill the disk."""

from __future__ import annotations

import logging
import re
import traceback
from collections import Counter
from typing import TextIO

MOST_BYTES = 1 << 20
"""A log is not longer, but for the line that says so."""

_MOST_KINDS = 500
_NUMBER = re.compile(r"0x[0-9a-f]+|\d+")
_ONE_LINE = 200


class Complaints(logging.Handler):
    """Writes a complaint the first time in full, and then a line at every power of ten of its number.

    Two are the same where the same exception comes from the same line of the program; without one, where their first
    lines differ in numbers alone. Past ``most_bytes`` the log says that it is full, and nothing more.
    """

    def __init__(self, stream: TextIO, most_bytes: int = MOST_BYTES) -> None:
        super().__init__(logging.WARNING)
        self.setFormatter(logging.Formatter("%(name)s: %(message)s"))
        self._stream = stream
        self._left = most_bytes
        self._times: Counter[str] = Counter()

    def emit(self, record: logging.LogRecord) -> None:
        """Write it, count it, or both."""
        kind = _kind(record)
        if len(self._times) >= _MOST_KINDS and kind not in self._times:
            kind = "something else"
        self._times[kind] += 1
        times = self._times[kind]
        if times == 1:
            self._write(self.format(record))
        elif str(times).strip("0") == "1":
            self._write(f"{times} times by now: {kind}")

    def _write(self, text: str) -> None:
        if self._left <= 0:
            return
        written = f"{text}\n"
        self._left -= len(written.encode(errors="replace"))
        self._stream.write(written if self._left > 0 else "this log is full; further complaints are not written\n")
        self._stream.flush()


def complain_briefly(stream: TextIO) -> None:
    """Have everything that this process logs go to ``stream``, each complaint once."""
    logging.getLogger().addHandler(Complaints(stream))


def _kind(record: logging.LogRecord) -> str:
    error = record.exc_info[1] if record.exc_info else None
    if error is None:
        first, _, _ = record.getMessage().partition("\n")
        return f"{record.name}: {_NUMBER.sub('N', first)[:_ONE_LINE]}"
    frames = traceback.extract_tb(error.__traceback__)
    where = f" at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{where}"
