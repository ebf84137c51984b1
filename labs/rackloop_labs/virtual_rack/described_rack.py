"""The description of a virtual rack that is up, as the code for physical racks opens it."""

from __future__ import annotations

import hashlib
import socket
from collections.abc import Iterator, Mapping
from typing import Any, get_args

import yaml

from rackloop.lab import Lab, TimeName
from rackloop.lab.yaml import KeyPath
from rackloop_drivers.boxes import BmcDriver, ConsoleDriver, FabricDriver, PduDriver
from rackloop_drivers.fabric.flexfabric import FlexFabricDriver
from rackloop_labs.virtual_rack.guest_drives import not_emulated
from rackloop_labs.virtual_rack.port_places import SATA_PORTS, places_of
from rackloop_labs.virtual_rack.recipe import GuestRecipe

REHEARSAL = "rehearsal.yaml"
"""The file of the description, in the state directory of a lab that is up."""

_LONGEST_NAME = 16


def as_equipment(lab: Lab, endpoints: Mapping[str, Any]) -> Lab:
    """``lab`` with what a physical rack's description says besides: where its switch and its servers answer.

    ``endpoints`` are those of the lab that is up.
    """
    login = endpoints["ssh"]
    servers = {}
    for name, server in lab.servers.items():
        running = endpoints["servers"][name]
        update: dict[str, Any] = {key: running[key] for key in ("ssh", "clock", "paths")} | {"user": login["user"]}
        update |= {key: type(lab.source)(login[key]) for key in ("known_hosts", "key_file")}
        if server.console is not None:
            update["console"] = ConsoleDriver.of(server.console, running["console"])
        if server.bmc is not None:
            update["bmc"] = BmcDriver.of(server.bmc, running["bmc"])
        servers[name] = server.model_copy(update=update)
    pdus = {name: PduDriver.of(pdu, endpoints["pdu"][name]) for name, pdu in lab.pdus.items()}
    fabric = FabricDriver.of(lab.fabric, endpoints["switch"]) if lab.has_switch else lab.fabric
    return lab.model_copy(update={"servers": servers, "pdus": pdus, "fabric": fabric})


def with_places(lab: Lab) -> Lab:
    """``lab`` with a path for each port, which is not up: only its guest knows the number of a slot's bus."""
    buses = range(1, 1 + max(len(server.ports) for server in lab.servers.values()))
    servers = {
        name: server.model_copy(
            update={"paths": {port: place.path(buses) for port, place in places_of(lab, name).items()}}
        )
        for name, server in lab.servers.items()
    }
    return lab.model_copy(update={"servers": servers})


def rehearsal(lab: Lab, endpoints: Mapping[str, Any]) -> str:
    """The text of a description, of kind physical, of a virtual rack that is up: as if it were simply there.

    Its first server is reached by an account that sudo lets be root, the others as root.
    """
    login = endpoints["ssh"]
    users = dict.fromkeys(lab.servers, login["user"]) | {next(iter(lab.servers)): login["account"]}
    servers = {
        name: {
            "stack": str(server.stack),
            "ports": dict(server.ports),
            "paths": endpoints["servers"][name]["paths"],
            "ssh": endpoints["servers"][name]["ssh"],
            "clock": endpoints["servers"][name]["clock"],
            "known_hosts": login["known_hosts"],
            "user": users[name],
            "key_file": login["key_file"],
            "console": {"driver": "ser2net", **endpoints["servers"][name]["console"]},
            **({"bmc": _box(endpoints["servers"][name]["bmc"])} if server.bmc is not None else {}),
            **_fed(server.outlet),
        }
        for name, server in lab.servers.items()
    }
    pdus = {name: _box(endpoints["pdu"][name]) | {"outlets": pdu.outlets} for name, pdu in lab.pdus.items()}
    drives = {
        name: {
            "profile": drive.profile,
            "model": drive.model,
            "serial": drive.serial,
            **({} if drive.wwn is None else {"wwn": drive.wwn}),
            "size": f"{drive.size} B",
            **({"port": drive.port} if drive.attached is None else {"attached": "/".join(drive.attached)}),
            "scratch": drive.scratch,
        }
        for name, drive in lab.drives.items()
    }
    # A physical rack has one store of leases on a machine, and another user's virtual rack is another rack.
    place = hashlib.sha256(endpoints["rehearsal"].encode()).hexdigest()[:4]
    document = {
        "name": f"{lab.name[:_LONGEST_NAME]}-rehearsal-{place}",
        "kind": "physical",
        "controllers": [socket.gethostname()],
        "times": {name: f"{lab.time_s(name)!r} s" for name in get_args(TimeName)},
        "fabric": _fabric(lab, endpoints),
        **({"pdus": pdus} if pdus else {}),
        "servers": servers,
        "drives": drives,
        **({"baseline": {server: dict(joined) for server, joined in lab.baseline.items()}} if lab.has_switch else {}),
    }
    head = f"# The guests of lab {lab.name}, described as a rack that is simply there. Written by `rackloop lab up`.\n"
    return head + yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=120)


class _Dumper(yaml.SafeDumper):
    """Writes a port that is wired to no switch as a description does: with nothing after its name."""


_Dumper.add_representer(type(None), lambda dumper, _: dumper.represent_scalar("tag:yaml.org,2002:null", ""))


def _fabric(lab: Lab, endpoints: Mapping[str, Any]) -> dict[str, Any]:
    if not lab.has_switch:
        return {"driver": "static"}
    control = {"tcp": endpoints["switch"]["tcp"]}
    return {"driver": "flexfabric", "ports": lab.fabric.ports, "control": control, **_fed(lab.fabric.outlet)}


def _box(endpoint: Mapping[str, Any]) -> dict[str, Any]:
    """A box of the rack as one of equipment is described: its password is where it is kept."""
    told = {key: value for key, value in endpoint.items() if key != "password_file" and value is not None}
    return told | {"password": {"file": endpoint["password_file"]}}


def _fed(outlet: tuple[str, int] | None) -> dict[str, str]:
    return {} if outlet is None else {"outlet": f"{outlet[0]}/{outlet[1]}"}


def not_virtual(lab: Lab, recipe: GuestRecipe | None = None) -> Iterator[tuple[KeyPath, str]]:
    """The parts of a description of kind virtual that no virtual rack can have yet, each with its place in the file."""
    slots = (recipe or GuestRecipe()).slots
    if lab.has_switch and not isinstance(lab.fabric, FlexFabricDriver):
        yield (
            ("fabric", "driver"),
            f"is {lab.fabric.driver}: a virtual rack has the switch flexfabric, or static; write one",
        )
    if lab.phy is not None:
        yield ("phy",), "a virtual rack has no other PHYs than those of its switch; delete the key"
    for section, there in {"expanders": lab.expanders, "jump_hosts": lab.jump_hosts}.items():
        if there:
            yield (section,), "a virtual rack has none yet; delete the key"
    for name, server in lab.servers.items():
        path = ("servers", name)
        for key in ("jump", "ssh", "clock", "known_hosts", "key_file", "password", "paths"):
            if key in server.model_fields_set:
                made = "makes its own" if key not in {"jump", "password"} else "has none yet"
                yield (*path, key), f"a virtual rack {made}; delete the key"
        if len(server.ports) > slots:
            yield (*path, "ports"), f"are {len(server.ports)}: a guest has {slots} slots; give it fewer"
        if (sata := sum(place.sata is not None for place in places_of(lab, name).values())) > SATA_PORTS:
            yield (*path, "ports"), f"have {sata} SATA drives: a guest takes {SATA_PORTS}; attach fewer"
        if server.console is not None and server.console.driver != "ser2net":
            yield (
                (*path, "console"),
                f"is {server.console.driver}: a guest's console is reached as by ser2net; write that",
            )
        if server.bmc is not None and not server.bmc.is_simulated:
            yield (*path, "bmc"), f"is {server.bmc.driver}, which simulates none: give a guest another, such as redfish"
    for name, pdu in lab.pdus.items():
        if not pdu.is_simulated:
            yield ("pdus", name), f"is {pdu.driver}, which simulates none: feed guests from another, such as redfish"
    yield from not_emulated(lab)
