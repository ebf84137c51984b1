"""Answers of equipment that are kept from run to run, so that it need not be asked again each time."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from threading import Lock
from typing import Any

from rackloop.clock import Clock


class Remembered:
    """Answers by name in the JSON ``file``, each for ``for_s`` seconds of the time of day after it was kept.

    Nothing here raises: a file that is missing, damaged or cannot be written remembers nothing. It may be used by
    several threads and processes; where two processes keep something at the same moment one answer may be lost, and
    the file is whole. Answers come from a file that others may have changed, so their form is for the caller to check;
    no secret belongs in it.
    """

    def __init__(self, file: Path, clock: Clock, for_s: float) -> None:
        self._file = file
        self._clock = clock
        self._for_s = for_s
        self._lock = Lock()

    def recall(self, name: str) -> Any:
        """The answer that was kept under ``name``; None where there is none, or it is too old."""
        return self.recall_all().get(name)

    def recall_all(self) -> dict[str, Any]:
        """The answers that are not too old, by name."""
        return {name: entry.get("answer") for name, entry in self._fresh().items()}

    def keep(self, name: str, answer: object) -> None:
        """Keep what JSON can say."""
        with self._lock:
            self._write({**self._fresh(), name: {"at_s": self._now_s(), "answer": answer}})

    def forget(self, name: str) -> None:
        """Keep nothing under ``name``."""
        with self._lock:
            self._write({other: kept for other, kept in self._fresh().items() if other != name})

    def _now_s(self) -> float:
        return self._clock.wall().timestamp()

    def _fresh(self) -> dict[str, dict[str, Any]]:
        """The answers that are not too old, nor of a time to come: a clock that was set tells nothing of their age."""
        now_s = self._now_s()
        with suppress(OSError, ValueError, TypeError, KeyError, AttributeError):
            kept = json.loads(self._file.read_text(encoding="utf-8"))
            return {name: entry for name, entry in kept.items() if 0 <= now_s - entry["at_s"] < self._for_s}
        return {}

    def _write(self, kept: dict[str, dict[str, Any]]) -> None:
        fresh: Path | None = None
        try:
            # It is readable by its owner alone, and takes the place of the old one at once.
            with NamedTemporaryFile("w", dir=self._file.parent, prefix=f"{self._file.name}.", delete=False) as file:
                fresh = Path(file.name)
                json.dump(kept, file)
            fresh.replace(self._file)
        except OSError:
            if fresh is not None:
                fresh.unlink(missing_ok=True)
