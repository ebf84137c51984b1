"""The plan of a campaign, its progress, and the stripes that it damages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum

from rackloop.errors import BadInput
from rackloop.seed import Stream
from rackloop_oracles.recovery._patterns import Mix
from rackloop_oracles.recovery._system import Stripe

_MOST_ALONE = 16


class Way(Enum):
    """A way to read a stripe: at once; damaged blocks one by one; at once with the blocks before and behind it."""

    WHOLE = "whole"
    ALONE = "alone"
    ACROSS = "across"


@dataclass(frozen=True)
class CampaignPlan:
    """The extent of a campaign. ``seed`` is that of the run: of the blocks' content and of every choice.

    ``blocks`` are written, all there are when nothing is said. Up to ``erasures`` patterns of 1 to m erased units are
    tried, all there are where that is enough; ``beyond`` of m + 1; ``corruptions`` silently wrong. ``stripes`` is how
    many stripes are damaged at most, ``together`` how many at a time. ``writes``: while a stripe is damaged, one of its
    blocks is written. Raises BadInput for numbers below 0 (below 1 for ``stripes`` and ``together``).
    """

    seed: int
    blocks: int | None = None
    erasures: int = 2000
    beyond: int = 24
    corruptions: int = 24
    stripes: int = 1024
    together: int = 32
    writes: bool = True

    def __post_init__(self) -> None:
        if min(self.erasures, self.beyond, self.corruptions) < 0 or min(self.stripes, self.together) < 1:
            raise BadInput(f"{self}: numbers of cases are 0 or more, of stripes 1 or more")


@dataclass(frozen=True)
class Progress:
    """The progress of a campaign: rounds done of those there are in this part of it."""

    part: str
    done: int
    total: int


@dataclass(frozen=True)
class Hit:
    """A stripe of a round, and which of its units are damaged."""

    number: int
    stripe: Stripe
    positions: frozenset[int]

    @property
    def mix(self) -> Mix:
        """The kind of units that are damaged."""
        return Mix.of(self.positions, self.stripe.data_units)

    @property
    def is_beyond(self) -> bool:
        """Whether more than m are."""
        return len(self.positions) > self.stripe.m

    def is_degraded(self, block: int) -> bool:
        """Whether a unit that holds a block of the stripe is damaged."""
        return block in self.stripe.addresses and bool(self.positions.intersection(self.stripe.units_of(block)))

    def spans(self, written: int, way: Way) -> Iterator[tuple[int, int]]:
        """The reads for the stripe's blocks below ``written``: first ones and how many."""
        start, stop = self.stripe.addresses.start, min(self.stripe.addresses.stop, written)
        match way:
            case Way.ALONE:
                alone = [block for block in range(start, stop) if self.is_degraded(block)][:_MOST_ALONE]
                for block in alone:
                    yield from ((at, count) for at, count in ((start, block - start), (block, 1)) if count)
                    start = block + 1
            case Way.ACROSS:
                start, stop = max(0, start - 1), min(written, stop + 1)
        if stop > start:
            yield start, stop - start

    def __str__(self) -> str:
        shown = ", ".join(map(str, sorted(self.positions)[:12])) + (", ..." if len(self.positions) > 12 else "")
        return f"stripe {self.stripe.name}, units {shown} of {self.stripe.data_units}+{self.stripe.m}"


def stripes_to_damage(
    places: Callable[[int], Stripe | None], blocks: int, at_most: int, chance: Stream
) -> list[Stripe]:
    """All stripes of the first ``blocks``, or the first, the last, shortened ones and others by chance.

    None where the system does not say where a block lies.
    """
    found: list[Stripe] = []
    address = 0
    while address < blocks:
        stripe = places(address)
        if stripe is None:
            return []
        found.append(stripe)
        address = max(address + 1, stripe.addresses.stop)
    if len(found) <= at_most:
        return found
    longest = max(stripe.data_units for stripe in found)
    kept = {0, len(found) - 1}
    kept.update(number for number, stripe in enumerate(found) if stripe.data_units < longest)
    kept = set(sorted(kept)[:at_most])
    others = [number for number in range(len(found)) if number not in kept]
    kept.update(chance.sample(others, at_most - len(kept)))
    return [found[number] for number in sorted(kept)]
