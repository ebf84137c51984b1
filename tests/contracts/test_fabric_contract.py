"""Every fabric keeps its contract: the FlexFabric on each of its wires, simulated and real, and fixed cabling."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from rackloop.abilities import Fabric
from rackloop.clock import Deadline
from rackloop.contracts import fabric as fabric_contract
from rackloop.contracts import phy_control as phy_contract
from rackloop.errors import NotSupported
from rackloop.portmap import Full, PortMap
from rackloop_drivers.fabric.flexfabric import (
    FlexFabric,
    FlexFabricPhy,
    RackdMatrix,
    SwitchPeer,
    SwitchThread,
    open_flexfabric,
)
from rackloop_drivers.fabric.static import StaticFabric
from tests.deadlines import CLOCK
from tests.rackd_process import running_rackd
from tests.switch_in_memory import switch_in_memory, tcp

pytestmark = pytest.mark.filterwarnings("ignore:set(Daemon|Name)")  # pyserial 3.5, rfc2217
REAL = "RACKLOOP_REAL_FLEXFABRIC"


def _pyserial_socket(thread: SwitchThread) -> str:
    return tcp(thread).replace("tcp://", "socket://")


def _rfc2217(thread: SwitchThread) -> str:
    host, port = thread.call(lambda peer: peer.serve_rfc2217())
    return f"rfc2217://{host}:{port}"


def _pty(thread: SwitchThread) -> str:
    async def serve(peer: SwitchPeer) -> str:
        return peer.serve_pty(is_paced=False)

    return thread.call(serve)


WIRES = {"tcp": tcp, "socket": _pyserial_socket, "rfc2217": _rfc2217, "pty": _pty}


@contextmanager
def _simulated(wire: str) -> Iterator[str]:
    with switch_in_memory() as thread:
        yield WIRES[wire](thread)


@contextmanager
def _rackd(directory: Path) -> Iterator[str]:
    with running_rackd(directory) as rackd:
        matrices: list[RackdMatrix] = []

        async def make() -> SwitchPeer:
            matrices.append(await RackdMatrix.connect(rackd.control))
            return SwitchPeer(matrices[0], state_path=directory / "switch.json")

        with SwitchThread(make) as thread:
            yield tcp(thread)
            thread.call(lambda _peer: matrices[0].close())


@contextmanager
def _real() -> Iterator[str]:
    url = os.environ.get(REAL)
    if url is None:
        pytest.skip(f"no switch to try: set {REAL} to tcp://HOST:PORT or a device, on a rack nobody uses")
    yield url


@pytest.fixture(params=["tcp", "socket", "rfc2217", "pty", "rackd", "real"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    arms = {"rackd": lambda: _rackd(tmp_path), "real": _real}
    with arms.get(request.param, lambda: _simulated(request.param))() as where:
        yield where


def _may_be_shared(url: str) -> bool:
    return "://" in url


class _Connections:
    """Opens connections to one switch; a serial line has one."""

    def __init__(self, url: str, stack: ExitStack) -> None:
        self._url = url
        self._stack = stack
        self._is_taken = False

    def __call__(self) -> Fabric:
        if self._is_taken and not _may_be_shared(self._url):
            raise NotSupported("a serial line is one connection")
        self._is_taken = True
        session = open_flexfabric(self._url, CLOCK, Deadline.after(CLOCK, 20), answer_within_s=5)
        self._stack.callback(session.close)
        return FlexFabric(session)


@pytest.mark.parametrize("clause", fabric_contract.CONTRACT, ids=lambda clause: clause.__name__)
def test_flexfabric(clause: Callable[[fabric_contract.FabricFactory], None], url: str) -> None:
    with ExitStack() as stack:
        try:
            clause(_Connections(url, stack))
        except NotSupported as reason:
            pytest.skip(str(reason))


@pytest.mark.parametrize("clause", phy_contract.CONTRACT, ids=lambda clause: clause.__name__)
def test_flexfabric_phy(clause: Callable[[phy_contract.PhyFactory], None], url: str) -> None:
    @contextmanager
    def make() -> Iterator[phy_contract.PhyArm]:
        deadline = Deadline.after(CLOCK, 20)
        session = open_flexfabric(url, CLOCK, deadline, answer_within_s=5)
        fabric = FlexFabric(session)
        before = fabric.live_map(deadline).pairs
        fabric.apply(Full(PortMap.of([(1, 101), (2, 102)])), deadline)
        try:
            yield phy_contract.PhyArm(FlexFabricPhy(session), (1, 2))
        finally:
            fabric.apply(Full(before), Deadline.after(CLOCK, 20))
            fabric.close()

    clause(make)


SUPPORTED_BY_CABLES = {"identifies_itself", "reads_the_live_map_without_changing_it"}


@pytest.mark.parametrize("clause", fabric_contract.CONTRACT, ids=lambda clause: clause.__name__)
def test_fixed_cabling(clause: Callable[[fabric_contract.FabricFactory], None]) -> None:
    def make() -> Fabric:
        return StaticFabric(PortMap.of([(1, 101), (2, 102), (3, 103), (4, 104)]))

    if clause.__name__ in SUPPORTED_BY_CABLES:
        clause(make)
    else:
        with pytest.raises(NotSupported, match="this rack has fixed cabling"):
            clause(make)
