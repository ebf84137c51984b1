"""The diagnosis of a failed part by retests: the same drive on another port, another drive on the same port."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import combinations

from rackloop.lab import Part, PartKind
from rackloop.measurement import Cause

# A link that is made anew takes its own time, a tired one many times that; half a second is what a busy machine adds.
_SLOW_FACTOR = 3.0
_SLOW_ADDED_S = 0.5


class Seen(StrEnum):
    """The result of looking for a drive at a port and reading it."""

    WORKS = "works"
    ABSENT = "did not come online"
    ANOTHER = "another drive is there"
    UNREADABLE = "could not be read"
    SLOW = "is slow"
    STUCK = "cannot come: the switch keeps the old circuit"


@dataclass(frozen=True)
class Trial:
    """One drive at one port: what was seen, how long it took from the switch's act, and in whose words."""

    drive: str
    server: str
    port: str
    seen: Seen
    took_s: float = 0.0
    detail: str = ""

    @property
    def parts(self) -> frozenset[Part]:
        """The parts that had to work for it to work."""
        return frozenset({Part.drive(self.drive), Part.port(self.server, self.port), Part.server(self.server)})

    def __str__(self) -> str:
        what = f"{self.drive} {self.seen}" if self.seen is not Seen.ANOTHER else f"{self.seen} instead of {self.drive}"
        took = f" ({self.took_s:.1f} s)" if self.seen is Seen.SLOW else ""
        return f"at {self.server}.{self.port} {what}{took}" + (f": {self.detail}" if self.detail else "")


class Finding(StrEnum):
    """The part at fault, by a retest. A port is meant with its cable and its switch port."""

    DRIVE = "drive"
    PORT = "port or cable"
    SERVER = "server"
    SEVERAL = "several"
    NOT_REPRODUCED = "not reproduced"
    UNCLEAR = "unclear"


@dataclass(frozen=True)
class Diagnosis:
    """The result of a retest: the part at fault, and the trials that say so.

    ``culprits`` are the parts at fault; where it is unclear, those that may be.
    """

    finding: Finding
    culprits: tuple[Part, ...]
    trials: tuple[Trial, ...]

    @property
    def cause(self) -> Cause | None:
        """The cause of the fault: a drive is the product, what leads to it the lab. None where it may be either's."""
        if self.finding is Finding.DRIVE:
            return Cause.PRODUCT
        if self.finding is Finding.PORT or any(part.kind is not PartKind.DRIVE for part in self.culprits):
            may_be_drive = self.finding is Finding.UNCLEAR and any(g.kind is PartKind.DRIVE for g in self.culprits)
            return None if may_be_drive else Cause.LAB
        return None

    @property
    def said(self) -> str:
        """The part at fault, in a sentence; ``str()`` adds the trials."""
        named = " and ".join(part.said for part in self.culprits)
        match self.finding:
            case Finding.NOT_REPRODUCED:
                return "the retest did not reproduce it"
            case Finding.UNCLEAR if not self.culprits:
                return "the retest is unclear: what fails together works apart"
            case Finding.UNCLEAR:
                return f"the retest is unclear: it may be {named.replace(' and ', ' or ')}"
            case Finding.PORT if all(part.kind is PartKind.DRIVE for part in self.culprits):
                return f"the retest says: the cable of {named}, or its switch port"
            case Finding.PORT:
                return f"the retest says: {named}, or its cable"
            case _:
                return f"the retest says: {named}"

    def __str__(self) -> str:
        return f"{self.said} ({'; '.join(map(str, self.trials))})"


def diagnose(trials: Sequence[Trial]) -> Diagnosis:
    """The part at fault for the failures among ``trials``.

    The fewest parts that are in every trial that failed and in none that worked; unclear where several choices are
    as few, or none is left. A trial that took far longer than the quickest has failed too. A port that the switch
    does not move is at fault whatever else is.
    """
    judged = _with_slow(trials)
    stuck = sorted({Part.port(trial.server, trial.port) for trial in judged if trial.seen is Seen.STUCK})
    if stuck:
        return Diagnosis(Finding.PORT, tuple(stuck), judged)
    failed = [trial for trial in judged if trial.seen is not Seen.WORKS]
    if not failed:
        return Diagnosis(Finding.NOT_REPRODUCED, (), judged)
    cleared = frozenset(part for trial in judged if trial.seen is Seen.WORKS for part in trial.parts)
    explanations = _fewest([trial.parts - cleared for trial in failed])
    if len(explanations) != 1:
        return Diagnosis(Finding.UNCLEAR, tuple(sorted({part for found in explanations for part in found})), judged)
    culprits = tuple(sorted(explanations[0]))
    return Diagnosis(_finding(culprits, failed), culprits, judged)


def _finding(culprits: tuple[Part, ...], failed: Sequence[Trial]) -> Finding:
    if len(culprits) > 1:
        return Finding.SEVERAL
    match culprits[0].kind:
        case PartKind.DRIVE:
            # A drive never answers by another's name: where another is found, its cable leads elsewhere.
            return Finding.PORT if all(trial.seen is Seen.ANOTHER for trial in failed) else Finding.DRIVE
        case PartKind.PORT:
            return Finding.PORT
        case _:
            return Finding.SERVER


def _with_slow(trials: Sequence[Trial]) -> tuple[Trial, ...]:
    quickest_s = min((trial.took_s for trial in trials if trial.seen is Seen.WORKS), default=0.0)
    limit_s = quickest_s * _SLOW_FACTOR + _SLOW_ADDED_S
    return tuple(
        replace(trial, seen=Seen.SLOW) if trial.seen is Seen.WORKS and trial.took_s > limit_s else trial
        for trial in trials
    )


def _fewest(suspects: Sequence[Collection[Part]]) -> list[frozenset[Part]]:
    """The smallest sets with one of each of ``suspects``; none where one of these is empty."""
    everything = sorted({part for found in suspects for part in found})
    for size in range(1, len(everything) + 1):
        fitting = [
            frozenset(chosen)
            for chosen in combinations(everything, size)
            if all(set(chosen) & set(found) for found in suspects)
        ]
        if fitting:
            return fitting
    return []
