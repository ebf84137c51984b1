"""The simulated rack without a switch, described as a physical one."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import yaml

from rackloop.abilities import WritableDrive
from rackloop.lab import Lab, LabState, load_lab
from rackloop.safety import Guard, HealReport, heal
from rackloop.safety.leases import HeldLease, leased
from rackloop.safety.store import open_store
from rackloop.safety.undo import ActRecorder, Journal, journalled
from rackloop_drivers.block import HostPath
from rackloop_drivers.drive import HostDrive
from rackloop_labs import Bench, open_lab
from tests.deadlines import CLOCK, soon
from tests.mock_rack import MockRack

PLACES = {"ssd1": ("node1", "p0"), "fast1": ("node1", "p1"), "sas1": ("node1", "p2"), "hdd1": ("node2", "p1")}
"""Drives that are attached to a server, with the port.

They sanitize themselves by hdparm, nvme-cli and sg3_utils; hdd1 has Security Erase alone.
"""
PORTS = {"node1": ["p0", "p1", "p2"], "node2": ["p0", "p1"]}


def described(rack: MockRack, folder: Path) -> Lab:
    """The simulated rack as a physical one: all that is known of it is how its servers are reached."""
    login = rack.endpoints["ssh"]
    reached = {"known_hosts": login["known_hosts"], "key_file": login["key_file"], "user": login["user"]}
    servers: dict[str, Any] = {
        name: {"ports": dict.fromkeys(ports), "paths": dict(rack.lab.servers[name].paths), **reached}
        for name, ports in PORTS.items()
    }
    for name, server in servers.items():
        server["ssh"] = rack.endpoints["servers"][name]["ssh"]
    drives = {}
    for name, drive in rack.lab.drives.items():
        given = {key: value for key in ("wwn", "eui64", "expander", "slot") if (value := getattr(drive, key))}
        given |= {"attached": "/".join(drive.attached)} if drive.attached else {}
        same = {"profile": drive.profile, "model": drive.model, "serial": drive.serial, "size": f"{drive.size} B"}
        drives[name] = {**same, **given, "scratch": True}
    document = {
        "name": "real",
        "kind": "physical",
        "controllers": [socket.gethostname()],
        "fabric": {"driver": "static"},
        "servers": servers,
        "expanders": {"shelf1": {"attached": "node2/p0", "slots": 12}},
        "drives": drives,
    }
    path = folder / "real.yaml"
    # Ports without a number, as a person writes them.
    path.write_text(yaml.safe_dump(document).replace(": null", ":"))
    return load_lab(path)


class Real:
    """The rack, opened as a physical one under a lease of all of it."""

    def __init__(self, bench: Bench, journal: Journal, held: HeldLease) -> None:
        self.lab = bench.lab
        self.bench = bench
        self.journal = journal
        self.held = held
        self.equipment = journalled(bench.equipment, ActRecorder(bench.lab, journal, "run", lease=held))

    def drive(self, name: str) -> tuple[HostDrive, HostPath]:
        drive, device = self.bench.drive(*PLACES[name]), self.bench.device(*PLACES[name])
        assert isinstance(drive, HostDrive)
        assert isinstance(device, HostPath)
        return drive, device

    def writable(self, name: str) -> WritableDrive:
        drive, device = self.drive(name)
        return Guard(self.bench.lab, self.held).writable(name, drive, device, soon())

    def says(self, name: str, *argv: str) -> str:
        return self.bench.host(PLACES[name][0]).run(argv, soon()).stdout

    def node(self, name: str) -> str:
        """The device node of a drive, which its server names as the drives appear there."""
        _, device = self.drive(name)
        return device.seen(soon()).device

    def heal(self) -> HealReport:
        return heal(self.bench.lab, self.journal, self.bench.equipment, CLOCK, soon(), lease=self.held)


@contextmanager
def opened(rack: MockRack, folder: Path) -> Iterator[Real]:
    """The simulated rack, opened as a physical one, with a store of its own in ``folder``."""
    lab = described(rack, folder)
    with ExitStack() as stack:
        store = open_store(folder / "store.sqlite", CLOCK)
        stack.callback(store.close)
        held = stack.enter_context(leased(lab, store))
        bench = stack.enter_context(open_lab(lab, CLOCK, LabState.of(lab.name, root=folder), None, lease=held))
        yield Real(bench, Journal(store), held)
