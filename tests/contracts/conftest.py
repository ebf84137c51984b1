"""Racks and servers under test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from rackloop.safety.leases import _shared_store
from rackloop_drivers.host import LocalExecutor, SshHost
from rackloop_drivers.workload import RackProbe
from rackloop_labs.mock import MockBench
from tests.deadlines import CLOCK
from tests.mock_rack import MockRack, running_mock_rack
from tests.rack_session import Start, rack_starter
from tests.sshd_process import Sshd, running_sshd

# Half a minute and more each. One that is begun last is waited for alone.
LONGEST = (
    *("test_host_crash", "test_provision", "test_provision_site", "test_power_contract", "test_power_rack"),
    *("test_tenancy_model", "test_drivesim", "test_store_model", "test_store_mount", "test_retest"),
    "test_box_interference",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Have the longest files begin first."""
    items.sort(key=lambda item: item.path.stem not in LONGEST)


@pytest.fixture(scope="module")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MockRack]:
    """A mock lab that is up for the tests of one file."""
    with running_mock_rack(tmp_path_factory.mktemp("rack")) as rack:
        yield rack


@pytest.fixture(scope="module")
def direct_rack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MockRack]:
    """The mock lab without a switch, that is up for the tests of one file."""
    with running_mock_rack(tmp_path_factory.mktemp("rack"), "mock-direct") as rack:
        yield rack


@pytest.fixture
def own_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store of its own for the test, as the first user of a machine has."""
    monkeypatch.setattr(_shared_store, "_SHARED", tmp_path)


@pytest.fixture(scope="module")
def sshd() -> Iterator[Sshd]:
    """An sshd for the tests of one file; a file whose tests break it has one of its own for each."""
    with running_sshd() as running:
        yield running


@pytest.fixture
def host(sshd: Sshd) -> Iterator[SshHost]:
    """That server, by SSH."""
    with SshHost(sshd.access(), CLOCK) as opened:
        yield opened


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """What is closed at the end of the test."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def executor() -> Iterator[LocalExecutor]:
    """This machine."""
    with LocalExecutor(CLOCK) as executor:
        yield executor


@pytest.fixture
def probe(executor: LocalExecutor) -> RackProbe:
    """Rackprobe on this machine."""
    return RackProbe(executor, CLOCK)


@pytest.fixture
def bench(rack: MockRack) -> Iterator[MockBench]:
    """The equipment of that lab, which nobody has leased."""
    with closing(MockBench(rack.lab, CLOCK, rack.state, None, None)) as bench:
        yield bench


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """A function that starts a small rackd."""
    with rack_starter(tmp_path) as start:
        yield start
