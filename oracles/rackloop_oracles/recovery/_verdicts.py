"""The verdict on a block, from what was read and what the history allows.

The rules are in ``docs/reference/recovery-oracle.md``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from rackloop_oracles.recovery._content import Content, Found
from rackloop_oracles.recovery._sectors import PIECE_BYTES, SECTOR_BYTES

LOUD = frozenset({Content.UNREADABLE, Content.MISSING})
# What may have been there before this run wrote for the first time.
_BEFORE = frozenset({Content.BLANK, Content.FOREIGN, Content.OTHER_RUN, Content.MISSING})


class Outcome(StrEnum):
    """The bytes of a block: right, withheld aloud, or wrong."""

    RIGHT = "right"
    LOUD = "loud"
    WRONG = "wrong"


@dataclass(frozen=True)
class Observation:
    """A block that did not read as it was last acknowledged.

    ``founds`` are the sectors that differ, by their number in the block of ``sectors``; the others, if
    ``has_newest``, are of generation ``newest``. ``candidates`` are the generations that the read might bring, by the
    history. ``where`` says under which circumstances it was read.
    """

    block: int
    founds: tuple[tuple[int, Found], ...]
    has_newest: bool
    newest: int
    candidates: frozenset[int]
    where: str = ""
    sectors: int = 1


@dataclass(frozen=True)
class Judged:
    """The judgement of an observation, and why, in a sentence that names the block."""

    observation: Observation
    outcome: Outcome
    reason: str = ""


def judged(observation: Observation, atomic_bytes: int) -> Judged:
    """Hold one observation against the rules. ``atomic_bytes`` is what a write leaves old or new as a whole."""
    for sector, found in observation.founds:
        if not _is_allowed(found, observation.candidates, atomic_bytes):
            outcome = Outcome.LOUD if found.content in LOUD else Outcome.WRONG
            return Judged(observation, outcome, _reason(observation, sector, found))
    for generations in _together(observation, atomic_bytes // SECTOR_BYTES):
        if len(generations) == 1:
            continue
        mixed = ", ".join(map(str, sorted(generations)))
        text = f"{_who(observation)}: its sectors are of generations {mixed}; a write is to be old or new as a whole"
        return Judged(observation, Outcome.WRONG, text)
    return Judged(observation, Outcome.RIGHT)


def _is_allowed(found: Found, candidates: frozenset[int], atomic_bytes: int) -> bool:
    match found.content:
        case Content.STALE | Content.NEWER:
            return found.generation in candidates
        case Content.TORN | Content.CORRUPT:
            return not found.is_damaged and _is_allowed_mixture(found, candidates, atomic_bytes)
        case content:
            return content in _BEFORE and 0 in candidates


def _is_allowed_mixture(found: Found, candidates: frozenset[int], atomic_bytes: int) -> bool:
    """Whether each part that is written as a whole is of one write that may be there, or of the time before all."""
    together = max(1, min(atomic_bytes, SECTOR_BYTES) // PIECE_BYTES)
    for start in range(0, len(found.pieces), together):
        part = set(found.pieces[start : start + together])
        is_before = part <= {0, None} and 0 in candidates
        if not is_before and not (len(part) == 1 and part <= candidates):
            return False
    return bool(found.pieces)


def _together(observation: Observation, sectors: int) -> Iterator[set[int]]:
    """The generations of each run of so many sectors, which are written as a whole, that has one that differs."""
    # A block that did not come has no sectors that could be of several writes.
    if sectors < 2 or any(found.content in LOUD for _, found in observation.founds):
        return
    generations = {number: _written(found) for number, found in observation.founds}
    for start in sorted({number // sectors * sectors for number in generations}):
        run = range(start, min(start + sectors, max(observation.sectors, max(generations) + 1)))
        yield {generations.get(number, observation.newest) for number in run}


def _written(found: Found) -> int:
    """The write of this run that a whole sector is of; 0 for what is of none, whatever another run called it."""
    return (found.generation or 0) if found.content in {Content.STALE, Content.NEWER} else 0


def _reason(observation: Observation, sector: int, found: Found) -> str:
    expected = " or ".join(map(str, sorted(observation.candidates)))
    return f"{_who(observation)}, sector {sector}: expected generation {expected}, found {found}"


def _who(observation: Observation) -> str:
    return f"block {observation.block} ({observation.where})" if observation.where else f"block {observation.block}"
