"""The example box keeps the PhyControl contract, simulated."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from rackloop.clock import Deadline, RealClock
from rackloop.contracts.phy_control import CONTRACT, PhyArm, PhyFactory
from rackloop.errors import LabError, NotConnected, NotSupported
from rackloop_drivers.boxes import PhyOpening
from skeletons.phy_control import ExamplePhyControl, ExamplePhyDriver, SimExample


@pytest.fixture
def box() -> SimExample:
    return SimExample(RealClock())


@pytest.fixture
def make(box: SimExample) -> Iterator[PhyFactory]:
    with box.serving() as (host, port):

        @contextmanager
        def arm() -> Iterator[PhyArm]:
            yield PhyArm(ExamplePhyControl(host, port), (1, 2))

        yield arm


@pytest.mark.parametrize("clause", CONTRACT, ids=lambda clause: clause.__name__)
def test_contract(clause: Callable[[PhyFactory], None], make: PhyFactory) -> None:
    try:
        clause(make)
    except NotSupported as reason:
        pytest.skip(str(reason))


def test_a_description_opens_it(box: SimExample) -> None:
    clock = RealClock()
    lab: Any = None
    with box.serving() as (host, port), ExitStack() as closing:
        where = f"{host}:{port}"
        described = ExamplePhyDriver.model_construct(driver="example", address=where)
        phy = described.open(PhyOpening(clock, closing, lab, {}, {}))
        assert phy.drop_counts([1], Deadline.after(clock, 20)) == {1: 0}


def test_a_refusal_is_told_with_its_reason(box: SimExample, make: PhyFactory) -> None:
    box.refusal = "in service mode"
    with make() as arm, pytest.raises(LabError, match="in service mode"):
        arm.phy.drop_counts([1], Deadline.after(RealClock(), 20))


def test_a_box_that_is_not_there_is_not_connected(box: SimExample) -> None:
    with box.serving() as (host, port):
        pass
    with pytest.raises(NotConnected, match=str(port)):
        ExamplePhyControl(host, port).drop_counts([1], Deadline.after(RealClock(), 20))
