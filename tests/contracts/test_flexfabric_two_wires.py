"""A switch that takes commands by TCP and on a serial line is reached by the line where TCP is down."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from rackloop.errors import LockedOut, NotConnected
from rackloop_drivers.boxes import FabricOpening
from rackloop_drivers.fabric.flexfabric import FlexFabric, FlexFabricDriver, SwitchPeer, SwitchThread
from tests.deadlines import CLOCK, soon
from tests.switch_in_memory import switch_in_memory, tcp


@contextmanager
def refusing() -> Iterator[str]:
    """An address of this machine at which nothing listens."""
    with socket.socket() as kept:
        kept.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{kept.getsockname()[1]}"


@pytest.fixture
def closing() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def switch() -> Iterator[SwitchThread]:
    with switch_in_memory() as thread:
        yield thread


def serial(switch: SwitchThread) -> str:
    async def serve(peer: SwitchPeer) -> str:
        return peer.serve_pty(is_paced=False)

    return switch.call(serve)


def opened(closing: ExitStack, token: int | None = None, **control: str) -> FlexFabric:
    described = {"driver": "flexfabric", "control": control}
    driver = FlexFabricDriver.model_validate(described, context={"file": Path("rack.yaml")})
    fabric = driver.open(FabricOpening(CLOCK, closing, soon(), token=token)).fabric
    assert isinstance(fabric, FlexFabric)
    closing.callback(fabric.session.close)
    return fabric


def test_the_line_is_taken_where_nothing_answers_by_tcp(switch: SwitchThread, closing: ExitStack) -> None:
    with refusing() as address:
        line = serial(switch)
        fabric = opened(closing, tcp=address, serial=line)
        assert fabric.session.url == line
        assert fabric.identify(soon()).model


def test_the_line_is_left_alone_where_tcp_answers(switch: SwitchThread, closing: ExitStack) -> None:
    address = tcp(switch).removeprefix("tcp://")
    fabric = opened(closing, tcp=address, serial="/dev/none")
    assert fabric.session.url == f"tcp://{address}"
    assert fabric.identify(soon()).model


def test_where_neither_answers_both_are_named(closing: ExitStack) -> None:
    with (
        refusing() as address,
        pytest.raises(NotConnected, match=rf"{address}.*; nor does it by its serial.*/dev/none"),
    ):
        opened(closing, tcp=address, serial="/dev/none")


def test_a_switch_that_is_locked_by_a_higher_token_is_not_asked_by_another_wire(
    switch: SwitchThread, closing: ExitStack
) -> None:
    address = tcp(switch).removeprefix("tcp://")
    opened(closing, token=7, tcp=address)
    with pytest.raises(LockedOut):
        opened(closing, token=6, tcp=address, serial="/dev/none")
