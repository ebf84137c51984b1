"""The effect of a fault on reads that went on around it."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import TYPE_CHECKING, Protocol

from rackloop.record import Stage

if TYPE_CHECKING:
    from rackloop.faults._guard import Injection

_SLOW_BY = 5.0
_SLOW_US = 1000.0
_SLOW_ALONE_US = 100_000.0
_PROBE = "rackprobe"


class ReadInterval(Protocol):
    """The reads that completed in a part of a watch that ended at ``t_ns``; ``max_*`` tell of the longest."""

    @property
    def t_ns(self) -> int: ...
    @property
    def completed(self) -> int: ...
    @property
    def in_flight(self) -> int: ...
    @property
    def errors(self) -> int: ...
    @property
    def max_us(self) -> float: ...
    @property
    def max_submit_ns(self) -> int: ...
    @property
    def max_complete_ns(self) -> int: ...


def first_trouble(injection: Injection, intervals: Sequence[ReadInterval]) -> Stage | None:
    """The first read that failed, was not answered or took too long while a fault stood; None where none did.

    Too long is over a millisecond and five times as long as any read before the fault, or begun after it was mended;
    where there are none of these, a tenth of a second. A watch tells of the longest read of each interval, so that is
    how far off the moment may be.
    """
    begun_ns, healed_ns = injection.commanded_ns, inf if injection.healed_ns is None else injection.healed_ns
    slow_us = _slow_us(begun_ns, healed_ns, intervals)
    before_ns: int | None = None
    quiet: Stage | None = None
    for each in intervals:
        since_ns = begun_ns if before_ns is None else max(before_ns, begun_ns)
        is_in_time = since_ns <= healed_ns or 0 < each.max_submit_ns <= healed_ns
        if each.t_ns > begun_ns and is_in_time:
            error_ns = each.t_ns - (begun_ns if before_ns is None else before_ns)
            if each.errors:
                return Stage("failed read", since_ns, _PROBE, error_ns)
            if each.max_us > slow_us and each.max_complete_ns > begun_ns and each.max_submit_ns <= healed_ns:
                return Stage("slow read", max(each.max_submit_ns, begun_ns), _PROBE, error_ns)
            if each.completed or not each.in_flight:
                quiet = None
            elif before_ns is not None:
                quiet = quiet or Stage("unanswered read", since_ns, _PROBE, error_ns)
                if (min(each.t_ns, healed_ns) - quiet.at_ns) / 1000 > slow_us:
                    return quiet
        before_ns = each.t_ns if before_ns is None else max(before_ns, each.t_ns)
    return None


def _slow_us(begun_ns: int, healed_ns: float, intervals: Sequence[ReadInterval]) -> float:
    """A time that no read takes of itself, by those that the fault cannot have held up."""
    usual_us = max(
        (each.max_us for each in intervals if each.t_ns <= begun_ns or each.max_submit_ns > healed_ns), default=0.0
    )
    return max(usual_us * _SLOW_BY, _SLOW_US) if usual_us else _SLOW_ALONE_US
