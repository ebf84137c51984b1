"""The bench of a mock rack: names that it does not have are bad input."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from rackloop.errors import BadInput
from rackloop_labs import Bench, MockLab
from tests.deadlines import CLOCK
from tests.mock_rack import MockRack


@pytest.fixture
def bench(rack: MockRack) -> Iterator[Bench]:
    with closing(MockLab(rack.lab, CLOCK, rack.state).open(None)) as bench:
        yield bench


def test_a_port_that_is_not_there_has_neither_drive_nor_device(bench: Bench) -> None:
    for ask in (bench.drive, bench.device):
        with pytest.raises(BadInput, match=r"no port of srv1 is named 'p99'; known: p0"):
            ask("srv1", "p99")
        with pytest.raises(BadInput, match="no server is named 'srv9'"):
            ask("srv9", "p0")
