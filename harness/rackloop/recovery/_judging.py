"""From what was seen of a block and what might have been, whether the system did right. See the rules in
``docs/reference/recovery-oracle.md``.
"""  # noqa: D205

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from rackloop.recovery._content import Content, Found
from rackloop.recovery._sectors import SECTOR_BYTES

LOUD = frozenset({Content.UNREADABLE, Content.MISSING})
# What may have been there before this run wrote for the first time.
_BEFORE = frozenset({Content.BLANK, Content.FOREIGN, Content.OTHER_RUN, Content.MISSING})


class Outcome(StrEnum):
    """Whether the bytes of a block were right, withheld aloud, or wrong."""

    RIGHT = "right"
    LOUD = "loud"
    WRONG = "wrong"


@dataclass(frozen=True)
class Observation:
    """A block that did not read as it was last acknowledged.

    ``founds`` are the sectors that differ, by their number in the block; the others, if ``has_newest``, are of
    generation ``newest``. ``candidates`` are the generations that the read might bring, by the history. ``where``
    says under which circumstances it was read.
    """

    block: int
    founds: tuple[tuple[int, Found], ...]
    has_newest: bool
    newest: int
    candidates: frozenset[int]
    where: str = ""


@dataclass(frozen=True)
class Judged:
    """What is made of an observation, and why, in a sentence that names the block."""

    observation: Observation
    outcome: Outcome
    reason: str = ""


def judged(observation: Observation, atomic_bytes: int) -> Judged:
    """Hold one observation against the rules. ``atomic_bytes`` is what a write leaves old or new as a whole."""
    for sector, found in observation.founds:
        if not _is_allowed(found, observation.candidates, atomic_bytes):
            outcome = Outcome.LOUD if found.content in LOUD else Outcome.WRONG
            return Judged(observation, outcome, _reason(observation, sector, found))
    if atomic_bytes > SECTOR_BYTES and len(generations := _generations(observation)) > 1:
        mixed = ", ".join(map(str, sorted(generations)))
        text = f"{_who(observation)}: its sectors are of generations {mixed}; a write is to be old or new as a whole"
        return Judged(observation, Outcome.WRONG, text)
    return Judged(observation, Outcome.RIGHT)


def _is_allowed(found: Found, candidates: frozenset[int], atomic_bytes: int) -> bool:
    match found.content:
        case Content.STALE | Content.NEWER:
            return found.generation in candidates
        case Content.TORN:
            return atomic_bytes < SECTOR_BYTES and not found.is_stray and candidates.issuperset(found.generations)
        case content:
            return content in _BEFORE and 0 in candidates


def _generations(observation: Observation) -> set[int]:
    found = {found.generation or 0 for _, found in observation.founds}
    return found | {observation.newest} if observation.has_newest else found


def _reason(observation: Observation, sector: int, found: Found) -> str:
    expected = " or ".join(map(str, sorted(observation.candidates)))
    return f"{_who(observation)}, sector {sector}: expected generation {expected}, found {found}"


def _who(observation: Observation) -> str:
    return f"block {observation.block} ({observation.where})" if observation.where else f"block {observation.block}"
