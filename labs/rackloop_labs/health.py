"""The health of every server of a bench, all asked at once."""

from __future__ import annotations

from rackloop.abilities import Host
from rackloop.clock import Deadline
from rackloop.errors import NotConnected, RackloopError
from rackloop.health import HealthSnapshot, HostHealth, snapshot_of
from rackloop_drivers.host import on_all
from rackloop_drivers.host_tools import read_health
from rackloop_labs.bench import Bench
from rackloop_labs.discovery import with_paths
from rackloop_labs.in_service import whole

# A kernel takes a moment to find a drive whose link is up; one that is not there then stays away.
_SETTLE_S = 2.0
_PAUSE_S = 0.1


def take_snapshot(bench: Bench, deadline: Deadline, *, since: HealthSnapshot | None = None) -> HealthSnapshot:
    """The counters of every drive and PHY that the servers of the bench see, and what their kernels said.

    With ``since`` the kernels' messages after that snapshot are in it, without it none; drives that were there then
    are given two seconds to appear. One command a server; those that do not answer are named in the snapshot.
    Raises NotSupported where this kind of lab has no servers that can be reached.
    """
    settled = deadline.sooner(_SETTLE_S)
    while True:
        snapshot = _take(bench, deadline, since)
        if since is None or settled.is_over() or since.drives.keys() <= snapshot.drives.keys():
            return snapshot
        bench.clock.sleep_until_ns(bench.clock.now_ns() + round(_PAUSE_S * 1e9))


def _take(bench: Bench, deadline: Deadline, since: HealthSnapshot | None) -> HealthSnapshot:
    hosts = [bench.host(server) for server in bench.lab.servers]
    known = {name: server.position for name, server in since.servers.items()} if since is not None else {}

    def read(host: Host, deadline: Deadline) -> HostHealth | RackloopError:
        try:
            return read_health(host, known.get(host.name), deadline)
        except RackloopError as error:
            return error

    started_ns = bench.clock.now_ns()
    try:
        answers = on_all(hosts, read, deadline)
    except NotConnected as error:
        # A server that overstayed its deadline is one entry; the others' answers are lost with it.
        answers = {host.name: NotConnected(str(error.children.get(host.name, error))) for host in hosts}
    return snapshot_of(
        with_paths(whole(bench).lab),
        {name: answer for name, answer in answers.items() if isinstance(answer, HostHealth)},
        {name: str(answer) for name, answer in answers.items() if isinstance(answer, RackloopError)},
        started_ns=started_ns,
        ended_ns=bench.clock.now_ns(),
    )
