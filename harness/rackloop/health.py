"""A drive's health counters before and after: what moved, and what must not have.

Names are those of the NVMe SMART / Health Information log (NVM Express Base Specification 2.0, Figure 207) where it
has the counter, else what ATA's SMART attributes are commonly called (smartmontools' drive database).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

MUST_NOT_MOVE: Mapping[str, str] = {
    "critical_warning": "the drive itself warns",
    "crc_errors": "the link corrupts what it carries",
    "grown_defects": "the medium wears out under the test",
    "media_errors": "data could not be read back, or not be written",
    "pending_sectors": "sectors cannot be read and wait for a rewrite",
    "phy_resets": "the link was lost during the test",
    "power_cycles": "the drive lost its power, or restarted, during the test",
    "reallocated": "the medium wears out under the test",
    "reallocated_sectors": "the medium wears out under the test",
    "uncorrectable_errors": "data could not be read back",
    "unsafe_shutdowns": "the drive lost its power during the test",
}
"""Counters that work alone does not move, and what it means that one did."""


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
    def alarm(self) -> str | None:
        """What is wrong, in words; None where nothing is: a counter must not vanish, and some must not move."""
        if self.before is not None and self.after is None:
            return f"{self.counter} is no longer reported: it was {self.before}"
        if self.difference and self.counter in MUST_NOT_MOVE:
            return f"{self.counter} went from {self.before} to {self.after}: {MUST_NOT_MOVE[self.counter]}"
        return None


def health_changes(before: Mapping[str, int], after: Mapping[str, int]) -> list[CounterChange]:
    """Every counter of either side, by name."""
    return [CounterChange(name, before.get(name), after.get(name)) for name in sorted({*before, *after})]


def alarms(before: Mapping[str, int], after: Mapping[str, int]) -> list[str]:
    """What is wrong between the two, in words; empty where nothing is."""
    return [change.alarm for change in health_changes(before, after) if change.alarm]
