"""I/O on several servers at once, each of them this machine."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Barrier
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rackloop.abilities import Process
from rackloop.clock import Clock, Deadline
from rackloop.errors import ProductFailed
from rackloop.measurement import Distribution
from rackloop.record import Event, EventSink
from rackloop_drivers.block import DevicePath, NbdExport
from rackloop_drivers.host import LocalExecutor
from rackloop_drivers.workload import Expected, RackProbe
from rackloop_fixtures.rack.labels import RESERVED_BYTES
from rackloop_fixtures.rack.workloads import VerifiedWrites, Watching, WritesSeen
from rackloop_fixtures.session.outcome import LimitsUnknown
from rackloop_labs import Bench
from tests.deadlines import CLOCK, soon
from tests.nbdkit_process import serving_unix
from tests.writable_drive import minted

MIB = 1 << 20
SERVERS = ("srv1", "srv2")


class Overheard:
    """A process whose lines, once they are read, are also in ``lines``."""

    def __init__(self, process: Process) -> None:
        self.lines: list[str] = []
        self._process = process
        self.write_line, self.wait, self.kill = process.write_line, process.wait, process.kill

    def read_line(self, deadline: Deadline) -> str | None:
        line = self._process.read_line(deadline)
        if line is not None:
            self.lines.append(line)
        return line


class StartsTogether(LocalExecutor):
    """Starts no command in the background before the other servers start theirs; ``running`` has its processes."""

    def __init__(self, clock: Clock, others: Barrier) -> None:
        super().__init__(clock)
        self.started: list[Sequence[str]] = []
        self.running: list[Overheard] = []
        self._others = others

    def start(self, argv: Sequence[str]) -> Any:
        self.started.append(argv)
        self._others.wait(20)
        self.running.append(Overheard(super().start(argv)))
        return self.running[-1]

    def reads(self) -> int:
        """How many reads came back to the probe that was started here, by what it said so far."""
        (probe,) = self.running
        events = [json.loads(line) for line in tuple(probe.lines)]
        assert not any(event["event"] == "result" for event in events)
        return sum(event["completed"] for event in events if event["event"] == "interval")


@dataclass
class Servers:
    """What I/O asks of a bench."""

    hosts: Mapping[str, StartsTogether]
    drives: Mapping[str, DevicePath]
    clock: Clock = CLOCK

    @property
    def lab(self) -> Any:
        return SimpleNamespace(time_s=lambda _what: 30.0)

    def host(self, server: str) -> StartsTogether:
        return self.hosts[server]

    def device(self, server: str, _port: str) -> DevicePath:
        return self.drives[server]


class Events(list[Event]):
    def write(self, event: Event) -> None:
        self.append(event)


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[Servers]:
    others = Barrier(len(SERVERS))
    drives = {}
    for server in SERVERS:
        with (tmp_path / server).open("wb") as file:
            file.truncate(RESERVED_BYTES + 8 * MIB)
        drives[server] = DevicePath(tmp_path / server)
    with ExitStack() as stack:
        hosts = {server: stack.enter_context(StartsTogether(CLOCK, others)) for server in SERVERS}
        yield Servers(hosts, drives)


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
def test_verified_writes_begin_on_all_servers_as_soon_as_they_can(servers: Servers) -> None:
    writes = VerifiedWrites(cast("Bench", servers), cast("EventSink", Events()), "test", seed=1)
    with ExitStack() as stack:
        drives = {server: stack.enter_context(minted(drive, f"RL{server}")) for server, drive in servers.drives.items()}
        with writes.running(drives, size_bytes=MIB, iodepth=2):
            assert not writes.results
    assert list(writes.results) == list(SERVERS)
    assert all(seen.errors == 0 and seen.ios > 0 for seen in writes.results.values())
    started = (" ".join(argv) for host in servers.hosts.values() for argv in host.started)
    starts = [start for start in started if ".fio" in start]
    assert len(starts) == len(SERVERS)
    assert not any(".hold" in start for start in starts), "no job is held back for a moment of all"


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
def test_what_is_written_is_read_back_long_before_all_of_it_is_written(servers: Servers) -> None:
    for drive in servers.drives.values():
        os.truncate(drive.path, RESERVED_BYTES + 1024 * MIB)
    writes = VerifiedWrites(cast("Bench", servers), cast("EventSink", Events()), "test", seed=1)
    with ExitStack() as stack:
        drives = {server: stack.enter_context(minted(drive, f"RL{server}")) for server, drive in servers.drives.items()}
        with writes.running(drives, size_bytes=1024 * MIB, iodepth=2):
            # A file has no room for what was not written to it, and 64 blocks are written before one is read.
            files = [Path(drive.path) for drive in servers.drives.values()]
            assert soon().poll(lambda: all(file.stat().st_blocks * 512 > 100 * 4096 for file in files), every_s=0.01)
    writes.require_verified()
    for seen in writes.results.values():
        assert 64 <= seen.verified < seen.ios < 1024 * MIB // 4096
        assert seen.wrong == 0


@pytest.mark.skipif(not (shutil.which("fio") and shutil.which("nbdkit")), reason="fio or nbdkit is not installed")
def test_a_drive_that_fails_every_write_is_the_products_failure(servers: Servers, tmp_path: Path) -> None:
    size_bytes = RESERVED_BYTES + 8 * MIB
    failing = ("--filter=error", "memory", f"{size_bytes >> 20}M", "error-pwrite-rate=100%")
    writes = VerifiedWrites(cast("Bench", servers), cast("EventSink", Events()), "test", seed=1)
    with ExitStack() as stack:
        socket = stack.enter_context(serving_unix(tmp_path / "nbd", failing))
        exports: dict[str, NbdExport | DevicePath] = {"srv1": NbdExport(socket, "", size_bytes)}
        exports["srv2"] = servers.drives["srv2"]
        drives = {server: stack.enter_context(minted(drive, f"RL{server}")) for server, drive in exports.items()}
        with (
            pytest.raises(ProductFailed, match=r"all [0-9]+ I/Os of fio on srv1 failed: Input/output error"),
            writes.running(drives, size_bytes=MIB, iodepth=2),
        ):
            pass


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
def test_writes_that_were_over_before_the_block_have_no_verdict(servers: Servers) -> None:
    writes = VerifiedWrites(cast("Bench", servers), cast("EventSink", Events()), "test", seed=1, longest_s=0.3)
    with ExitStack() as stack:
        drives = {server: stack.enter_context(minted(drive, f"RL{server}")) for server, drive in servers.drives.items()}
        with (
            pytest.raises(LimitsUnknown, match=r"fio on srv1 ended by itself after 0\.\d s, before the test was over"),
            writes.running(drives, size_bytes=MIB, iodepth=2),
        ):
            assert [host.running[-1].wait(soon()).status for host in servers.hosts.values()] == [0, 0]


def test_writes_of_which_no_block_was_read_back_have_no_verdict() -> None:
    writes = VerifiedWrites(cast("Bench", None), cast("EventSink", Events()), "test", seed=1)
    latency_s = Distribution.from_bins({0.001: 10})
    seen = WritesSeen(errors=0, wrong=0, verified=0, ios=10, longest_stall_s=0.001, latency_s=latency_s)
    writes.results = {"srv1": replace(seen, verified=3), "srv2": seen}
    with pytest.raises(LimitsUnknown, match="of what fio wrote on srv2 no block was read back"):
        writes.require_verified()


def test_ports_are_watched_side_by_side(servers: Servers) -> None:
    labels = {}
    for server, drive in servers.drives.items():
        serial = f"RL{server}"
        with minted(drive, serial) as writable:
            RackProbe(servers.hosts[server], CLOCK).write(writable, soon(), sectors=MIB // 4096, generation=1)
        labels[server] = Expected(serial, generation=1)
    watching = Watching(cast("Bench", servers), cast("EventSink", Events()), "test")
    with watching.running(dict.fromkeys(SERVERS, "p0"), labels):
        assert not watching.results
        assert all(host.reads() for host in servers.hosts.values()), "reads came back before the block began"
    assert list(watching.results) == list(SERVERS)
    assert all(seen.reads > 0 and not (seen.wrong or seen.lost or seen.errors) for seen in watching.results.values())
    watches = [argv for host in servers.hosts.values() for argv in host.started if "watch" in argv]
    assert len(watches) == len(SERVERS)
    assert all("--drain-ms=60000" in argv for argv in watches), "a read is lost only after any drive would have come"
