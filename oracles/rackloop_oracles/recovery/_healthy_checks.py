"""The checks of a system before anything is damaged: write, read back, survive a power cut."""

from __future__ import annotations

from collections.abc import Callable

from rackloop.seed import Stream
from rackloop_oracles.recovery._oracle import RecoveryOracle
from rackloop_oracles.recovery._patterns import Damage, Mix
from rackloop_oracles.recovery._result import Column, Phase, RecoveryResult, Row


class HealthyChecks:
    """The first ``blocks`` of the system of an oracle; what goes wrong is in ``result``."""

    def __init__(self, oracle: RecoveryOracle, result: RecoveryResult, blocks: int, chance: Stream) -> None:
        self._oracle = oracle
        self._result = result
        self._blocks = blocks
        self._chance = chance

    def fill(self) -> bool:
        """Write every block once and some again, and see that all is well before anything is damaged. Whether it is."""
        oracle, blocks = self._oracle, self._blocks
        acknowledged = oracle.write(0, blocks)
        again = sorted(self._chance.sample(range(blocks), min(blocks, max(1, min(256, blocks // 4)))))
        acknowledged += sum(oracle.write(block, 1) for block in again)
        is_flushed = oracle.flush()
        if acknowledged < blocks + len(again) or not is_flushed:
            self._result.fail(f"the system did not take what it was given, undamaged: {oracle.refusals[0]}")
            return False
        oracle.forget()
        return self._is_right_all_over(Phase.BEFORE, "undamaged")

    def survives(self, cut_power: Callable[[], None] | None) -> bool:
        """Power is cut with writes that were not flushed, then with ones that were. Whether all is well."""
        oracle, blocks = self._oracle, self._blocks
        if cut_power is None:
            return True
        before = len(oracle.refusals)
        for is_flushed in (False, True):
            for block in sorted(self._chance.sample(range(blocks), min(blocks, 64))):
                oracle.write(block, 1)
            if is_flushed:
                oracle.flush()
            oracle.cut_power(cut_power)
            how = "power was cut, after a flush" if is_flushed else "power was cut"
            is_right = self._is_right_all_over(Phase.AFTER, how)
            if refused := oracle.refusals[before:]:
                self._result.fail(f"undamaged, {'after' if is_flushed else 'before'} power was cut: {refused[0]}")
            if refused or not is_right:
                return False
        return True

    def is_unharmed(self) -> bool:
        """Once what was erased is repaired and mended, no block may have been harmed by that. Whether all is well."""
        self._oracle.forget()
        return self._is_right_all_over(Phase.AFTER, "when all was repaired and mended")

    def _is_right_all_over(self, phase: Phase, how: str) -> bool:
        reading = self._oracle.verify(0, self._blocks, how)
        wrong = self._oracle.judge(reading)
        self._result.matrix.cell(Row(Damage.NONE, 0), Column(Mix.NONE, phase)).count(reading.blocks, wrong, 0)
        for one in wrong:
            self._result.fail(one.reason)
        return not wrong
