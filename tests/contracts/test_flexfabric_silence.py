"""A switch that is late with every answer, and a connection of which it knows nothing any more."""

from __future__ import annotations

from contextlib import closing

import pytest

from rackloop.abilities import LiveMap
from rackloop_drivers.fabric.flexfabric import FlexFabric, LineFault, LineFaultRule
from tests.contracts.test_flexfabric_recovery import AFTER, CHANGE, WIRES, connect, install, switch
from tests.deadlines import soon
from tests.switch_in_memory import tcp
from tests.switch_wires import forgotten


def test_a_connection_that_the_switch_forgot_is_made_anew() -> None:
    with (
        switch() as thread,
        forgotten(tcp(thread)) as (url, is_lost),
        closing(FlexFabric(connect(url, token=5))) as fabric,
    ):
        staged = fabric.stage(CHANGE, soon())
        is_lost.set()
        assert fabric.trigger(staged, soon()).generation == 2
        assert fabric.live_map(soon()) == LiveMap(2, AFTER)


@pytest.mark.parametrize("wire", sorted(WIRES))
def test_a_switch_that_is_late_with_every_answer_is_found_and_used(wire: str) -> None:
    with switch() as thread:
        install(thread, LineFaultRule(LineFault.LATE, count=None, delay_s=0.15))
        with closing(FlexFabric(connect(WIRES[wire](thread), answer_within_s=0.1))) as fabric:
            assert fabric.apply(CHANGE, soon()).generation == 2
            assert fabric.live_map(soon()) == LiveMap(2, AFTER)
