"""What of a journalled act is forgotten, because nothing was done, and what keeps standing."""

from __future__ import annotations

import pytest

from rackloop.errors import FabricError
from rackloop.portmap import Open
from rackloop.record.acts import SaveBootMap
from tests.unit.harness.journalled_bench import SWAP, Bench


@pytest.mark.parametrize(
    ("code", "stands"),
    [
        *((code, False) for code in (-100, -109, -113, -203, -211, -221, -222, -224, -363)),
        *((code, True) for code in (0, -240, -310, -350, -410, 7)),
    ],
)
def test_only_what_the_switch_refuses_before_it_acts_is_forgotten(bench: Bench, code: int, stands: bool) -> None:
    def refuse() -> None:
        raise FabricError("the switch says no", code)

    bench.switch.before = refuse
    with pytest.raises(FabricError):
        bench.acting.fabric.apply(SWAP, bench.deadline)
    assert bool(bench.journal.standing("bench")) is stands


def test_an_act_whose_result_cannot_be_told_is_undone_all_the_same(bench: Bench) -> None:
    kept: list[int] = []
    recorder = bench.recorder.keeping(lambda entry: kept.append(entry.id))
    with pytest.raises(ZeroDivisionError):
        recorder.perform("switch", SaveBootMap(), [Open(frozenset({1}))], lambda: 0, lambda _: {"x": 1 // 0})
    assert kept == [entry.id for entry in bench.journal.standing("bench")]
    assert len(kept) == 1
