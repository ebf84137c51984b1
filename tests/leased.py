"""A lease of the whole rack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass
class EverythingLeased:
    """What the destructive guard asks of a lease. ``attempts`` are those that it was told of."""

    attempts: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)

    def refusals(self, drive_id: str, through: str) -> list[str]:
        return self.reasons

    def record_attempt(self, drive_id: str, reasons: Sequence[str]) -> None:
        self.attempts.append((drive_id, tuple(reasons)))
