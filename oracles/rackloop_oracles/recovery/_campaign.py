"""A recovery campaign: damage stripe by stripe by a plan, reads, and verdicts on them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from rackloop.errors import DeadlineExceeded, NotSupported
from rackloop.seed import stream
from rackloop_oracles.recovery._eraser import Eraser, positions_hit
from rackloop_oracles.recovery._healthy_checks import HealthyChecks
from rackloop_oracles.recovery._oracle import Reading, RecoveryOracle
from rackloop_oracles.recovery._patterns import Case, Damage, Mix, Patterns, rounds
from rackloop_oracles.recovery._plan import CampaignPlan, Hit, Progress, Way, stripes_to_damage
from rackloop_oracles.recovery._result import Column, Phase, RecoveryResult, Row
from rackloop_oracles.recovery._system import Health, Place, Repairs, SilentCorruption, Stripe
from rackloop_oracles.recovery._verdicts import Judged, Outcome

_PROMISED = frozenset({SilentCorruption.CORRECTED, SilentCorruption.DETECTED})
_PAUSES = 2
# Cases of more than m units silently wrong, and how often all of a damaged stripe is written.
_TOO_MUCH = 3
_WHOLE_STRIPES = 0.25
# How often, after the first time, a lot is damaged again and written while it is repaired.
_AMID_REPAIRS = 0.25


class Campaign:
    """Writes the blocks of ``oracle``'s system, then damages and verifies by a plan; see ``docs/reference``.

    Without an eraser, or where the system does not say where its stripes lie, it verifies what it wrote and is
    otherwise unknown. ``progress`` hears of every round. ``cut_power`` has the system lose power, all that it had in
    memory with it, and returns when it is back; without it that is not covered.
    """

    def __init__(
        self,
        oracle: RecoveryOracle,
        eraser: Eraser | None,
        plan: CampaignPlan,
        progress: Callable[[Progress], None] = lambda _: None,
        *,
        cut_power: Callable[[], None] | None = None,
    ) -> None:
        self._oracle = oracle
        self._eraser = eraser
        self._plan = plan
        self._progress = progress
        self._cut_power = cut_power
        self._chance = stream(plan.seed, "recovery")
        self._description = oracle.description
        self._blocks = self._description.blocks if plan.blocks is None else plan.blocks
        self._result = RecoveryResult(self._description.name, plan.seed)
        self._refusals = 0
        # It said that it was healthy while it was damaged, if it was: nobody knows that before an eraser was loud.
        self._lies: list[str] = []
        self._unproven = self._repaired = 0
        self._amid = 1.0

    def run(self) -> RecoveryResult:
        """Carry it out. It raises nothing: what kept it from an answer is among the result's doubts."""
        result = self._result
        try:
            self._carry_out()
        except DeadlineExceeded as error:
            result.doubts.append(f"not finished: {error}")
        except Exception as error:  # noqa: BLE001 - a checker that crashed knows nothing, whatever it crashed on
            result.doubts.append(f"the checker or what it asked failed: {type(error).__name__}: {error}")
        self._conclude()
        return result

    def _carry_out(self) -> None:
        healthy = HealthyChecks(self._oracle, self._result, self._blocks, self._chance)
        self._progress(Progress("fill", 0, self._blocks))
        if not healthy.fill() or not healthy.survives(self._cut_power):
            return
        self._refusals = len(self._oracle.refusals)
        stripes = stripes_to_damage(self._oracle.places, self._blocks, self._plan.stripes, self._chance)
        self._compare(stripes)
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
            # Last: a system may need more than the end of the damage to come back from these.
            (patterns.beyond(self._plan.beyond), self._beyond),
            (self._corrupted_beyond(patterns), self._corrupted_too_much),
        )
        for cases, carry_out in parts:
            self._part(cases, stripes, patterns, partial(carry_out, eraser), eraser)
        if self._plan.beyond and not self._result.matrix.total([Damage.BEYOND]).loud:
            self._doubt_eraser("with more than m units erased nothing was loud")

    def _doubt_eraser(self, text: str) -> None:
        _note(
            self._result.doubts,
            f"{text}: is the eraser in effect, or does {self._description.name} answer from a cache?",
        )

    def _conclude(self) -> None:
        """What can only be said in the end."""
        result, plan = self._result, self._plan
        is_in_effect = result.matrix.total([Damage.BEYOND]).loud and not result.doubts
        for lie in self._lies:
            if is_in_effect:
                result.fail(lie)
            else:
                result.doubts.append(f"{lie}; nothing shows that the eraser is in effect")
        if self._unproven:
            result.not_covered.append(
                f"what repairs brought back: after {self._unproven} of {self._repaired} it did not say healthy, so "
                "nothing more was taken from it"
            )
        if not plan.beyond:
            result.not_covered.append("beyond m: not asked for, so that nothing shows that the eraser is in effect")
        if not plan.corruptions:
            result.not_covered.append("silent corruption: not asked for")
        if self._cut_power is None:
            result.not_covered.append("loss of power: it is not cut")
        result.not_covered += result.coverage.left_out()

    def _compare(self, stripes: Sequence[Stripe]) -> None:
        """Its stripes have to be those of which it spoke, or other patterns are tried than it promises."""
        k, m = self._description.k, self._description.m
        for stripe in stripes:
            if (m is not None and stripe.m != m) or (k is not None and stripe.data_units > k):
                self._result.doubts.append(
                    f"it describes itself with k = {k} and m = {m}, and stripe {stripe.name} lies in "
                    f"{stripe.data_units} + {stripe.m} units"
                )
                return

    def _part(
        self,
        cases: Sequence[Case],
        stripes: Sequence[Stripe],
        patterns: Patterns,
        carry_out: Callable[[list[Hit], tuple[Place, ...]], bool],
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
                Hit(number, stripe, positions)
                for number, stripe in now.items()
                if (positions := positions_hit(eraser, stripe, places))
            ]
            try:
                goes_on = carry_out(hits, places)
            except NotSupported as error:
                _note(self._result.not_covered, f"{part}: {error}")
                return
            for hit in hits:
                patterns.note(hit.number, hit.positions, lot[0].damage)
            if not goes_on:
                return
        self._progress(Progress(part, len(lots), len(lots)))

    def _now(self, stripe: Stripe) -> Stripe:
        return self._oracle.places(stripe.addresses.start) or stripe

    def _erased(self, eraser: Eraser, hits: list[Hit], places: tuple[Place, ...]) -> bool:
        oracle = self._oracle
        try:
            eraser.erase(places)
            oracle.forget()
            self._read(hits, Damage.ERASED, Phase.BEFORE, way=Way.ACROSS)
            self._ask_state(hits)
            if self._plan.writes:
                self._write(hits)
                hits = self._again(eraser, hits)
                oracle.forget()
                self._read(hits, Damage.ERASED, Phase.BEFORE, "written while erased", way=Way.ALONE)
            if self._repair(hits, Damage.ERASED):
                oracle.forget()
                self._read(hits, Damage.ERASED, Phase.AFTER)
                self._strike_again(eraser, hits, Damage.ERASED)
        finally:
            eraser.mend()
        self._settle()
        self._read(hits, Damage.ERASED, Phase.AFTER, "mended")
        if self._plan.writes and hits and isinstance(oracle.system, Repairs) and self._chance.random() < self._amid:
            self._amid = _AMID_REPAIRS
            self._write_amid_repair(eraser, hits)
        return True

    def _write_amid_repair(self, eraser: Eraser, hits: list[Hit]) -> None:
        """The same again, and written while it is repaired: apart, as what is written may be whole without a repair."""
        hits, places = self._aimed(eraser, hits, {hit.number: hit.positions for hit in hits})
        try:
            eraser.erase(places)
            self._oracle.forget()
            self._read(hits, Damage.ERASED, Phase.BEFORE)
            self._repair(hits, Damage.ERASED, writes=True)
            self._oracle.forget()
            self._read(hits, Damage.ERASED, Phase.AFTER, "written during repair")
        finally:
            eraser.mend()
        self._settle()
        self._read(hits, Damage.ERASED, Phase.AFTER, "mended, written during repair")

    def _aimed(
        self, eraser: Eraser, hits: Sequence[Hit], positions: Mapping[int, frozenset[int]]
    ) -> tuple[list[Hit], list[Place]]:
        """Stripes where they lie now, with these positions damaged; of whole drives, those of the first."""
        now = [Hit(hit.number, self._now(hit.stripe), positions[hit.number]) for hit in hits]
        aimed = now[:1] if eraser.whole_drives else now
        places = [hit.stripe.units[number] for hit in aimed for number in sorted(hit.positions)]
        if eraser.whole_drives:
            found = ((hit, positions_hit(eraser, hit.stripe, places)) for hit in now)
            now = [Hit(hit.number, hit.stripe, struck) for hit, struck in found if struck]
        return now, places

    def _corrupted(self, eraser: Eraser, hits: list[Hit], places: tuple[Place, ...]) -> bool:
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
                _note(result.not_covered, f"silent corruption: it gave wrong bytes, and what it promises is: {promise}")
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

    def _beyond(self, eraser: Eraser, hits: list[Hit], places: tuple[Place, ...]) -> bool:
        oracle = self._oracle
        try:
            eraser.erase(places)
            oracle.forget()
            found = self._read(hits, Damage.BEYOND, Phase.BEFORE)
            if found and self._description.reports_damage and oracle.recovery_state().health is Health.HEALTHY:
                self._result.fail(f"it says healthy, and {found[0].reason}")
            self._expect_loud(hits, found, "erased")
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

    def _expect_loud(self, hits: Sequence[Hit], found: Sequence[Judged], what: str) -> None:
        """Expect an error for blocks of more than m lost units."""
        told = {one.observation.block for one in found}
        for hit in hits:
            blocks = hit.stripe.addresses[: self._within(hit.stripe)]
            if hit.is_beyond and any(map(hit.is_degraded, blocks)) and told.isdisjoint(blocks):
                self._doubt_eraser(f"with more than m units {what} a stripe was given whole")

    def _corrupted_beyond(self, patterns: Patterns) -> list[Case]:
        if self._description.silent_corruption not in _PROMISED:
            return []
        return patterns.corruptions_beyond(min(_TOO_MUCH, self._plan.corruptions))

    def _corrupted_too_much(self, eraser: Eraser, hits: list[Hit], places: tuple[Place, ...]) -> bool:
        """More than m silently wrong, of who promises to notice: nothing is given that is wrong."""
        try:
            eraser.corrupt(places)
            self._oracle.forget()
            self._expect_loud(hits, self._read(hits, Damage.CORRUPTED, Phase.BEFORE), "silently wrong")
        finally:
            eraser.mend()
        self._settle()
        lost = self._read(hits, Damage.CORRUPTED, Phase.AFTER, "mended")
        return not any(one.outcome is Outcome.LOUD for one in lost)

    def _repair(self, hits: list[Hit], damage: Damage, *, writes: bool = False) -> bool:
        """Have it repaired, looking in at the first pauses, and writing at the first. Whether it can be."""
        pauses = 0

        def pause() -> None:
            nonlocal pauses
            pauses += 1
            if pauses <= _PAUSES:
                if writes and pauses == 1:
                    self._write(hits)
                self._read(hits, damage, Phase.DURING, way=Way.ALONE if pauses > 1 else Way.WHOLE)

        return self._oracle.repair(pause)

    def _settle(self) -> None:
        """After the damage: what is repairable is repaired, and nothing is answered from memory."""
        self._oracle.repair(lambda: None)
        self._oracle.forget()

    def _strike_again(self, eraser: Eraser, hits: list[Hit], damage: Damage) -> None:
        """Where it says that it is healthy, m others of each stripe may be erased at once."""
        self._repaired += 1
        if self._oracle.recovery_state().health is not Health.HEALTHY:
            self._unproven += 1
            return
        others = {}
        for hit in hits:
            left = [number for number in range(len(hit.stripe.units)) if number not in hit.positions]
            others[hit.number] = frozenset(self._chance.sample(left, min(hit.stripe.m, len(left))))
        again, places = self._aimed(eraser, hits, others)
        eraser.erase(places)
        self._oracle.forget()
        self._read(again, damage, Phase.AFTER, "repaired, as it said, and erased elsewhere")

    def _write(self, hits: Iterable[Hit]) -> None:
        """One block of each damaged stripe, or now and then all."""
        for hit in hits:
            start, count = hit.stripe.addresses.start, self._within(hit.stripe)
            if self._chance.random() < _WHOLE_STRIPES:
                self._oracle.write(start, count)
            else:
                self._oracle.write(start + self._chance.randrange(count), 1)
        self._oracle.flush()
        for refusal in self._oracle.refusals[self._refusals :]:
            self._result.fail(f"{refusal} with no more than m units of a stripe erased")
        self._refusals = len(self._oracle.refusals)

    def _again(self, eraser: Eraser, hits: Sequence[Hit]) -> list[Hit]:
        """What a write made well, or put elsewhere, is erased again: the redundancy has to be of the new content."""
        now = [Hit(hit.number, self._now(hit.stripe), hit.positions) for hit in hits]
        if not eraser.whole_drives:
            eraser.erase([hit.stripe.units[number] for hit in now for number in sorted(hit.positions)])
        return now

    def _ask_state(self, hits: Sequence[Hit]) -> None:
        state = self._oracle.recovery_state()
        if state.health is Health.LOST and all(len(hit.positions) <= hit.stripe.m for hit in hits):
            self._result.fail(f"it says lost ({state.detail}), with no more than m units erased: {hits[0]}")
        is_seen = any(hit.mix is not Mix.PARITY for hit in hits)
        if self._description.reports_damage and state.health is Health.HEALTHY and is_seen:
            self._lies.append(f"it says healthy ({state.detail}), and blocks were read of {hits[0]} erased")

    def _read(
        self,
        hits: Sequence[Hit],
        damage: Damage,
        phase: Phase,
        how: str = "",
        *,
        way: Way = Way.WHOLE,
        is_promised: bool = True,
    ) -> list[Judged]:
        """Read the stripes that were hit; count, and note what is wrong. Returns what was not right."""
        found: list[Judged] = []
        for number, hit in enumerate(hits):
            cell = self._result.matrix.cell(Row(damage, len(hit.positions)), Column(hit.mix, phase))
            where = f"{hit} {damage}, {phase} repair" + (f", {how}" if how else "")
            reading = Reading()
            try:
                for start, count in hit.spans(self._blocks, way):
                    reading.add(self._oracle.verify(start, count, where))
            except Exception:
                for left in hits[number:]:
                    cell = self._result.matrix.cell(Row(damage, len(left.positions)), Column(left.mix, phase))
                    cell.unknown += self._within(left.stripe)
                raise
            judged = self._oracle.judge(reading)
            degraded = sum(map(hit.is_degraded, hit.stripe.addresses[: self._within(hit.stripe)]))
            off = sum(hit.is_degraded(one.observation.block) for one in judged)
            cell.count(reading.blocks, judged, degraded - off)
            found += judged
            for one in judged:
                if self._is_failure(one, hit, damage, is_promised=is_promised):
                    self._result.fail(one.reason)
        return found

    def _is_failure(self, one: Judged, hit: Hit, damage: Damage, *, is_promised: bool) -> bool:
        if damage is Damage.CORRUPTED and not is_promised:
            return False
        if one.outcome is Outcome.WRONG:
            return True
        may_be_loud = hit.is_beyond
        if damage is Damage.CORRUPTED:
            may_be_loud = may_be_loud or self._description.silent_corruption is not SilentCorruption.CORRECTED
        return not may_be_loud

    def _within(self, stripe: Stripe) -> int:
        """How many of a stripe's blocks are of those that are written."""
        return min(stripe.addresses.stop, self._blocks) - stripe.addresses.start


def _note(texts: list[str], text: str) -> None:
    """Add a text that is not there yet."""
    if text not in texts:
        texts.append(text)
