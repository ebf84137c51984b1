"""The line that a controller which was killed, or lost its wire, left half said on a serial line."""

from __future__ import annotations

import os
from contextlib import closing

import pytest

from rackloop.abilities import LiveMap
from rackloop_drivers.fabric.flexfabric import FlexFabric, FlexFabricPhy
from tests.contracts.test_flexfabric_recovery import BEFORE, connect, serial, switch
from tests.deadlines import soon


@pytest.mark.parametrize(
    "half",
    ["PHY:DROP (@1),5", "ROUT:OPEN (@1)", "ROUT:OPEN:ALL", "ROUT:LOAD (@1!18);:TRIG", "*RST", "ROUT:GEN?;"],
)
def test_the_half_line_that_a_controller_left_on_a_serial_line_is_not_carried_out(half: str) -> None:
    with switch() as thread:
        url = serial(thread)
        line = os.open(url, os.O_WRONLY | os.O_NOCTTY)
        os.write(line, half.encode())
        with closing(connect(url)) as session:
            assert FlexFabric(session).live_map(soon()) == LiveMap(1, BEFORE)
            assert FlexFabricPhy(session).drop_counts([1], soon()) == {1: 0}
        os.close(line)
