"""The changes of a drive's health counters between two readings, and those that break a rule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rackloop.inspection.health._rules import COUNTERS, Rule


@dataclass(frozen=True)
class CounterChange:
    """One counter before and after; None where the drive did not report it."""

    counter: str
    before: int | None
    after: int | None

    @property
    def difference(self) -> int | None:
        """How far it moved; None where it is not known on both sides."""
        return None if self.before is None or self.after is None else self.after - self.before

    @property
    def broken_rule(self) -> Rule | None:
        """The rule that says it must not have moved this way; None where none does."""
        rule = COUNTERS.get(self.counter)
        if rule is None or not self.difference or (rule.may_fall and self.difference < 0):
            return None
        return rule

    @property
    def alarm(self) -> str | None:
        """What is wrong, in words; None where nothing is: a counter must not vanish, and some must not move."""
        if self.before is not None and self.after is None:
            return f"{self.counter} is no longer reported: it was {self.before}"
        if (rule := self.broken_rule) is not None:
            return f"{self.counter} went from {self.before} to {self.after}: {rule.meaning}"
        return None


def health_changes(before: Mapping[str, int], after: Mapping[str, int]) -> list[CounterChange]:
    """Every counter of either side, by name."""
    return [CounterChange(name, before.get(name), after.get(name)) for name in sorted({*before, *after})]
