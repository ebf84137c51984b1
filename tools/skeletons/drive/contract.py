"""The example drive keeps the Drive contract, on its simulated box."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from rackloop.clock import Deadline, RealClock
from rackloop.contracts.drive import CONTRACT, DriveFactory
from rackloop.errors import LabError, NotConnected, NotSupported, ProtocolError
from skeletons.drive import ExampleDrive, SimExample


@pytest.fixture
def box() -> SimExample:
    return SimExample()


@pytest.fixture
def make(box: SimExample) -> Iterator[DriveFactory]:
    with box.serving() as (host, port):
        yield lambda: ExampleDrive(host, port, slot=1)


@pytest.mark.parametrize("clause", CONTRACT, ids=lambda clause: clause.__name__)
def test_contract(clause: Callable[[DriveFactory], None], make: DriveFactory) -> None:
    try:
        clause(make)
    except NotSupported as reason:
        pytest.skip(str(reason))


def test_a_drive_that_hides_its_serial_is_a_protocol_error(box: SimExample, make: DriveFactory) -> None:
    del box.identity["serial"]
    with pytest.raises(ProtocolError, match="serial"):
        make().identify(Deadline.after(RealClock(), 20))


def test_a_refusal_is_told_with_its_reason(box: SimExample, make: DriveFactory) -> None:
    box.refusal = "spun down"
    with pytest.raises(LabError, match="spun down"):
        make().health(Deadline.after(RealClock(), 20))


def test_a_box_that_is_not_there_is_not_connected(box: SimExample) -> None:
    with box.serving() as (host, port):
        pass
    with pytest.raises(NotConnected, match=str(port)):
        ExampleDrive(host, port, slot=1).identify(Deadline.after(RealClock(), 20))
