"""Maps that are staged ahead, on a switch that misbehaves: triggered exactly once, or one clear error."""

from __future__ import annotations

import pytest

from rackloop.abilities import LiveMap
from rackloop.errors import FabricError
from rackloop.portmap import Full
from rackloop_drivers.fabric.flexfabric import FlexFabric, LineFault, LineFaultRule
from tests.contracts.test_flexfabric_recovery import (
    AFTER,
    ANSWER_TROUBLE,
    BEFORE,
    CHANGE,
    WIRES,
    connect,
    install,
    switch,
)
from tests.deadlines import soon
from tests.switch_in_memory import tcp


@pytest.mark.parametrize("trouble", ANSWER_TROUBLE, ids=lambda rule: rule.act.value)
@pytest.mark.parametrize("wire", sorted(WIRES))
def test_what_was_staged_is_triggered_exactly_once(wire: str, trouble: LineFaultRule) -> None:
    with switch() as thread:
        session = connect(WIRES[wire](thread))
        fabric = FlexFabric(session)
        staged = fabric.stage(CHANGE, soon())
        assert fabric.live_map(soon()) == LiveMap(1, BEFORE)
        install(thread, LineFaultRule(trouble.act, match=":TRIG", delay_s=trouble.delay_s))
        assert fabric.trigger(staged, soon()).generation == 2
        assert fabric.live_map(soon()) == LiveMap(2, AFTER)
        session.close()


def test_what_was_staged_on_a_connection_that_broke_is_staged_again() -> None:
    with switch() as thread:
        url = tcp(thread)
        session = connect(url)
        fabric = FlexFabric(session)
        staged = fabric.stage(CHANGE, soon())
        session._drop()
        assert fabric.trigger(staged, soon()).generation == 2
        assert fabric.live_map(soon()) == LiveMap(2, AFTER)
        session.close()


def test_a_port_that_did_not_follow_a_trigger_is_named_and_hinders_no_undo() -> None:
    with switch() as thread:
        fabric = FlexFabric(connect(tcp(thread)))
        for _ in range(2):
            staged = fabric.stage(CHANGE, soon())
            install(thread, LineFaultRule(LineFault.STUCK_PORT, match=":TRIG", port=2))
            with pytest.raises(FabricError, match=r"ports \[1, 2, 18\] did not follow"):
                fabric.trigger(staged, soon())
            thread.call(lambda peer: peer.stick(2, stuck=False))
            fabric.apply(Full(BEFORE), soon())
            assert fabric.live_map(soon()).pairs == BEFORE
        fabric.close()
