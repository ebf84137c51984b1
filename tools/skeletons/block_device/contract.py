"""The example volume keeps the BlockDevice contract, on its simulated box."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from rackloop.clock import Deadline, RealClock
from rackloop.contracts.block_device import CONTRACT, BlockDeviceFactory
from rackloop.errors import LabError, NotConnected, NotSupported
from skeletons.block_device import ExampleBlockDevice, SimExample


@pytest.fixture
def box() -> SimExample:
    return SimExample()


@pytest.fixture
def make(box: SimExample) -> Iterator[BlockDeviceFactory]:
    with box.serving() as (host, port):
        yield lambda: ExampleBlockDevice(host, port, "v1", Deadline.after(RealClock(), 20))


@pytest.mark.parametrize("clause", CONTRACT, ids=lambda clause: clause.__name__)
def test_contract(clause: Callable[[BlockDeviceFactory], None], make: BlockDeviceFactory) -> None:
    try:
        clause(make)
    except NotSupported as reason:
        pytest.skip(str(reason))


def test_other_clients_are_claims(box: SimExample, make: BlockDeviceFactory) -> None:
    box.clients = ("srv1", "srv2")
    assert make().usage().claims == ("in use by srv1", "in use by srv2")


def test_a_refusal_is_told_with_its_reason(box: SimExample, make: BlockDeviceFactory) -> None:
    box.refusal = "volume offline"
    with pytest.raises(LabError, match="volume offline"):
        make()


def test_a_box_that_is_not_there_is_not_connected(box: SimExample) -> None:
    with box.serving() as (host, port):
        pass
    with pytest.raises(NotConnected, match=str(port)):
        ExampleBlockDevice(host, port, "v1", Deadline.after(RealClock(), 20))
