"""The state of a mock drive besides its data, as tools of its server set it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

_ERASES_NS = 300_000_000


@dataclass(frozen=True)
class Firmware:
    """The state of a drive's own erasure and of its password, as of when it was looked at.

    ``sanitizes`` says that it has sanitize operations, ``marks`` that it makes sectors unreadable by request.
    ``erased_by`` is the method of the last sanitize, ``erased`` how much of one that is under way is done. With a
    ``password`` the drive ``is_locked`` after a power cycle until it is given that. ``limits`` are those of its error
    recovery for reads and writes, in the drive's own unit, None where it has none to set; 0 is no limit, as after a
    power cycle.
    """

    sanitizes: bool = False
    marks: bool = False
    erased_by: str | None = None
    erased: float | None = None
    password: str | None = None
    is_locked: bool = False
    limits: tuple[int, int] | None = None
    since_ns: int = 0
    unlocked_in: int = 0
    limited_in: int = 0

    def erasing_by(self, method: str, now_ns: int) -> Firmware:
        """With a sanitize that has just begun."""
        return replace(self, erased_by=method, since_ns=now_ns)

    def with_password(self, password: str | None, power_cycles: int) -> Firmware:
        """With this password, or none, unlocked until another power cycle is counted."""
        return replace(self, password=password, unlocked_in=power_cycles)

    def with_limits(self, reads: int, writes: int, power_cycles: int) -> Firmware:
        """With these limits until another power cycle is counted."""
        return replace(self, limits=(reads, writes), limited_in=power_cycles)

    def at(self, now_ns: int, counters: Mapping[str, int]) -> Firmware:
        """As it is now; the drive's power cycles are looked up among its ``counters`` only where they matter."""
        took_ns = now_ns - self.since_ns
        is_under_way = self.erased_by is not None and took_ns < _ERASES_NS
        return replace(
            self,
            erased=took_ns / _ERASES_NS if is_under_way else None,
            is_locked=self.password is not None and counters["power_cycles"] != self.unlocked_in,
            limits=(0, 0) if any(self.limits or ()) and counters["power_cycles"] != self.limited_in else self.limits,
        )
