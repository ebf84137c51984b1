"""Device events of a real kernel, stamped by rackprobe on a server and told on the run's clock."""

from __future__ import annotations

import os
from pathlib import Path
from queue import SimpleQueue

import pytest

from rackloop.native import find_binary
from rackloop_drivers.host import LocalExecutor, SshHost
from rackloop_drivers.workload import DeviceEvent, DeviceEvents, RackProbe
from tests.deadlines import CLOCK, soon

# The kernel tells an event anew when it is asked to; of the loopback nobody is disturbed.
ANEW = Path("/sys/class/net/lo/uevent")


@pytest.fixture(autouse=True)
def asks_anew() -> None:
    if not os.access(ANEW, os.W_OK):
        pytest.skip("only root may have a kernel tell an event anew")


def followed(probe: RackProbe, *subsystems: str) -> tuple[DeviceEvents, SimpleQueue[DeviceEvent], SimpleQueue[str]]:
    events, reasons = SimpleQueue[DeviceEvent](), SimpleQueue[str]()
    return probe.device_events(events.put, reasons.put, soon(), subsystems=subsystems), events, reasons


def test_an_event_of_a_servers_kernel_has_its_moment_on_the_runs_clock(host: SshHost) -> None:
    session, events, reasons = followed(RackProbe(host, CLOCK), "net")
    with session:
        before_ns = CLOCK.now_ns()
        ANEW.write_text("add")
        event = events.get(timeout=120)
        moment = session.moment(event)
    assert (event.source, event.action, event.subsystem) == ("kernel", "add", "net")
    assert (event.devpath, event.devlinks) == ("/devices/virtual/net/lo", ())
    assert before_ns < moment.at_ns < CLOCK.now_ns()
    assert event.waited_ns is None or event.waited_ns >= 0
    assert reasons.empty(), "it was closed, and did not end by itself"


def test_events_of_other_subsystems_are_left_out(probe: RackProbe) -> None:
    session, events, _ = followed(probe, "block")
    every, told, _ = followed(probe)
    with session, every:
        ANEW.write_text("change")
        assert told.get(timeout=120).subsystem == "net"
    # Other tests of this machine may attach block devices meanwhile.
    assert {events.get().subsystem for _ in range(events.qsize())} <= {"block"}


def test_a_probe_that_ends_says_so_once(executor: LocalExecutor, tmp_path: Path) -> None:
    wrapper = tmp_path / "rackprobe"
    wrapper.write_text(f'#!/bin/sh\ntimeout 0.2 {find_binary("rackprobe")} "$@"\necho it was killed >&2\nexit 9\n')
    wrapper.chmod(0o755)
    session, _, reasons = followed(RackProbe(executor, CLOCK, str(wrapper)))
    with session:
        assert "ended with status 9: it was killed" in reasons.get(timeout=120)
    assert reasons.empty()
