"""Delta debugging: the fewest items of a list that still do what all of them do.

The algorithm is ddmin of A. Zeller and R. Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", IEEE
Transactions on Software Engineering 28(2), 2002.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain, pairwise
from typing import TypeVar

T = TypeVar("T")


def ddmin(items: Sequence[T], fails: Callable[[Sequence[T]], bool]) -> Sequence[T]:
    """A part of ``items``, in their order, that ``fails`` and of which no single item can be left out.

    ``fails`` holds for all of ``items``; it may be asked the same twice.
    """
    granularity = 2
    while len(items) >= 2:
        chunks = _chunks(items, granularity)
        complements = [list(chain(*chunks[:at], *chunks[at + 1 :])) for at in range(len(chunks))]
        if smaller := next((chunk for chunk in chunks if fails(chunk)), None):
            items, granularity = smaller, 2
        elif rest := next((rest for rest in complements if len(chunks) > 2 and fails(rest)), None):
            items, granularity = rest, max(granularity - 1, 2)
        elif granularity < len(items):
            granularity = min(len(items), 2 * granularity)
        else:
            break
    return items


def _chunks(items: Sequence[T], count: int) -> list[Sequence[T]]:
    bounds = [len(items) * number // count for number in range(count + 1)]
    return [items[low:high] for low, high in pairwise(bounds)]
