"""A server by SSH keeps the Executor and the Host contract, whatever answers there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from rackloop.abilities import Host
from rackloop.contracts import executor, host
from rackloop.errors import NotSupported
from rackloop_drivers.host import SshHost
from rackloop_labs import ssh_accesses
from tests.deadlines import CLOCK, soon
from tests.mock_rack import MockRack, running_mock_rack
from tests.sshd_process import Sshd, require_sudo, running_sshd
from tests.tcp_relay import TcpRelay, relaying

_SERVER = "srv1"


class OpenSshServer:
    """The sshd arm."""

    def __init__(self, sshd: Sshd, *, sudo: bool = False) -> None:
        self._sshd = sshd
        self._sudo = sudo

    def host(self) -> Host:
        return SshHost(replace(self._sshd.access(), sudo=self._sudo), CLOCK)

    def break_connections(self) -> None:
        self._sshd.break_connections()

    @contextmanager
    def stopped(self) -> Iterator[None]:
        self._sshd.stop()
        try:
            yield
        finally:
            self._sshd.start_again()

    @contextmanager
    def hung(self) -> Iterator[None]:
        self._sshd.hang()
        try:
            yield
        finally:
            self._sshd.break_connections()


class MockServer:
    """The sim arm: a server of the mock lab, with a relay on the way to it."""

    def __init__(self, rack: MockRack, relay: TcpRelay) -> None:
        self._rack = rack
        self._relay = relay
        self._access = ssh_accesses(rack.lab, rack.endpoints)[_SERVER]
        known = self._access.known_hosts.read_text().replace(f":{self._access.port} ", f":{relay.port} ")
        self._known_hosts = self._access.known_hosts.with_name("known_hosts_of_relay")
        self._known_hosts.write_text(known)

    def host(self) -> Host:
        return SshHost(replace(self._access, port=self._relay.port, known_hosts=self._known_hosts), CLOCK)

    def break_connections(self) -> None:
        self._relay.break_connections()

    @contextmanager
    def stopped(self) -> Iterator[None]:
        self._rack.control.crash(_SERVER, soon())
        try:
            yield
        finally:
            self._rack.control.boot(_SERVER, soon())

    @contextmanager
    def hung(self) -> Iterator[None]:
        self._rack.control.hang(_SERVER, soon())
        try:
            yield
        finally:
            self._rack.control.resume(_SERVER, soon())


@contextmanager
def openssh(folder: Path) -> Iterator[host.Server]:
    with running_sshd() as sshd:
        yield OpenSshServer(sshd)


@contextmanager
def sudo(folder: Path) -> Iterator[host.Server]:
    require_sudo()
    with running_sshd() as sshd:
        yield OpenSshServer(sshd, sudo=True)


@contextmanager
def mock(folder: Path) -> Iterator[host.Server]:
    with running_mock_rack(folder) as rack, relaying(rack.address(_SERVER)) as relay:
        yield MockServer(rack, relay)


ARMS: dict[str, Callable[[Path], AbstractContextManager[host.Server]]] = {"sshd": openssh, "sudo": sudo, "mock": mock}


@pytest.fixture(scope="module", params=ARMS)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[host.Server]:
    with ARMS[request.param](tmp_path_factory.mktemp("rack")) as arm:
        yield arm


@pytest.mark.parametrize("clause", executor.CONTRACT, ids=lambda clause: clause.__name__)
def test_executor(clause: Callable[[executor.ExecutorFactory], None], server: host.Server) -> None:
    clause(server.host)


@pytest.mark.parametrize("clause", host.CONTRACT, ids=lambda clause: clause.__name__)
def test_host(clause: Callable[[host.Server], None], server: host.Server) -> None:
    try:
        clause(server)
    except NotSupported as reason:
        pytest.skip(str(reason))
