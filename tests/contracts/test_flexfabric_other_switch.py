"""A wire that leads to another rack's switch once it was lost: nothing is told to that one, nor is its lock taken."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from rackloop.abilities import LiveMap
from rackloop.errors import ProtocolError
from rackloop.portmap import Full, PortMap
from rackloop_drivers.fabric.flexfabric import (
    FlexFabric,
    FlexFabricPhy,
    FlexFabricSession,
    MemoryMatrix,
    SwitchPeer,
    SwitchThread,
    open_flexfabric,
)
from tests.deadlines import CLOCK, soon

THEIRS = PortMap.of([(1, 17), (2, 18)])
ACTS: dict[str, Callable[[FlexFabricSession], Any]] = {
    "drop": lambda session: FlexFabricPhy(session).drop([1], 0.1, soon(), request_id=7),
    "map": lambda session: FlexFabric(session).apply(Full(PortMap.of([])), soon()),
    "look": lambda session: FlexFabric(session).live_map(soon()),
}


def switch(serial: str, boot_map: PortMap) -> SwitchThread:
    async def make() -> SwitchPeer:
        return SwitchPeer(MemoryMatrix(CLOCK, boot_map=boot_map), serial=serial)

    return SwitchThread(make)


def line(thread: SwitchThread, link: Path) -> None:
    """Have the adapter's name lead to this switch, as a number of USB does by another order of plugs."""

    async def serve(peer: SwitchPeer) -> str:
        return peer.serve_pty(is_paced=False)

    fresh = link.with_suffix(".new")
    fresh.symlink_to(thread.call(serve))
    fresh.replace(link)


@pytest.mark.parametrize("act", ACTS)
def test_the_switch_of_another_rack_is_told_nothing_and_keeps_its_lock(tmp_path: Path, act: str) -> None:
    link = tmp_path / "ttyUSB0"
    with switch("FF000002", THEIRS) as theirs:
        with switch("FF000001", PortMap.of([])) as ours:
            line(ours, link)
            session = open_flexfabric(str(link), CLOCK, soon(), token=9, answer_within_s=0.1)
            assert FlexFabric(session).live_map(soon()) == LiveMap(1, PortMap.of([]))
            line(theirs, link)
        with (
            closing(session),
            pytest.raises(
                ProtocolError, match=r"expected the switch with the serial FF000001.*found that with FF000002"
            ),
        ):
            ACTS[act](session)
        with closing(open_flexfabric(str(link), CLOCK, soon(), token=3)) as other:
            assert FlexFabric(other).live_map(soon()) == LiveMap(1, THEIRS)
            assert FlexFabricPhy(other).drop_counts([1], soon()) == {1: 0}


def test_the_same_switch_is_used_again_where_its_adapter_comes_back(tmp_path: Path) -> None:
    link = tmp_path / "ttyUSB0"
    with switch("FF000001", THEIRS) as again:
        with switch("FF000001", THEIRS) as before:
            line(before, link)
            session = open_flexfabric(str(link), CLOCK, soon(), token=9, answer_within_s=0.1)
            line(again, link)
        with closing(session):
            FlexFabricPhy(session).drop([1], 0.1, soon(), request_id=7)
            assert FlexFabricPhy(session).drop_counts([1], soon()) == {1: 1}
