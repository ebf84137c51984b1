"""The result of a campaign: the recovery correctness matrix, the coverage, and the verdict with its reasons."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from rackloop.measurement import Cause, Distribution, Measurement, Verdict, worst
from rackloop_oracles.recovery._patterns import Coverage, Damage, Mix
from rackloop_oracles.recovery._verdicts import Judged, Outcome


class Phase(StrEnum):
    """The time of reading blocks, relative to the repair of what was damaged."""

    BEFORE = "before"
    DURING = "during"
    AFTER = "after"


@dataclass(frozen=True, order=True)
class Row:
    """The damage done: its kind, and how many units of a stripe it hit."""

    damage: Damage
    erased: int


@dataclass(frozen=True, order=True)
class Column:
    """The units that were hit, and the time of reading the blocks."""

    units: Mix
    phase: Phase


@dataclass
class Cell:
    """The number of blocks that were read, by result.

    ``degraded_right`` blocks had a damaged unit of their own and were right all the same; ``right`` ones had none.
    ``loud`` ones were withheld with an error. ``unknown`` ones were to be read and were not.
    """

    tried: int = 0
    right: int = 0
    degraded_right: int = 0
    loud: int = 0
    wrong: int = 0
    unknown: int = 0

    def count(self, blocks: int, judged: Sequence[Judged], degraded_right: int) -> None:
        """Count blocks that were read, of which those ``judged`` were not right."""
        loud = sum(one.outcome is Outcome.LOUD for one in judged)
        self.tried += blocks
        self.loud += loud
        self.wrong += len(judged) - loud
        self.degraded_right += degraded_right
        self.right += blocks - len(judged) - degraded_right

    def add(self, other: Cell) -> None:
        """Take in what another counted."""
        for name in CELL_COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))


CELL_COUNTS = ("tried", "right", "degraded_right", "loud", "wrong", "unknown")


class Matrix:
    """The recovery correctness matrix: a cell for what was done and when it was looked at."""

    def __init__(self) -> None:
        self._cells: dict[tuple[Row, Column], Cell] = {}

    def cell(self, row: Row, column: Column) -> Cell:
        """The cell, made where it is new."""
        return self._cells.setdefault((row, column), Cell())

    def __iter__(self) -> Iterator[tuple[Row, Column, Cell]]:
        """Every cell that has anything, rows first."""
        order = {damage: number for number, damage in enumerate(Damage)}
        mixes, phases = list(Mix), list(Phase)
        keys = sorted(
            self._cells,
            key=lambda key: (
                order[key[0].damage],
                key[0].erased,
                mixes.index(key[1].units),
                phases.index(key[1].phase),
            ),
        )
        for row, column in keys:
            yield row, column, self._cells[row, column]

    def total(self, damages: Iterable[Damage] = tuple(Damage)) -> Cell:
        """All cells of these kinds of damage together."""
        wanted = set(damages)
        total = Cell()
        for row, _, cell in self:
            if row.damage in wanted:
                total.add(cell)
        return total

    def __str__(self) -> str:
        """A table for people, a line a cell."""
        head = ("damage", "e", "units", "phase", *(name.replace("_", " ") for name in CELL_COUNTS))
        lines = [head]
        for row, column, cell in self:
            counts = (str(getattr(cell, name)) for name in CELL_COUNTS)
            lines.append((row.damage, str(row.erased), column.units, column.phase, *counts))
        widths = [max(len(line[number]) for line in lines) for number in range(len(head))]
        return "\n".join(
            "  ".join(
                text.ljust(width) if number in {0, 2, 3} else text.rjust(width)
                for number, (text, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        )


MOST_REASONS = 50


@dataclass
class RecoveryResult:
    """The answer of a campaign to: is the data back, all of it, and is it the right data.

    ``failures`` are what the system did wrong, each naming a block, what was expected and what was found, 50 at most
    and then how many more there were; ``doubts`` why the answer is not known, and ``cause_of_doubts`` whose fault that
    is. ``not_covered`` is what was not looked at, or what the system does not promise, and makes no verdict.
    """

    system: str
    seed: int
    matrix: Matrix = field(default_factory=Matrix)
    coverage: Coverage = field(default_factory=Coverage)
    failures: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    not_covered: list[str] = field(default_factory=list)
    is_exhaustive: bool = False
    corrupted: int = 0
    corrupted_found: int = 0
    more_failures: int = 0
    cause_of_doubts: Cause = Cause.TEST

    @property
    def verdict(self) -> Verdict:
        """Fail where the system did anything wrong, unknown where anything is in doubt or nothing was read."""
        if self.failures:
            return Verdict.FAIL
        tried = self.matrix.total()
        return worst([Verdict.UNKNOWN] if self.doubts or not tried.tried else [Verdict.PASS])

    @property
    def reasons(self) -> tuple[str, ...]:
        """The reasons why it is no pass: first what failed, then what is in doubt."""
        more = (f"and {self.more_failures} failures more",) if self.more_failures else ()
        nothing = () if self.matrix.total().tried or self.doubts else ("nothing was read",)
        return (*self.failures, *more, *self.doubts, *nothing)

    def fail(self, reason: str) -> None:
        """Note something that the system did wrong."""
        if len(self.failures) < MOST_REASONS:
            self.failures.append(reason)
        else:
            self.more_failures += 1

    def measurements(self) -> list[Measurement]:
        """``recovery.tried`` to ``recovery.unknown``, a block each, with what was done in labels.

        Then what was covered, and by the label ``what`` of ``recovery.not_covered`` what was not.
        """
        found = []
        for row, column, cell in self.matrix:
            labels = {
                "system": self.system,
                "damage": row.damage.value,
                "erased": str(row.erased),
                "units": column.units.value,
                "phase": column.phase.value,
            }
            found += [_count(f"recovery.{name}", getattr(cell, name), labels) for name in CELL_COUNTS]
        for kind in self.coverage.wanted:
            labels = {"system": self.system, "what": kind}
            found.append(_count("recovery.covered", self.coverage.share(kind), labels))
        found += [_count("recovery.not_covered", 1, {"system": self.system, "what": what}) for what in self.not_covered]
        if self.corrupted:
            share = self.corrupted_found / self.corrupted
            found.append(_count("recovery.corruption_found", share, {"system": self.system}))
        return found


def add_once(texts: list[str], text: str) -> None:
    """Add a text that is not there yet."""
    if text not in texts:
        texts.append(text)


def _count(name: str, value: float, labels: dict[str, str]) -> Measurement:
    return Measurement(name, "1", Distribution.of([float(value)]), labels)
