"""A rackd with a small rack whose servers are watched."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rackloop.clock import Deadline
from rackloop.lab import load_lab
from rackloop_drivers.rackd import RackdControl
from rackloop_labs._rackd_config import rackd_config
from rackloop_labs.mock_hosts._view import HostView
from rackloop_labs.mock_hosts._watch import HostWatch
from tests.deadlines import CLOCK
from tests.rackd_process import RunningRackd, running_rackd

LAB = """
name: bench
kind: mock
fabric: {driver: flexfabric, ports: 160}
servers:
  srv1: {stack: comreset, ports: {p0: 1, p1: 2, p2: 3, p3: 4}}
  srv2: {stack: comreset, ports: {p0: 5, p1: 6}}
expanders: {exp1: {port: 150, slots: 8}}
drives:
  d01: {profile: sata-ssd, serial: RL01, wwn: 5000c500a0000001, size: 64 MiB, port: 101, scratch: true}
  d02: {profile: sas-hdd, serial: RL02, wwn: 5000c500a0000002, size: 64 MiB, port: 102, scratch: true}
  d03: {profile: nvme-ssd, serial: RL03, eui64: 0025385b71b00009, size: 64 MiB, port: 103, scratch: true}
  d04: {profile: sata-ssd, serial: RL04, wwn: 5000c500a0000004, size: 64 MiB, port: 104, scratch: true}
  d05: {profile: sas-hdd, serial: RL05, wwn: 5000c500a0000005, size: 64 MiB, expander: exp1, slot: 2, scratch: true}
  d06: {profile: sas-hdd, serial: RL06, wwn: 5000c500a0000006, size: 64 MiB, expander: exp1, slot: 5, scratch: true}
baseline: {srv1: {p0: d01, p1: d02, p2: d03}}
"""


@dataclass(frozen=True)
class WatchedRack:
    """A rackd, the connection to it, and the watch of its servers."""

    rackd: RunningRackd
    control: RackdControl
    watch: HostWatch

    def ask(self, op: str, **fields: Any) -> dict[str, Any]:
        return self.control.request(op, Deadline.after(CLOCK, 10), **fields)

    def until(self, fits: Callable[[HostView], object], server: str = "srv1") -> HostView:
        """The first view of a server that fits."""
        deadline = Deadline.after(CLOCK, 10)
        while not fits(view := self.watch.view(server)):
            assert not deadline.is_over(), view
        return view


@contextmanager
def watched_rack(directory: Path) -> Iterator[WatchedRack]:
    """Both servers booted, the three drives of the baseline attached."""
    description = directory / "bench.yaml"
    description.write_text(LAB)
    lab = load_lab(description)
    state = directory / "state"
    state.mkdir()
    with (
        running_rackd(state, rackd_config(lab, str(state), 1)) as rackd,
        closing(rackd.connect()) as control,
        closing(HostWatch(lab, rackd.control, rackd.truth_log, CLOCK)) as watch,
    ):
        for server in lab.servers:
            watch.boot(server, f"boot-{server}")
        rack = WatchedRack(rackd, control, watch)
        rack.until(lambda view: len(view.drives) == 3)
        yield rack


def names(view: HostView) -> dict[str, str]:
    """The kernel names of the drives that a server sees."""
    return {drive.drive_id: drive.kernel_name for drive in view.drives}
