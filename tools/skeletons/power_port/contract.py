"""The example outlet keeps the PowerPort contract, on its simulated box."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from rackloop.clock import Deadline, RealClock
from rackloop.contracts.power_port import CONTRACT, PowerPortFactory
from rackloop.errors import LabError, NotConnected, NotSupported
from rackloop_drivers.boxes import Opening
from skeletons.power_port import ExamplePduDriver, ExamplePowerPort, SimExample


@pytest.fixture
def box() -> SimExample:
    return SimExample()


@pytest.fixture
def make(box: SimExample) -> Iterator[PowerPortFactory]:
    with box.serving() as (host, port):
        yield lambda: ExamplePowerPort(host, port, outlet=2)


@pytest.mark.parametrize("clause", CONTRACT, ids=lambda clause: clause.__name__)
def test_contract(clause: Callable[[PowerPortFactory], None], make: PowerPortFactory) -> None:
    try:
        clause(make)
    except NotSupported as reason:
        pytest.skip(str(reason))


def test_other_outlets_are_left_alone(box: SimExample, make: PowerPortFactory) -> None:
    make().turn_off(Deadline.after(RealClock(), 20))
    assert box.is_on == {1: True, 2: False}


def test_a_description_opens_it(box: SimExample) -> None:
    clock = RealClock()
    with box.serving() as (host, port), ExitStack() as closing:
        where = f"{host}:{port}"
        described = ExamplePduDriver.model_construct(driver="example", outlets=2, address=where)
        described.open(Opening(clock, closing))(1).turn_off(Deadline.after(clock, 20))
    assert box.is_on == {1: False, 2: True}


def test_a_refusal_is_told_with_its_reason(box: SimExample, make: PowerPortFactory) -> None:
    box.refusal = "overheated"
    with pytest.raises(LabError, match="overheated"):
        make().turn_on(Deadline.after(RealClock(), 20))


def test_a_box_that_is_not_there_is_not_connected(box: SimExample) -> None:
    with box.serving() as (host, port):
        pass
    with pytest.raises(NotConnected, match=str(port)):
        ExamplePowerPort(host, port, outlet=1).turn_on(Deadline.after(RealClock(), 20))
