"""The health of every server of a bench, read in parallel."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rackloop.abilities import Host
from rackloop.clock import Deadline
from rackloop.errors import NotConnected, RackloopError
from rackloop.inspection.health import HealthSnapshot, HostHealth, snapshot_of
from rackloop_drivers.host import run_on_all
from rackloop_drivers.host_tools import read_health
from rackloop_labs.bench import Bench
from rackloop_labs.bench_view import whole
from rackloop_labs.discovery import with_paths

# A kernel takes a moment to find a drive whose link is up; one that is not there then stays away.
_SETTLE_S = 2.0
_PAUSE_S = 0.1


@dataclass(frozen=True)
class RackReading:
    """The health of a bench's servers between two stamps of its clock, and why others did not answer."""

    servers: Mapping[str, HostHealth]
    unreachable: Mapping[str, str]
    started_ns: int
    ended_ns: int

    def snapshot(self, bench: Bench) -> HealthSnapshot:
        """The same by the names of the lab description."""
        return snapshot_of(
            with_paths(whole(bench).lab),
            self.servers,
            self.unreachable,
            started_ns=self.started_ns,
            ended_ns=self.ended_ns,
        )


def take_snapshot(bench: Bench, deadline: Deadline, *, since: HealthSnapshot | None = None) -> HealthSnapshot:
    """The counters of every drive and PHY that the servers of the bench see, and what their kernels said.

    With ``since`` the kernels' messages after that snapshot are in it, without it none; drives that were there then
    are given two seconds to appear. One command a server; those that do not answer are named in the snapshot.
    Raises NotSupported where this kind of lab has no servers that can be reached.
    """
    return deadline.sooner(_SETTLE_S).poll(
        lambda: read_rack(bench, deadline, since=since).snapshot(bench),
        lambda snapshot: since is None or since.drives.keys() <= snapshot.drives.keys(),
        every_s=_PAUSE_S,
    )


def read_rack(
    bench: Bench,
    deadline: Deadline,
    *,
    since: HealthSnapshot | None = None,
    besides: Callable[[str], Sequence[str]] | None = None,
    on_all: Callable[..., object] = run_on_all,
) -> RackReading:
    """Ask every server of the bench once, all at the same time: what a snapshot and a survey are made of.

    Each runs the command that ``besides`` has for it as well. A server that does not end in time is one that did not
    answer, whatever the others said.
    Raises NotSupported where this kind of lab has no servers that can be reached.
    """
    hosts = [bench.host(server) for server in bench.lab.servers]
    known = {name: server.position for name, server in since.servers.items()} if since is not None else {}
    answers: dict[str, HostHealth | Exception] = {}

    def read(host: Host, deadline: Deadline) -> None:
        does = besides(host.name) if besides is not None else ()
        try:
            answers[host.name] = read_health(host, known.get(host.name), deadline, does)
        except RackloopError as error:
            answers[host.name] = error

    started_ns = bench.clock.now_ns()
    late: Mapping[str, Exception] = {}
    try:
        on_all(hosts, read, deadline)
    except NotConnected as error:
        late = error.children
    # One that was given up may answer yet.
    found = {host.name: late.get(host.name) or answers[host.name] for host in hosts}
    return RackReading(
        {name: answer for name, answer in found.items() if isinstance(answer, HostHealth)},
        {name: str(answer) for name, answer in found.items() if isinstance(answer, Exception)},
        started_ns,
        bench.clock.now_ns(),
    )
