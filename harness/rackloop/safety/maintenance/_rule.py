"""The rule by which a part that keeps failing is quarantined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class PartFailure:
    """A test that a part of the rack failed, and why. ``number`` counts the tests of the lab, from 1."""

    run: str
    test: str
    number: int
    reason: str


@dataclass(frozen=True)
class QuarantineRule:
    """A part that failed ``failures`` of the last ``tests`` tests of its lab goes into quarantine."""

    failures: int = 3
    tests: int = 50

    def condemns(self, failures: Sequence[PartFailure], number: int) -> bool:
        """Whether these failures of one part do, where the lab's newest test is ``number``. A test counts once."""
        counted = {failure.number for failure in failures if number - self.tests < failure.number <= number}
        return len(counted) >= self.failures

    def __str__(self) -> str:
        return f"{self.failures} failures within {self.tests} tests"
