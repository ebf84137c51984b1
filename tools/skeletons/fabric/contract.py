"""The example switch keeps the Fabric contract, on its simulated box."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from rackloop.clock import Deadline, RealClock
from rackloop.contracts.fabric import CONTRACT, FabricFactory
from rackloop.errors import FabricError, NotConnected, NotSupported
from rackloop_drivers.boxes import FabricOpening
from skeletons.fabric import ExampleFabric, ExampleFabricDriver, SimExample


@pytest.fixture
def box() -> SimExample:
    return SimExample()


@pytest.fixture
def make(box: SimExample) -> Iterator[FabricFactory]:
    with box.serving() as (host, port):
        yield lambda: ExampleFabric(host, port)


@pytest.mark.parametrize("clause", CONTRACT, ids=lambda clause: clause.__name__)
def test_contract(clause: Callable[[FabricFactory], None], make: FabricFactory) -> None:
    try:
        clause(make)
    except NotSupported as reason:
        pytest.skip(str(reason))


def test_a_description_opens_it(box: SimExample) -> None:
    clock = RealClock()
    with box.serving() as (host, port), ExitStack() as closing:
        where = f"{host}:{port}"
        described = ExampleFabricDriver.model_construct(driver="example", ports=16, address=where)
        fabric, phy = described.open(FabricOpening(clock, closing, Deadline.after(clock, 20), token=1))
        closing.callback(fabric.close)
        assert fabric.port_count(Deadline.after(clock, 20)) > 0
        assert phy is None


def test_a_refusal_is_told_with_its_reason(box: SimExample, make: FabricFactory) -> None:
    box.refusal = "overheated"
    with pytest.raises(FabricError, match="overheated"):
        make().live_map(Deadline.after(RealClock(), 20))


def test_a_box_that_is_not_there_is_not_connected(box: SimExample) -> None:
    with box.serving() as (host, port):
        pass
    with pytest.raises(NotConnected, match=str(port)):
        ExampleFabric(host, port).live_map(Deadline.after(RealClock(), 20))
