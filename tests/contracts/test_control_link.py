"""Remaps over a control link that is bad for as long as a fault stands: exactly once, or one clear error."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rackloop.abilities import LiveMap
from rackloop.errors import LabError
from rackloop.portmap import Partial, PortMap
from rackloop.seed import stream
from rackloop_drivers.fabric.flexfabric import (
    Exchange,
    FlexFabric,
    FlexFabricSession,
    LineFault,
    LineFaultRule,
    LineFaults,
    SwitchPeer,
    open_flexfabric,
)
from rackloop_labs.mock import MockBench
from tests.deadlines import CLOCK, soon
from tests.mock_rack import MockRack
from tests.switch_in_memory import switch_in_memory, tcp

ONE = PortMap.of([(1, 17), (2, 18)])
OTHER = PortMap.of([(1, 18), (2, 17)])
SPARE_PORTS = (50, 51)


def remaps_in_trouble(rule: LineFaultRule, seed: int, remaps: int, answer_within_s: float) -> tuple[int, int]:
    """Remap to and fro while ``rule`` is in force; how many were acknowledged, and how many failed.

    Each that was acknowledged was made once; each that failed was made once or not at all.
    """
    with switch_in_memory(ONE, line_faults=LineFaults(stream(seed, "switch"))) as thread:
        url = tcp(thread)
        session = open_flexfabric(url, CLOCK, soon(), answer_within_s=answer_within_s)
        clean = open_flexfabric(url, CLOCK, soon())
        acknowledged = failed = 0
        for _ in range(remaps):
            before = FlexFabric(clean).live_map(soon())
            wanted = OTHER if before.pairs == ONE else ONE
            change = Partial(wanted)
            made = LiveMap(before.generation + 1, change.after(before.pairs))
            thread.call(lambda peer: install(peer, rule))
            try:
                generation = FlexFabric(session).apply(change, soon()).generation
            except LabError:
                generation = None
            thread.call(lambda peer: remove(peer, rule))
            after = FlexFabric(clean).live_map(soon())
            if generation is None:
                failed += 1
                assert after in (before, made)
            else:
                acknowledged += 1
                assert (generation, after) == (made.generation, made)
        session.close()
        clean.close()
    return acknowledged, failed


async def install(peer: SwitchPeer, rule: LineFaultRule) -> None:
    peer.line_faults.install(rule)


async def remove(peer: SwitchPeer, rule: LineFaultRule) -> None:
    peer.line_faults.remove(rule)


@given(
    act=st.sampled_from([LineFault.GARBLED, LineFault.LOST, LineFault.UNHEARD]),
    share=st.floats(0.05, 0.6),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=15, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
def test_whatever_the_noise_a_remap_is_made_once_or_fails_clearly(act: LineFault, share: float, seed: int) -> None:
    remaps_in_trouble(LineFaultRule(act, count=None, probability=share), seed, remaps=4, answer_within_s=0.02)


@pytest.mark.parametrize("act", [LineFault.GARBLED, LineFault.LOST, LineFault.UNHEARD])
def test_most_remaps_get_through_a_link_that_loses_one_line_in_ten(act: LineFault) -> None:
    acknowledged, failed = remaps_in_trouble(
        LineFaultRule(act, count=None, probability=0.1), seed=5, remaps=20, answer_within_s=0.2
    )
    assert acknowledged >= 18, f"{failed} of 20 remaps failed"


@pytest.fixture(params=["tcp", "tty"])
def session(request: pytest.FixtureRequest, rack: MockRack) -> Iterator[FlexFabricSession]:
    """A session by each of the switch's lines that gives up on an answer soon."""
    shown = rack.endpoints["switch"][request.param]
    url = f"tcp://{shown}" if request.param == "tcp" else shown
    impatient = open_flexfabric(url, CLOCK, soon(), answer_within_s=0.1)
    yield impatient
    impatient.close()


@pytest.mark.parametrize("kind", ["garbled", "lost"])
def test_a_remap_whose_acknowledgement_is_spoilt_is_made_once_when_the_link_is_mended(
    kind: str, session: FlexFabricSession, bench: MockBench
) -> None:
    """The fault strikes every trigger until it is mended, by another way, right after the first."""
    link = bench.equipment.breakable["control"]
    before = bench.equipment.fabric.live_map(soon())
    link.break_as("spoilt", {"kind": kind, "match": ":TRIG"}, soon())
    struck: list[str] = []

    def mend(exchange: Exchange) -> None:
        if ":TRIG" in exchange.sent and not struck:
            struck.append(exchange.received)
            link.mend("spoilt", soon())

    session.on_exchange = mend
    change = Partial(PortMap.of([SPARE_PORTS]))
    applied = FlexFabric(session).apply(change, soon())
    assert len(struck) == 1
    assert not struck[0].isascii() or not struck[0]
    assert applied.generation == before.generation + 1
    found = bench.equipment.fabric.live_map(soon())
    assert found == LiveMap(applied.generation, change.after(before.pairs))


def test_a_link_that_is_lost_altogether_is_told_as_such_and_the_same_session_works_once_it_is_mended(
    session: FlexFabricSession, bench: MockBench
) -> None:
    link, fabric = bench.equipment.breakable["control"], FlexFabric(session)
    before = fabric.live_map(soon())
    link.break_as("gone", {"kind": "lost"}, soon())
    with pytest.raises(LabError, match="did not answer in time"):
        fabric.apply(Partial(PortMap.of([SPARE_PORTS])), soon())
    link.mend("gone", soon())
    assert fabric.live_map(soon()) == before
    assert fabric.apply(Partial(PortMap.of([SPARE_PORTS])), soon()).generation == before.generation + 1
