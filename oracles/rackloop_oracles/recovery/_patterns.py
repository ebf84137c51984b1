"""Damage patterns of stripes: all patterns of small codes, a covering sample of large ones."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import combinations
from math import comb

from rackloop.seed import Stream
from rackloop_oracles.recovery._system import Stripe

_Draw = Callable[[int, int], list[frozenset[int]]]


class Damage(StrEnum):
    """A kind of damage to units: erased, at most m of a stripe; erased, one more than that; or silently made wrong."""

    NONE = "none"
    ERASED = "erased"
    BEYOND = "beyond m"
    CORRUPTED = "corrupted"


class Mix(StrEnum):
    """The kind of units of a stripe that are hit."""

    NONE = "none"
    DATA = "data"
    PARITY = "parity"
    MIXED = "mixed"

    @classmethod
    def of(cls, positions: Collection[int], data_units: int) -> Mix:
        """The mix of these positions: data, parity or both."""
        has_data = any(position < data_units for position in positions)
        has_parity = any(position >= data_units for position in positions)
        if has_data and has_parity:
            return cls.MIXED
        return cls.DATA if has_data else cls.PARITY if has_parity else cls.NONE


@dataclass(frozen=True)
class Case:
    """Positions of one stripe, given by its number among those of a campaign, to be damaged together."""

    stripe: int
    positions: frozenset[int]
    damage: Damage = Damage.ERASED


@dataclass
class Coverage:
    """The cases to cover, by kind, and those covered. A kind with nothing to cover is in ``absent``."""

    wanted: dict[str, set[str]] = field(default_factory=dict)
    covered: dict[str, set[str]] = field(default_factory=dict)
    absent: list[str] = field(default_factory=list)

    def want(self, kind: str, items: Collection[str]) -> None:
        """Add to what there is to cover."""
        if items:
            self.wanted.setdefault(kind, set()).update(items)
            self.covered.setdefault(kind, set())
            if kind in self.absent:
                self.absent.remove(kind)
        elif kind not in self.wanted and kind not in self.absent:
            self.absent.append(kind)

    def cover(self, kind: str, item: str) -> None:
        """Note that something was tried. It counts only where it was wanted."""
        if item in self.wanted.get(kind, ()):
            self.covered[kind].add(item)

    def share(self, kind: str) -> float:
        """The covered share of a kind, from 0 to 1."""
        return len(self.covered[kind]) / len(self.wanted[kind])

    def left_out(self) -> list[str]:
        """A sentence for each kind of which something was not covered."""
        sentences = []
        for kind, wanted in self.wanted.items():
            if left := sorted(wanted - self.covered[kind], key=_naturally):
                shown = ", ".join(left[:10]) + (", ..." if len(left) > 10 else "")
                sentences.append(f"{kind}: {len(left)} of {len(wanted)} not covered ({shown})")
        return sentences


class Patterns:
    """The cases of a campaign over these stripes, and what they cover.

    For each shape of stripe (its number of data units and of parity) all patterns of 1 to m units are made where
    they are within ``budget``, in all, smallest shapes first. Of larger ones a sample is drawn that covers, as far as
    the budget goes: every size, every mixture of data and parity, runs of adjacent units, also across the border of
    data and parity, every position, the first and the last stripe; then by chance.
    """

    def __init__(self, stripes: Sequence[Stripe], budget: int, chance: Stream) -> None:
        self.coverage = Coverage()
        self.is_exhaustive = True
        self._stripes = stripes
        self._chance = chance
        self._by_shape: dict[tuple[int, int], list[int]] = {}
        for number, stripe in enumerate(stripes):
            self._by_shape.setdefault((stripe.data_units, stripe.m), []).append(number)
        self._longest = max((shape[0] for shape in self._by_shape), default=0)
        self.erasures = list(self._erasures(budget))
        self._want()

    def beyond(self, at_most: int) -> list[Case]:
        """One more than m of a stripe erased, at least one of them data: data alone, mixed, and one with all parity."""
        return list(self._drawn(at_most, Damage.BEYOND, self._one_too_many))

    def corruptions(self, at_most: int) -> list[Case]:
        """1 to m units of a stripe silently wrong."""
        return list(self._drawn(at_most, Damage.CORRUPTED, self._some))

    def corruptions_beyond(self, at_most: int) -> list[Case]:
        """One more than m of a stripe silently wrong, at least one of them data."""
        return list(self._drawn(at_most, Damage.CORRUPTED, self._one_too_many))

    def note(self, stripe: int, positions: frozenset[int], damage: Damage) -> None:
        """Count what was tried, once what came of it was read."""
        shape = self._stripes[stripe]
        name, mix = _shape_name(shape.data_units, shape.m), Mix.of(positions, shape.data_units)
        if damage is Damage.BEYOND and len(positions) <= shape.m:
            # Hit along with another, by a drive that has units of both.
            return
        if damage is not Damage.ERASED:
            self.coverage.cover(damage.value, mix.value)
            return
        self.coverage.cover("sizes", f"{name} e={len(positions)}")
        self.coverage.cover("mixtures", f"{name} e={len(positions)} {mix}")
        for position in positions:
            self.coverage.cover("positions", f"{name} {position}")
        for run in _runs(positions, shape.data_units):
            self.coverage.cover("runs", f"{name} {run}")
        self.coverage.cover("patterns", f"{name} {sorted(positions)}")
        if stripe == 0:
            self.coverage.cover("stripes", "first")
        if stripe == len(self._stripes) - 1:
            self.coverage.cover("stripes", "last")
        if shape.data_units < self._longest:
            self.coverage.cover("shortened stripes", name)

    def _want(self) -> None:
        want = self.coverage.want
        for data, m in self._by_shape:
            name = _shape_name(data, m)
            want("sizes", [f"{name} e={e}" for e in range(1, m + 1)])
            want("mixtures", [f"{name} e={e} {mix}" for e in range(1, m + 1) for mix in _mixes(data, m, e)])
            want("positions", [f"{name} {position}" for position in range(data + m)])
            want("runs", [f"{name} {run}" for e in range(2, m + 1) for run in _all_runs(data, m, e)] if m > 1 else [])
            if self._patterns_of(data, m) == len(self._made.get((data, m), ())):
                want("patterns", [f"{name} {sorted(pattern)}" for pattern in self._made[data, m]])
        want("stripes", ["first", "last"] if self._stripes else [])
        want("shortened stripes", [_shape_name(*shape) for shape in self._by_shape if shape[0] < self._longest])

    def _erasures(self, budget: int) -> Iterator[Case]:
        self._made: dict[tuple[int, int], list[frozenset[int]]] = {}
        shapes = sorted(self._by_shape, key=lambda shape: self._patterns_of(*shape))
        for left, (data, m) in zip(range(len(shapes), 0, -1), shapes, strict=True):
            share = budget // left
            if self._patterns_of(data, m) <= share:
                made = [frozenset(positions) for e in range(1, m + 1) for positions in combinations(range(data + m), e)]
            else:
                self.is_exhaustive = False
                made = self._sample(data, m, share)
            budget -= len(made)
            self._made[data, m] = made
            order = self._in_turn(self._by_shape[data, m])
            for pattern in made:
                yield Case(next(order), pattern)

    def _sample(self, data: int, m: int, budget: int) -> list[frozenset[int]]:
        found: dict[frozenset[int], None] = {}
        for e in range(1, m + 1):
            for mix in _mixes(data, m, e):
                found[self._of_mix(data, m, e, mix)] = None
        for e in range(2, m + 1):
            starts = {"data": self._chance.randrange(data - e + 1) if data >= e else 0, "border": data - 1}
            starts["start"], starts["end"] = 0, data + m - e
            for start in starts.values():
                found[frozenset(range(start, start + e))] = None
        met = {position for pattern in found for position in pattern}
        left = [position for position in range(data + m) if position not in met]
        self._chance.shuffle(left)
        for start in range(0, len(left), m):
            found[frozenset(left[start : start + m])] = None
        while len(found) < budget:
            found[frozenset(self._chance.sample(range(data + m), self._chance.randint(1, m)))] = None
        return list(found)[:budget]

    def _drawn(self, at_most: int, damage: Damage, draw: _Draw) -> Iterator[Case]:
        shapes = [shape for shape in self._by_shape if shape[1]]
        if not shapes or at_most < 1:
            return
        turns = {shape: self._in_turn(self._by_shape[shape]) for shape in shapes}
        cases: dict[Case, None] = {}
        for number in range(at_most):
            data, m = shapes[number % len(shapes)]
            for pattern in draw(data, m)[number // len(shapes) % 3 :][:1]:
                cases[Case(next(turns[data, m]), pattern, damage)] = None
        self.coverage.want(
            damage.value, {Mix.of(case.positions, self._stripes[case.stripe].data_units).value for case in cases}
        )
        yield from cases

    def _one_too_many(self, data: int, m: int) -> list[frozenset[int]]:
        mixed = self._of_mix(data, m, m + 1, Mix.MIXED)
        first = self._of_mix(data, m, m + 1, Mix.DATA) if data > m else mixed
        one = frozenset({self._chance.randrange(data), *range(data, data + m)})
        return [first, mixed, one]

    def _some(self, data: int, m: int) -> list[frozenset[int]]:
        return [
            self._of_mix(data, m, 1, Mix.DATA),
            self._of_mix(data, m, min(m, 2), Mix.MIXED if m > 1 else Mix.PARITY),
            self._of_mix(data, m, 1, Mix.PARITY),
        ]

    def _of_mix(self, data: int, m: int, e: int, mix: Mix) -> frozenset[int]:
        every = range(data + m)
        match mix:
            case Mix.DATA:
                return frozenset(self._chance.sample(every[:data], e))
            case Mix.PARITY:
                return frozenset(self._chance.sample(every[data:], e))
            case _:
                inside = {self._chance.choice(every[:data]), self._chance.choice(every[data:])}
                rest = [position for position in every if position not in inside]
                return frozenset(inside | set(self._chance.sample(rest, e - 2)))

    def _in_turn(self, stripes: Sequence[int]) -> Iterator[int]:
        """The first stripe, the last, then all in an order by chance, again and again."""
        yield stripes[0]
        yield stripes[-1]
        while True:
            yield from self._chance.sample(stripes, len(stripes))

    @staticmethod
    def _patterns_of(data: int, m: int) -> int:
        return sum(comb(data + m, e) for e in range(1, m + 1))


def rounds(cases: Sequence[Case], together: int) -> Iterator[list[Case]]:
    """The cases in lots of up to ``together``, no two of one lot of the same stripe, in order as far as may be."""
    waiting = list(cases)
    while waiting:
        lot: list[Case] = []
        later: list[Case] = []
        busy: set[int] = set()
        for case in waiting:
            if len(lot) < together and case.stripe not in busy:
                busy.add(case.stripe)
                lot.append(case)
            else:
                later.append(case)
        yield lot
        waiting = later


def _mixes(data: int, m: int, e: int) -> list[Mix]:
    return [
        mix
        for mix, is_possible in ((Mix.DATA, data >= e), (Mix.PARITY, m >= e), (Mix.MIXED, e > 1 and data + m >= e))
        if is_possible
    ]


def _runs(positions: frozenset[int], data: int) -> Iterator[str]:
    first, last = min(positions), max(positions)
    if len(positions) > 1 and last - first == len(positions) - 1:
        where = "across the border" if first < data <= last else "in data" if last < data else "in parity"
        yield f"e={len(positions)} {where}"


def _all_runs(data: int, m: int, e: int) -> Iterator[str]:
    if data >= e:
        yield f"e={e} in data"
    if m >= e:
        yield f"e={e} in parity"
    yield f"e={e} across the border"


def _shape_name(data: int, m: int) -> str:
    return f"{data}+{m}"


def _naturally(text: str) -> tuple[tuple[int, str], ...]:
    return tuple((int(word), "") if word.isdigit() else (-1, word) for word in text.split())
