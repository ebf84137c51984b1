"""The simulated rack without a switch, described as a physical one."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import yaml

from rackloop.lab import Lab, load_lab
from tests.mock_rack import MockRack

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
