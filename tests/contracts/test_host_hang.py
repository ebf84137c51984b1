"""A server whose programs are held: the contract on a mock server, which has files where control groups would be.

What the kernel makes of it is tried on a guest, in tests/virtual.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rackloop.abilities import Completed, Host
from rackloop.clock import Deadline
from rackloop.contracts import breakable
from rackloop.errors import BadInput, FaultRefused, LabError, NotSupported
from rackloop_drivers.hang import HostHang
from rackloop_drivers.host_tools import HostFaults
from rackloop_labs.mock import MockBench
from tests.deadlines import soon
from tests.mock_rack import running_mock_bench

HANG = {"kind": "hang"}
GROUPS, SEATS = "/tmp/groups", "/tmp/seats"
_MAKE = f"""
rm -rf {GROUPS} {SEATS}* && mkdir {SEATS} && : >{SEATS}/seat0
mkdir -p {GROUPS}/init.scope {GROUPS}/system.slice {GROUPS}/held.slice && : >{GROUPS}/cgroup.procs
for group in {GROUPS}/*/; do
    echo 0 >"$group/cgroup.freeze"
    printf 'populated 1\\nfrozen 1\\n' >"$group/cgroup.events"
done
echo 1 >{GROUPS}/held.slice/cgroup.freeze
"""


class Looked:
    """A server that is asked whether it may be held, and answers as told; all else it does."""

    def __init__(self, host: Host, status: int = 0, said: str = "") -> None:
        self._host, self._status, self._said = host, status, said

    def run(self, argv: list[str], deadline: Deadline, **more: Any) -> Completed:
        if "look" in argv:
            return Completed(tuple(argv), self._status, "", self._said)
        return self._host.run(argv, deadline, **more)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._host, name)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MockBench]:
    with running_mock_bench(tmp_path_factory.mktemp("rack"), "mock-direct") as bench:
        yield bench


@pytest.fixture
def host(bench: MockBench) -> Host:
    """A server with control groups of which one is held already, by somebody else."""
    host = bench.host("node1")
    assert host.run(["sh", "-c", _MAKE], soon()).status == 0
    return host


def part_of(host: Any, longest_s: float = 3600) -> HostFaults:
    return HostFaults(host, "server:node1", HostHang(host, longest_s, root=GROUPS, seats=SEATS))


def held(host: Host) -> list[str]:
    """What each group is told, by name."""
    return host.run(["sh", "-c", f"cd {GROUPS} && cat */cgroup.freeze"], soon()).stdout.split()


def has_seats(host: Host) -> bool:
    """Whether the folder by which PAM knows logind is where it was, with what was in it."""
    return host.run(["test", "-e", f"{SEATS}/seat0"], soon()).status == 0


@pytest.mark.parametrize("clause", breakable.CONTRACT, ids=lambda clause: clause.__name__)
def test_a_mock_server(clause: Callable[[breakable.BreakableArm], None], host: Host) -> None:
    looked = Looked(host)
    clause(breakable.BreakableArm(lambda: part_of(looked), HANG, lambda: held(host) == ["1", "1", "1"]))


def test_what_somebody_else_holds_stays_held(host: Host) -> None:
    part = part_of(Looked(host))
    part.break_as("test/1", HANG, soon())
    part.mend("test/1", soon())
    assert held(host) == ["1", "0", "0"]


def test_a_server_lets_go_by_itself_where_nobody_else_does(host: Host) -> None:
    part = part_of(Looked(host), longest_s=0.5)
    part.break_as("test/2", HANG, soon())
    assert soon().poll(lambda: held(host) == ["1", "0", "0"], every_s=1e-2)
    assert has_seats(host)
    assert part.standing(soon()) == {}
    part.mend("test/2", soon())
    assert host.run(["sh", "-c", "ls /run/rackloop-h* 2>&1"], soon()).status != 0


def test_no_login_waits_for_a_logind_that_is_held(host: Host) -> None:
    part = part_of(Looked(host))
    part.break_as("test/6", HANG, soon())
    assert not has_seats(host)
    part.mend("test/6", soon())
    assert has_seats(host)


def test_one_that_does_not_get_all_programs_lets_all_go(host: Host) -> None:
    host.run(["sh", "-c", f"echo frozen 0 >{GROUPS}/system.slice/cgroup.events"], soon())
    part = part_of(Looked(host))
    with pytest.raises(LabError, match=r"node1: .*a program of system\.slice cannot be held"):
        part.break_as("test/3", HANG, soon())
    assert held(host) == ["1", "0", "0"]


@pytest.mark.parametrize(
    ("status", "said", "error", "message"),
    [
        (5, "/sys/fs/cgroup has none", NotSupported, "the programs of node1 cannot be held: /sys/fs/cgroup has none"),
        (6, "watchdog0 is active", FaultRefused, "hang of node1.*watchdog0 is active"),
        (1, "", LabError, "node1: holding its programs: exit status 1; it takes root"),
    ],
)
def test_a_server_that_must_not_be_held_says_why(
    status: int, said: str, error: type[Exception], message: str, host: Host
) -> None:
    with pytest.raises(error, match=message):
        part_of(Looked(host, status, said)).break_as("test/4", HANG, soon())
    assert held(host) == ["1", "0", "0"]


def test_a_mock_servers_own_ssh_is_not_in_it(host: Host) -> None:
    with pytest.raises(FaultRefused, match="its SSH server is started for each connection"):
        part_of(host).break_as("test/5", HANG, soon())


def test_a_parameter_that_it_does_not_have_is_named(host: Host) -> None:
    with pytest.raises(BadInput, match="hang of node1 takes no colour"):
        HostHang(host).prepare({**HANG, "colour": "red"}, soon())
