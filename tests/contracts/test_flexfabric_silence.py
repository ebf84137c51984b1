"""A connection of which the switch knows nothing any more, as after a power loss that no packet told of."""

from __future__ import annotations

from contextlib import closing

from rackloop.abilities import LiveMap
from rackloop_drivers.fabric.flexfabric import FlexFabric
from tests.contracts.test_flexfabric_recovery import AFTER, CHANGE, connect, switch
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
