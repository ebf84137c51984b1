"""Scrubbing: every unit of every object is read and judged, and what is wrong is written again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from rackloop_models.rack_erasure._errors import StripeLost
from rackloop_models.rack_erasure._stripes import Stripes
from rackloop_models.rack_erasure._units import UnitError


@dataclass(frozen=True)
class ScrubReport:
    """The findings of a scrub on the drives that can be reached.

    ``lost`` are objects of which too little is left. ``mismatched`` are those whose units all have the right checksums
    and are no codeword, which no fault of a drive explains.
    """

    objects: int
    units: int
    unreadable: int
    damaged: int
    stale: int
    misplaced: int
    lacking: int
    repaired: int
    lost: tuple[int, ...]
    mismatched: tuple[int, ...]


def scrub(stripes: Stripes, progress: Callable[[int, int], None] | None, *, repair: bool) -> ScrubReport:
    """Read all there is; with ``repair``, rebuild what is wrong or lacking on drives that can be reached."""
    found: Counter[UnitError] = Counter()
    objects = units = lacking = repaired = 0
    lost: list[int] = []
    mismatched: list[int] = []
    count = len(stripes.known)
    for number in range(count):
        known = stripes.known[number]
        with known.lock:
            try:
                lacks = stripes.reachable(number) - known.holds
                units += len(stripes.available(number)) if known.version is not None else 0
                objects += known.version is not None and not known.version.is_removed
                wrong, agrees = stripes.check(number)
                found.update(wrong.values())
                lacking += len(lacks)
                if not agrees:
                    mismatched.append(number)
                if repair and (wrong or lacks):
                    repaired += stripes.mend(number, stripes.reachable(number))[0]
                if not stripes.is_readable(number):
                    lost.append(number)
            except StripeLost:
                lost.append(number)
        if progress is not None:
            progress(number + 1, count)
    return ScrubReport(
        objects,
        units,
        found[UnitError.UNREADABLE],
        found[UnitError.DAMAGED],
        found[UnitError.STALE],
        found[UnitError.MISPLACED],
        lacking,
        repaired,
        tuple(lost),
        tuple(mismatched),
    )
