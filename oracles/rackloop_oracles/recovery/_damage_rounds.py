"""The rounds of a campaign: stripes damaged, read, repaired and mended, one kind of damage at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from rackloop.seed import Stream
from rackloop_oracles.recovery._eraser import Eraser, positions_hit
from rackloop_oracles.recovery._oracle import Reading, RecoveryOracle
from rackloop_oracles.recovery._patterns import Case, Damage
from rackloop_oracles.recovery._plan import Hit, Way
from rackloop_oracles.recovery._result import Column, Phase, RecoveryResult, Row, add_once
from rackloop_oracles.recovery._system import Health, Place, Repairs, SilentCorruption, Stripe
from rackloop_oracles.recovery._verdicts import Judged, Outcome

_PAUSES = 2
# How often all of a damaged stripe is written.
_WHOLE_STRIPES = 0.25
# How often, after the first time, a lot is damaged again and written while it is repaired.
_AMID_REPAIRS = 0.25


class DamageRounds:
    """Damages stripes of ``oracle``'s system with ``eraser`` and puts what comes of it into ``result``.

    The system holds its first ``blocks``, written and undamaged. Each kind of damage takes the stripes that are hit
    and the places to damage, and returns whether more of the kind makes sense; ``writes``: stripes are written while
    they are damaged.
    """

    def __init__(
        self,
        oracle: RecoveryOracle,
        eraser: Eraser,
        result: RecoveryResult,
        chance: Stream,
        *,
        blocks: int,
        writes: bool,
    ) -> None:
        self._oracle = oracle
        self._eraser = eraser
        self._result = result
        self._chance = chance
        self._blocks = blocks
        self._writes = writes
        self._description = oracle.description
        self._refusals = len(oracle.refusals)
        # That it said to be healthy, of damaged blocks: no lie before the eraser is known to be in effect.
        self._lies: list[str] = []
        self._unproven = self._repaired = 0
        self._amid = 1.0

    def aim(self, lot: Sequence[Case], stripes: Sequence[Stripe]) -> tuple[list[Hit], list[Place]]:
        """The stripes that are hit with the units of these cases, where they lie now, and those units' places."""
        now = {case.stripe: self._now(stripes[case.stripe]) for case in lot}
        places = [now[case.stripe].units[number] for case in lot for number in sorted(case.positions)]
        if self._eraser.whole_drives:
            now = {number: self._now(stripe) for number, stripe in enumerate(stripes)}
        hits = [
            Hit(number, stripe, positions)
            for number, stripe in now.items()
            if (positions := positions_hit(self._eraser, stripe, places))
        ]
        return hits, places

    def erased(self, hits: list[Hit], places: Sequence[Place]) -> bool:
        """At most m units of each stripe erased."""
        oracle = self._oracle
        with self._damaged(self._eraser.erase, places):
            self._read(hits, Damage.ERASED, Phase.BEFORE, way=Way.ACROSS)
            self._ask_state(hits)
            if self._writes:
                self._write(hits)
                hits = self._again(hits)
                oracle.forget()
                self._read(hits, Damage.ERASED, Phase.BEFORE, "written while erased", way=Way.ALONE)
            if self._repair(hits, Damage.ERASED):
                oracle.forget()
                self._read(hits, Damage.ERASED, Phase.AFTER)
                self._strike_again(hits, Damage.ERASED)
        self._settle(hits, Damage.ERASED)
        self._read(hits, Damage.ERASED, Phase.AFTER, "mended")
        if self._writes and hits and isinstance(oracle.system, Repairs) and self._chance.random() < self._amid:
            self._amid = _AMID_REPAIRS
            self._write_amid_repair(hits)
        return True

    def beyond(self, hits: list[Hit], places: Sequence[Place]) -> bool:
        """One unit more than m of each stripe erased."""
        with self._damaged(self._eraser.erase, places):
            found = self._read(hits, Damage.BEYOND, Phase.BEFORE)
            if found and self._description.reports_damage and self._oracle.recovery_state().health is Health.HEALTHY:
                self._result.fail(f"it says healthy, and {found[0].reason}")
            self._expect_loud(hits, found, "erased")
        self._settle(hits, Damage.BEYOND)
        lost = self._read(hits, Damage.BEYOND, Phase.AFTER, "mended")
        if any(one.outcome is Outcome.LOUD for one in lost):
            self._result.not_covered.append(
                f"beyond m: after {hits[0]} it did not come back when the units did, so no more was tried"
            )
            return False
        return True

    def corrupted(self, hits: list[Hit], places: Sequence[Place]) -> bool:
        """At most m units of each stripe silently wrong."""
        oracle, result = self._oracle, self._result
        promise = self._description.silent_corruption
        with self._damaged(self._eraser.corrupt, places):
            wrong = self._read(hits, Damage.CORRUPTED, Phase.BEFORE, is_promised=promise.is_noticed)
            for hit in hits:
                if self._is_read(hit):
                    result.corrupted += 1
                    result.corrupted_found += not any(
                        one.observation.block in hit.stripe.addresses and one.outcome is Outcome.WRONG for one in wrong
                    )
            if promise.is_noticed:
                if self._repair(hits, Damage.CORRUPTED):
                    oracle.forget()
                    self._read(hits, Damage.CORRUPTED, Phase.AFTER)
                    self._strike_again(hits, Damage.CORRUPTED)
            elif any(one.outcome is Outcome.WRONG for one in wrong):
                add_once(
                    result.not_covered, f"silent corruption: it gave wrong bytes, and what it promises is: {promise}"
                )
        if promise.is_noticed:
            self._settle(hits, Damage.CORRUPTED)
        else:
            # It may have believed the wrong bytes, and put them elsewhere; they are not held against it.
            for hit in hits:
                oracle.write(hit.stripe.addresses.start, self._within(hit.stripe))
            oracle.flush()
            self._fail_refused("with nothing damaged any more")
        self._read(hits, Damage.CORRUPTED, Phase.AFTER, "mended")
        return True

    def corrupted_beyond(self, hits: list[Hit], places: Sequence[Place]) -> bool:
        """More than m silently wrong, of who promises to notice: nothing is given that is wrong."""
        with self._damaged(self._eraser.corrupt, places):
            self._expect_loud(hits, self._read(hits, Damage.CORRUPTED, Phase.BEFORE), "silently wrong")
        self._settle(hits, Damage.CORRUPTED)
        lost = self._read(hits, Damage.CORRUPTED, Phase.AFTER, "mended")
        return not any(one.outcome is Outcome.LOUD for one in lost)

    def doubt_eraser(self, text: str) -> None:
        """Note once that the eraser may not be in effect."""
        add_once(
            self._result.doubts,
            f"{text}: is the eraser in effect, or does {self._description.name} answer from a cache?",
        )

    def conclude(self) -> None:
        """Note what can only be said in the end: lies about its health, and repairs that nothing proved."""
        result = self._result
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

    @contextmanager
    def _damaged(self, damage: Callable[[Sequence[Place]], None], places: Sequence[Place]) -> Iterator[None]:
        """Places damaged, with nothing answered from memory; mended in the end."""
        try:
            damage(places)
            self._oracle.forget()
            yield
        finally:
            self._eraser.mend()

    def _now(self, stripe: Stripe) -> Stripe:
        """The stripe where it lies now: that may have changed with what was written and repaired."""
        return self._oracle.places(stripe.addresses.start) or stripe

    def _write_amid_repair(self, hits: list[Hit]) -> None:
        """The same again, and written while it is repaired: apart, as what is written may be whole without a repair."""
        hits, places = self._aimed(hits, {hit.number: hit.positions for hit in hits})
        with self._damaged(self._eraser.erase, places):
            self._read(hits, Damage.ERASED, Phase.BEFORE)
            self._repair(hits, Damage.ERASED, writes=True)
            self._oracle.forget()
            self._read(hits, Damage.ERASED, Phase.AFTER, "written during repair")
        self._settle(hits, Damage.ERASED)
        self._read(hits, Damage.ERASED, Phase.AFTER, "mended, written during repair")

    def _aimed(self, hits: Sequence[Hit], positions: Mapping[int, frozenset[int]]) -> tuple[list[Hit], list[Place]]:
        """Stripes where they lie now, with these positions damaged; of whole drives, those of the first."""
        now = [Hit(hit.number, self._now(hit.stripe), positions[hit.number]) for hit in hits]
        aimed = now[:1] if self._eraser.whole_drives else now
        places = [hit.stripe.units[number] for hit in aimed for number in sorted(hit.positions)]
        if self._eraser.whole_drives:
            found = ((hit, positions_hit(self._eraser, hit.stripe, places)) for hit in now)
            now = [Hit(hit.number, hit.stripe, struck) for hit, struck in found if struck]
        return now, places

    def _expect_loud(self, hits: Sequence[Hit], found: Sequence[Judged], what: str) -> None:
        """Expect an error for blocks of more than m lost units."""
        told = {one.observation.block for one in found}
        for hit in hits:
            blocks = hit.stripe.addresses[: self._within(hit.stripe)]
            if hit.is_beyond and any(map(hit.is_degraded, blocks)) and told.isdisjoint(blocks):
                self.doubt_eraser(f"with more than m units {what} a stripe was given whole")

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

        is_asked = self._oracle.repair(pause)
        self._judge_repair(hits, damage, f"with no more than m units of a stripe {damage}")
        return is_asked

    def _settle(self, hits: Sequence[Hit], damage: Damage) -> None:
        """After the damage: what is repairable is repaired, and nothing is answered from memory."""
        self._oracle.repair(lambda: None)
        self._judge_repair(hits, damage, "with nothing damaged any more")
        self._oracle.forget()

    def _judge_repair(self, hits: Iterable[Hit], damage: Damage, how: str) -> None:
        """Hold a repair that was refused against the system, unless what was damaged may have it be."""
        if not any(self._may_be_loud(hit, damage) for hit in hits):
            self._fail_refused(how)
        elif len(self._oracle.refusals) > self._refusals:
            self._refusals = len(self._oracle.refusals)
            add_once(self._result.not_covered, f"{damage}: repairs were refused, as they may be there")

    def _strike_again(self, hits: list[Hit], damage: Damage) -> None:
        """Erase m others of each stripe at once, where the system says that it is healthy."""
        self._repaired += 1
        state = self._oracle.recovery_state()
        if state.health is Health.LOST and not any(self._may_be_loud(hit, damage) for hit in hits):
            self._result.fail(f"it says lost ({state.detail}) after a repair of no more than m units: {hits[0]}")
        if state.health is not Health.HEALTHY:
            self._unproven += 1
            return
        others = {}
        for hit in hits:
            left = [number for number in range(len(hit.stripe.units)) if number not in hit.positions]
            others[hit.number] = frozenset(self._chance.sample(left, min(hit.stripe.m, len(left))))
        again, places = self._aimed(hits, others)
        self._eraser.erase(places)
        self._oracle.forget()
        self._read(again, damage, Phase.AFTER, "repaired, as it said, and erased elsewhere", is_healthy=True)

    def _write(self, hits: Iterable[Hit]) -> None:
        """One block of each damaged stripe, or now and then all."""
        for hit in hits:
            start, count = hit.stripe.addresses.start, self._within(hit.stripe)
            if self._chance.random() < _WHOLE_STRIPES:
                self._oracle.write(start, count)
            else:
                self._oracle.write(start + self._chance.randrange(count), 1)
        self._oracle.flush()
        self._fail_refused("with no more than m units of a stripe erased")

    def _fail_refused(self, how: str) -> None:
        """Hold against the system what it refused since this was last asked."""
        for refusal in self._oracle.refusals[self._refusals :]:
            self._result.fail(f"{refusal} {how}")
        self._refusals = len(self._oracle.refusals)

    def _again(self, hits: Sequence[Hit]) -> list[Hit]:
        """Erase again what a write made well or put elsewhere: the redundancy has to be of the new content."""
        now = [Hit(hit.number, self._now(hit.stripe), hit.positions) for hit in hits]
        if not self._eraser.whole_drives:
            self._eraser.erase([hit.stripe.units[number] for hit in now for number in sorted(hit.positions)])
        return now

    def _ask_state(self, hits: Sequence[Hit]) -> None:
        state = self._oracle.recovery_state()
        if state.health is Health.LOST and all(len(hit.positions) <= hit.stripe.m for hit in hits):
            self._result.fail(f"it says lost ({state.detail}), with no more than m units erased: {hits[0]}")
        is_seen = any(map(self._is_read, hits))
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
        is_healthy: bool = False,
    ) -> list[Judged]:
        """Read the stripes that were hit; count, and note what is wrong. Returns what was not right.

        ``is_healthy``: it said so before the units of the hits were erased.
        """
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
                # Who says healthy has mended what was silently wrong, and lost no more than the hits' units since.
                if self._is_failure(one, hit, Damage.ERASED if is_healthy else damage, is_promised=is_promised):
                    self._result.fail(one.reason)
        return found

    def _is_failure(self, one: Judged, hit: Hit, damage: Damage, *, is_promised: bool) -> bool:
        if damage is Damage.CORRUPTED and not is_promised:
            return False
        if one.outcome is Outcome.WRONG:
            return True
        return not self._may_be_loud(hit, damage)

    def _may_be_loud(self, hit: Hit, damage: Damage) -> bool:
        """Whether it may say of a stripe that was hit that it cannot."""
        is_corrected = self._description.silent_corruption is SilentCorruption.CORRECTED
        return hit.is_beyond or (damage is Damage.CORRUPTED and not is_corrected)

    def _is_read(self, hit: Hit) -> bool:
        """Whether a damaged unit holds any of the blocks that are written, and so are read."""
        return any(map(hit.is_degraded, hit.stripe.addresses[: self._within(hit.stripe)]))

    def _within(self, stripe: Stripe) -> int:
        """The number of a stripe's blocks among those that are written."""
        return min(stripe.addresses.stop, self._blocks) - stripe.addresses.start
