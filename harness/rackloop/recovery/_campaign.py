"""Damages a system stripe by stripe, in every way a plan says, and judges what it gives back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from rackloop.errors import BadInput, DeadlineExceeded, NotSupported
from rackloop.recovery._eraser import Eraser, positions_hit
from rackloop.recovery._judging import Judged, Outcome
from rackloop.recovery._oracle import RecoveryOracle
from rackloop.recovery._patterns import Case, Damage, Mix, Patterns, rounds
from rackloop.recovery._result import Cell, Column, Phase, RecoveryResult, Row
from rackloop.recovery._system import Health, Place, Repairs, SilentCorruption, Stripe
from rackloop.seed import stream

_PROMISED = frozenset({SilentCorruption.CORRECTED, SilentCorruption.DETECTED})
_PAUSES = 2


@dataclass(frozen=True)
class CampaignPlan:
    """How much is tried. ``seed`` is that of the run: of the blocks' content and of every choice.

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
    """How far a campaign is: rounds done of those there are in this part of it."""

    part: str
    done: int
    total: int


@dataclass(frozen=True)
class _Hit:
    """A stripe of a round, and which of its units are damaged."""

    number: int
    stripe: Stripe
    positions: frozenset[int]

    @property
    def mix(self) -> Mix:
        return Mix.of(self.positions, self.stripe.data_units)

    def is_degraded(self, block: int) -> bool:
        return bool(self.positions.intersection(self.stripe.units_of(block)))

    def __str__(self) -> str:
        shown = ", ".join(map(str, sorted(self.positions)[:12])) + (", ..." if len(self.positions) > 12 else "")
        return f"stripe {self.stripe.name}, units {shown} of {self.stripe.data_units}+{self.stripe.m}"


class Campaign:
    """Writes the blocks of ``oracle``'s system, then damages and verifies by a plan; see ``docs/reference``.

    Without an eraser, or where the system does not say where its stripes lie, it verifies what it wrote and is
    otherwise unknown. ``progress`` hears of every round.
    """

    def __init__(
        self,
        oracle: RecoveryOracle,
        eraser: Eraser | None,
        plan: CampaignPlan,
        progress: Callable[[Progress], None] = lambda _: None,
    ) -> None:
        self._oracle = oracle
        self._eraser = eraser
        self._plan = plan
        self._progress = progress
        self._chance = stream(plan.seed, "recovery")
        self._description = oracle.description
        self._blocks = self._description.blocks if plan.blocks is None else plan.blocks
        self._result = RecoveryResult(self._description.name, plan.seed)
        self._refusals = 0

    def run(self) -> RecoveryResult:
        """Carry it out. It raises nothing: what kept it from an answer is among the result's doubts."""
        result = self._result
        try:
            self._carry_out()
        except DeadlineExceeded as error:
            result.doubts.append(f"not finished: {error}")
        except Exception as error:  # noqa: BLE001 - a checker that crashed knows nothing, whatever it crashed on
            result.doubts.append(f"the checker or what it asked failed: {type(error).__name__}: {error}")
        result.not_covered += result.coverage.left_out()
        return result

    def _carry_out(self) -> None:
        if not self._fill():
            return
        stripes = self._stripes()
        eraser = self._eraser
        if eraser is None or not stripes:
            what = "the adapter does not say where stripes lie" if eraser else "there is nothing to erase with"
            self._result.doubts.append(f"no erasure was tried: {what}")
            return
        patterns = Patterns(stripes, self._plan.erasures, self._chance)
        self._result.coverage = patterns.coverage
        self._result.is_exhaustive = patterns.is_exhaustive
        self._result.not_covered += [f"{kind}: there are none here" for kind in patterns.coverage.absent]
        if not isinstance(self._oracle.system, Repairs):
            self._result.not_covered.append("during and after rebuild: the adapter offers no repair")
        parts = (
            (patterns.erasures, self._erased),
            (patterns.corruptions(self._plan.corruptions), self._corrupted),
            # Last: a system may need more than the end of the damage to come back from this.
            (patterns.beyond(self._plan.beyond), self._beyond),
        )
        for cases, carry_out in parts:
            self._part(cases, stripes, patterns, partial(carry_out, eraser), eraser)
        if self._plan.beyond and not self._result.matrix.total([Damage.BEYOND]).loud:
            self._result.doubts.append(
                "with more than m units erased nothing was loud: is the eraser in effect, or does "
                f"{self._description.name} answer from a cache?"
            )

    def _fill(self) -> bool:
        """Write every block once and some again, and see that all is well before anything is damaged."""
        oracle, blocks = self._oracle, self._blocks
        self._progress(Progress("fill", 0, blocks))
        acknowledged = oracle.write(0, blocks)
        again = sorted(self._chance.sample(range(blocks), min(blocks, max(1, min(256, blocks // 4)))))
        acknowledged += sum(oracle.write(block, 1) for block in again)
        is_flushed = oracle.flush()
        if acknowledged < blocks + len(again) or not is_flushed:
            self._result.fail(f"the system did not take what it was given, undamaged: {oracle.refusals[0]}")
            return False
        self._refusals = len(oracle.refusals)
        oracle.forget()
        reading = oracle.verify(0, blocks, "undamaged")
        wrong = oracle.judge(reading)
        self._tally(
            self._result.matrix.cell(Row(Damage.NONE, 0), Column(Mix.NONE, Phase.BEFORE)), reading.blocks, wrong, 0
        )
        for one in wrong:
            self._result.fail(one.reason)
        return not wrong

    def _stripes(self) -> list[Stripe]:
        """The stripes that are damaged: all, or the first, the last, shortened ones and others by chance."""
        found: list[Stripe] = []
        address = 0
        while address < self._blocks:
            stripe = self._oracle.places(address)
            if stripe is None:
                return []
            found.append(stripe)
            address = max(address + 1, stripe.addresses.stop)
        if len(found) <= self._plan.stripes:
            return found
        longest = max(stripe.data_units for stripe in found)
        kept = {0, len(found) - 1}
        kept.update(number for number, stripe in enumerate(found) if stripe.data_units < longest)
        kept = set(sorted(kept)[: self._plan.stripes])
        others = [number for number in range(len(found)) if number not in kept]
        kept.update(self._chance.sample(others, self._plan.stripes - len(kept)))
        return [found[number] for number in sorted(kept)]

    def _part(
        self,
        cases: Sequence[Case],
        stripes: Sequence[Stripe],
        patterns: Patterns,
        carry_out: Callable[[list[_Hit], tuple[Place, ...]], bool],
        eraser: Eraser,
    ) -> None:
        """One kind of damage, lot by lot, until a lot says that no more of it makes sense."""
        if not cases:
            return
        part = cases[0].damage.value
        lots = list(rounds(cases, 1 if eraser.whole_drives else self._plan.together))
        for done, lot in enumerate(lots):
            self._progress(Progress(part, done, len(lots)))
            # Where they lie may have changed with what was written and repaired.
            now = {case.stripe: self._now(stripes[case.stripe]) for case in lot}
            places = tuple(now[case.stripe].units[number] for case in lot for number in sorted(case.positions))
            if eraser.whole_drives:
                now = {number: self._now(stripe) for number, stripe in enumerate(stripes)}
            hits = [
                _Hit(number, stripe, positions)
                for number, stripe in now.items()
                if (positions := positions_hit(eraser, stripe, places))
            ]
            try:
                goes_on = carry_out(hits, places)
            except NotSupported as error:
                self._result.not_covered.append(f"{part}: {error}")
                return
            for hit in hits:
                patterns.note(hit.number, hit.positions, lot[0].damage)
            if not goes_on:
                return
        self._progress(Progress(part, len(lots), len(lots)))

    def _now(self, stripe: Stripe) -> Stripe:
        return self._oracle.places(stripe.addresses.start) or stripe

    def _erased(self, eraser: Eraser, hits: list[_Hit], places: tuple[Place, ...]) -> bool:
        oracle = self._oracle
        try:
            eraser.erase(places)
            oracle.forget()
            self._read(hits, Damage.ERASED, Phase.BEFORE)
            self._ask_state(hits)
            if self._plan.writes:
                self._write(hits)
                hits = self._again(eraser, hits)
                oracle.forget()
                self._read(hits, Damage.ERASED, Phase.BEFORE, "written while erased")
            if self._repair(hits, Damage.ERASED):
                oracle.forget()
                self._read(hits, Damage.ERASED, Phase.AFTER)
                self._strike_again(eraser, hits, Damage.ERASED)
        finally:
            eraser.mend()
        self._settle()
        self._read(hits, Damage.ERASED, Phase.AFTER, "mended")
        return True

    def _corrupted(self, eraser: Eraser, hits: list[_Hit], places: tuple[Place, ...]) -> bool:
        oracle, result = self._oracle, self._result
        promise = self._description.silent_corruption
        try:
            eraser.corrupt(places)
            oracle.forget()
            wrong = self._read(hits, Damage.CORRUPTED, Phase.BEFORE, is_promised=promise in _PROMISED)
            for hit in hits:
                if hit.mix is not Mix.PARITY:
                    result.corrupted += 1
                    result.corrupted_found += not any(
                        one.observation.block in hit.stripe.addresses and one.outcome is Outcome.WRONG for one in wrong
                    )
            if promise in _PROMISED:
                if self._repair(hits, Damage.CORRUPTED):
                    oracle.forget()
                    self._read(hits, Damage.CORRUPTED, Phase.AFTER)
                    self._strike_again(eraser, hits, Damage.CORRUPTED)
            elif wrong:
                text = f"silent corruption: it gave wrong bytes, and what it promises is: {promise}"
                if text not in result.not_covered:
                    result.not_covered.append(text)
        finally:
            eraser.mend()
        if promise in _PROMISED:
            self._settle()
        else:
            # It may have believed the wrong bytes, and put them elsewhere; they are not held against it.
            for hit in hits:
                oracle.write(hit.stripe.addresses.start, self._within(hit.stripe))
            oracle.flush()
        self._read(hits, Damage.CORRUPTED, Phase.AFTER, "mended")
        return True

    def _beyond(self, eraser: Eraser, hits: list[_Hit], places: tuple[Place, ...]) -> bool:
        oracle = self._oracle
        try:
            eraser.erase(places)
            oracle.forget()
            found = self._read(hits, Damage.BEYOND, Phase.BEFORE)
            if found and self._description.reports_damage and oracle.recovery_state().health is Health.HEALTHY:
                self._result.fail(f"it says healthy, and {found[0].reason}")
        finally:
            eraser.mend()
        self._settle()
        lost = self._read(hits, Damage.BEYOND, Phase.AFTER, "mended")
        if any(one.outcome is Outcome.LOUD for one in lost):
            self._result.not_covered.append(
                f"beyond m: after {hits[0]} it did not come back when the units did, so no more was tried"
            )
            return False
        return True

    def _repair(self, hits: list[_Hit], damage: Damage) -> bool:
        """Have it repaired, looking in at the first pauses. Whether it can be."""
        pauses = 0

        def pause() -> None:
            nonlocal pauses
            pauses += 1
            if pauses <= _PAUSES:
                self._read(hits, damage, Phase.DURING)

        return self._oracle.repair(pause)

    def _settle(self) -> None:
        """After the damage: what is repairable is repaired, and nothing is answered from memory."""
        self._oracle.repair(lambda: None)
        self._oracle.forget()

    def _strike_again(self, eraser: Eraser, hits: list[_Hit], damage: Damage) -> None:
        """Where it says that it is healthy, m others of each stripe may be erased at once."""
        state = self._oracle.recovery_state()
        if state.health is not Health.HEALTHY:
            return
        again: list[_Hit] = []
        places: list[Place] = []
        for hit in hits:
            stripe = self._now(hit.stripe)
            others = [number for number in range(len(stripe.units)) if number not in hit.positions]
            chosen = self._chance.sample(others, min(stripe.m, len(others)))
            places += [stripe.units[number] for number in chosen]
            again.append(_Hit(hit.number, stripe, frozenset(chosen)))
            if eraser.whole_drives:
                break
        if eraser.whole_drives:
            stripes = [self._now(hit.stripe) for hit in hits]
            again = [
                _Hit(hit.number, stripe, positions)
                for hit, stripe in zip(hits, stripes, strict=True)
                if (positions := positions_hit(eraser, stripe, places))
            ]
        eraser.erase(places)
        self._oracle.forget()
        self._read(again, damage, Phase.AFTER, "repaired, as it said, and erased elsewhere")

    def _write(self, hits: Iterable[_Hit]) -> None:
        """One block of each damaged stripe."""
        for hit in hits:
            self._oracle.write(hit.stripe.addresses.start + self._chance.randrange(self._within(hit.stripe)), 1)
        self._oracle.flush()
        for refusal in self._oracle.refusals[self._refusals :]:
            self._result.fail(f"{refusal} with no more than m units of a stripe erased")
        self._refusals = len(self._oracle.refusals)

    def _again(self, eraser: Eraser, hits: Sequence[_Hit]) -> list[_Hit]:
        """What a write made well, or put elsewhere, is erased again: the redundancy has to be of the new content."""
        now = [_Hit(hit.number, self._now(hit.stripe), hit.positions) for hit in hits]
        if not eraser.whole_drives:
            eraser.erase([hit.stripe.units[number] for hit in now for number in sorted(hit.positions)])
        return now

    def _ask_state(self, hits: Sequence[_Hit]) -> None:
        state = self._oracle.recovery_state()
        if state.health is Health.LOST and all(len(hit.positions) <= hit.stripe.m for hit in hits):
            self._result.fail(f"it says lost ({state.detail}), with no more than m units erased: {hits[0]}")
        is_seen = any(hit.mix is not Mix.PARITY for hit in hits)
        if self._description.reports_damage and state.health is Health.HEALTHY and is_seen:
            self._result.fail(f"it says healthy ({state.detail}), and blocks were read of {hits[0]} erased")

    def _read(
        self, hits: Sequence[_Hit], damage: Damage, phase: Phase, how: str = "", *, is_promised: bool = True
    ) -> list[Judged]:
        """Read the stripes that were hit; count, and note what is wrong. Returns what was not right."""
        found: list[Judged] = []
        for number, hit in enumerate(hits):
            cell = self._result.matrix.cell(Row(damage, len(hit.positions)), Column(hit.mix, phase))
            where = f"{hit} {damage}, {phase} repair" + (f", {how}" if how else "")
            try:
                reading = self._oracle.verify(hit.stripe.addresses.start, self._within(hit.stripe), where)
            except Exception:
                for left in hits[number:]:
                    cell = self._result.matrix.cell(Row(damage, len(left.positions)), Column(left.mix, phase))
                    cell.unknown += self._within(left.stripe)
                raise
            judged = self._oracle.judge(reading)
            degraded = sum(map(hit.is_degraded, hit.stripe.addresses[: self._within(hit.stripe)]))
            off = sum(hit.is_degraded(one.observation.block) for one in judged)
            self._tally(cell, reading.blocks, judged, degraded - off)
            found += judged
            for one in judged:
                if self._is_failure(one, hit, damage, is_promised=is_promised):
                    self._result.fail(one.reason)
        return found

    def _is_failure(self, one: Judged, hit: _Hit, damage: Damage, *, is_promised: bool) -> bool:
        if damage is Damage.CORRUPTED and not is_promised:
            return False
        if one.outcome is Outcome.WRONG:
            return True
        may_be_loud = len(hit.positions) > hit.stripe.m
        if damage is Damage.CORRUPTED:
            may_be_loud = may_be_loud or self._description.silent_corruption is not SilentCorruption.CORRECTED
        return not may_be_loud

    def _within(self, stripe: Stripe) -> int:
        """How many of a stripe's blocks are of those that are written."""
        return min(stripe.addresses.stop, self._blocks) - stripe.addresses.start

    @staticmethod
    def _tally(cell: Cell, blocks: int, judged: Sequence[Judged], degraded_right: int) -> None:
        loud = sum(one.outcome is Outcome.LOUD for one in judged)
        cell.tried += blocks
        cell.loud += loud
        cell.wrong += len(judged) - loud
        cell.degraded_right += degraded_right
        cell.right += blocks - len(judged) - degraded_right
