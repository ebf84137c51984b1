"""A recovery campaign: damage stripe by stripe by a plan, reads, and verdicts on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rackloop.errors import DeadlineExceeded, LabError, NotSupported
from rackloop.measurement import Cause
from rackloop.seed import stream
from rackloop_oracles.recovery._damage_rounds import DamageRounds
from rackloop_oracles.recovery._eraser import Eraser
from rackloop_oracles.recovery._healthy_checks import HealthyChecks
from rackloop_oracles.recovery._oracle import RecoveryOracle
from rackloop_oracles.recovery._patterns import Case, Damage, Patterns, rounds
from rackloop_oracles.recovery._plan import CampaignPlan, Hit, Progress, stripes_to_damage
from rackloop_oracles.recovery._result import RecoveryResult, add_once
from rackloop_oracles.recovery._system import Place, Repairs, Stripe

# Cases of more than m units silently wrong.
_TOO_MUCH = 3


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
        self._rounds: DamageRounds | None = None

    def run(self) -> RecoveryResult:
        """Carry it out. It raises nothing: what kept it from an answer is among the result's doubts."""
        result = self._result
        try:
            self._carry_out()
        except DeadlineExceeded as error:
            result.doubts.append(f"not finished: {error}")
            if not self._oracle.has_ended:
                # What the system asked in its turn was late.
                result.cause_of_doubts = Cause.LAB
        except Exception as error:  # noqa: BLE001 - a checker that crashed knows nothing, whatever it crashed on
            result.doubts.append(f"the checker or what it asked failed: {type(error).__name__}: {error}")
            result.cause_of_doubts = Cause.LAB if isinstance(error, LabError) else Cause.HARNESS
        self._conclude()
        return result

    def _carry_out(self) -> None:
        healthy = HealthyChecks(self._oracle, self._result, self._blocks, self._chance)
        self._progress(Progress("fill", 0, self._blocks))
        if not healthy.fill() or not healthy.survives(self._cut_power):
            return
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
        self._rounds = damage = DamageRounds(
            self._oracle, eraser, self._result, self._chance, blocks=self._blocks, writes=self._plan.writes
        )
        parts = (
            (patterns.corruptions(self._plan.corruptions), damage.corrupted),
            # Last: a system may need more than the end of the damage to come back from these.
            (patterns.beyond(self._plan.beyond), damage.beyond),
            (self._corrupted_beyond(patterns), damage.corrupted_beyond),
        )
        self._part(patterns.erasures, stripes, patterns, damage.erased, damage, eraser)
        # Before what may lose more than that: what is lost there is not held against the blocks that nothing hit.
        if patterns.erasures and not healthy.is_unharmed():
            return
        for cases, carry_out in parts:
            self._part(cases, stripes, patterns, carry_out, damage, eraser)
        if self._plan.beyond and not self._result.matrix.total([Damage.BEYOND]).loud:
            damage.doubt_eraser("with more than m units erased nothing was loud")

    def _conclude(self) -> None:
        """Add the findings that only the end allows."""
        result, plan = self._result, self._plan
        if self._rounds:
            self._rounds.conclude()
            damaged = result.matrix.total([Damage.ERASED, Damage.BEYOND, Damage.CORRUPTED])
            if not (damaged.tried or result.failures or result.doubts):
                result.doubts.append("nothing was damaged: no case was asked for, or none could be made")
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
        carry_out: Callable[[list[Hit], Sequence[Place]], bool],
        damage: DamageRounds,
        eraser: Eraser,
    ) -> None:
        """One kind of damage, lot by lot, until a lot says that no more of it makes sense."""
        if not cases:
            return
        part = cases[0].damage.value
        lots = list(rounds(cases, 1 if eraser.whole_drives else self._plan.together))
        for done, lot in enumerate(lots):
            self._progress(Progress(part, done, len(lots)))
            hits, places = damage.aim(lot, stripes)
            try:
                goes_on = carry_out(hits, places)
            except NotSupported as error:
                # Few erasers can have bytes be wrong; one that does not even erase leaves the question open.
                is_erasure = lot[0].damage in {Damage.ERASED, Damage.BEYOND}
                add_once(self._result.doubts if is_erasure else self._result.not_covered, f"{part}: {error}")
                return
            for hit in hits:
                patterns.note(hit.number, hit.positions, lot[0].damage)
            if not goes_on:
                return
        self._progress(Progress(part, len(lots), len(lots)))

    def _corrupted_beyond(self, patterns: Patterns) -> list[Case]:
        if not self._description.silent_corruption.is_noticed:
            return []
        return patterns.corruptions_beyond(min(_TOO_MUCH, self._plan.corruptions))
