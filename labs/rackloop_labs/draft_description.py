"""A draft lab description from what the servers of a live rack see; what cannot be found out is a comment in it.

Sources of the by-path names that ports are told by: udev's path_id builtin.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count
from socket import gethostname

from rackloop.abilities import BoxIdentity
from rackloop.abilities.inventory import HostInventory, SeenDrive
from rackloop.drive_identifiers import PCI_ADDRESS, normal_text
from rackloop.errors import NotSupported
from rackloop.lab import EnvironmentSecret, FileSecret, Lab, Secret, VaultSecret, load_profile, profile_names
from rackloop.portmap import PortMap
from rackloop.units import parse_size
from rackloop_drivers.host import SshAccess

FILL_IN = "FILL IN"

# Behind Intel VMD a function has the address of the controller before its own.
_PCI = rf"pci-{PCI_ADDRESS}(?:-pci-{PCI_ADDRESS})*"
_PORT_OF = (
    re.compile(rf"({_PCI}-sas-exp0x[0-9a-f]{{16}})-phy\d+-lun-\d+"),
    re.compile(rf"({_PCI}-sas-phy\d+)-lun-\d+"),
    # An adapter whose driver tells of no PHYs: a RAID controller's, or that of a virtual rack.
    re.compile(rf"({_PCI}-scsi-\d+:\d+:\d+):\d+"),
    re.compile(rf"({_PCI}-ata-\d+)(?:\.\d+)?"),
    re.compile(rf"({_PCI})-nvme-\d+"),
)
_PLAIN = re.compile(r"[A-Za-z0-9_./~][A-Za-z0-9_./ +-]*")
_SIZES = ("TiB", "GiB", "MiB", "TB", "GB", "MB")


@dataclass(frozen=True)
class FoundSwitch:
    """A circuit switch that answered: who it is, how it is reached (a key of ``control`` and its value), its map."""

    identity: BoxIdentity
    control: tuple[str, str]
    ports: int
    live: PortMap


@dataclass(frozen=True)
class FoundServer:
    """A server, how it is logged in to, and what it sees."""

    access: SshAccess
    inventory: HostInventory


@dataclass(frozen=True)
class _Port:
    """An HBA port with what is there; ``number`` is the switch port it is wired to, None where that is unknown."""

    name: str
    path: str
    number: int | None = None
    drives: tuple[SeenDrive, ...] = ()

    @property
    def is_expander(self) -> bool:
        """Whether there is an expander between the port and its drives."""
        return any("-sas-exp0x" in name for drive in self.drives for name in drive.by_paths)


@dataclass
class _Written:
    """The lines of each section so far."""

    drives: list[str] = field(default_factory=list)
    expanders: list[str] = field(default_factory=list)
    baseline: list[str] = field(default_factory=list)


@dataclass
class DraftDescription:
    """Writes the description of ``name``.

    ``known`` is a description of the same rack, where there is one: names are taken from it, and, where it gives every
    port a path, ports and switch ports, so that drives can be put at the switch ports the map joins them to. Without
    that the wiring of server ports to the switch is unknown, and drives are described as attached to the
    server ports they are seen at. ``controller`` is the machine that the rack is worked on from.
    """

    name: str
    servers: list[FoundServer]
    switch: FoundSwitch | None = None
    known: Lab | None = None
    controller: str = field(default_factory=gethostname)
    _drive_names: Iterator[int] = field(default_factory=lambda: count(1))
    _expander_names: Iterator[int] = field(default_factory=lambda: count(1))

    def text(self, at: datetime) -> str:
        """The file, with a comment for everything that is left to say."""
        ports = {server.access.name: self._ports(server) for server in self.servers}
        is_switched = self._knows_switch_ports()
        written = _Written()
        for server in self.servers:
            joined: dict[str, str] = {}
            for port in ports[server.access.name]:
                far = self._plugged(server.access.name, port, written, is_switched=is_switched) if port.drives else None
                if far is not None:
                    joined[port.name] = far
            if joined and is_switched:
                written.baseline.append(f"  {server.access.name}: {_mapping(joined)}")
        lines = [*self._head(at), *self._fabric(is_switched=is_switched), "", "servers:"]
        for server in self.servers:
            lines += self._server(server, ports[server.access.name])
        lines += [
            *self._jump_hosts(),
            "",
            f"# pdus: {FILL_IN} the power distribution units, and each server's outlet",
            *(["", "expanders:", *written.expanders] if written.expanders else []),
            "",
            "# scratch is false for every drive: whether a byte on it is worth keeping cannot be read. Change it",
            "# to true only for drives that tests may erase.",
            *(
                [f"# {FILL_IN} the drives that no server is joined to: map them and discover again."]
                if self.switch
                else []
            ),
            "drives:",
            *(written.drives or [f"  # {FILL_IN}: no server sees a drive"]),
        ]
        if written.baseline:
            lines += ["", "# What was joined when this was written.", "baseline:", *written.baseline]
        return "".join(f"{_one_line(line)}\n" for line in lines)

    def _knows_switch_ports(self) -> bool:
        """Whether it is known which switch port each drive is seen through."""
        known = self.known
        return (
            self.switch is not None
            and known is not None
            and known.has_switch
            and all(server.paths.keys() >= server.ports.keys() for server in known.servers.values())
        )

    def _head(self, at: datetime) -> list[str]:
        return [
            f"# {self.name}: a first description, made by `rackloop lab discover` on {at:%Y-%m-%d}.",
            f"# It holds what the servers see. Look for {FILL_IN}, then check it: rackloop lab check FILE",
            f"name: {self.name}",
            "kind: physical",
            "# The machines that the rack is worked on from; more than one need a store that they share: store.",
            # In quotes, as a container's name may be a number.
            f"controllers: ['{self.controller}']",
            "",
        ]

    def _fabric(self, *, is_switched: bool) -> list[str]:
        if self.switch is None:
            return [
                "# No switch was asked (--switch): drives are described where they are seen.",
                "fabric: {driver: static}",
            ]
        switch, (key, value) = self.switch, self.switch.control
        described = f"fabric: {{driver: flexfabric, ports: {switch.ports}, control: {{{key}: {_scalar(value)}}}}}"
        who = f"{switch.identity.vendor} {switch.identity.model}, serial {switch.identity.serial}"
        if is_switched:
            return [f"# {who}", described]
        pairs = switch.live.canonical_text() or "none"
        return [
            f"# {FILL_IN}: {who} answered, but which server port is in which of its ports cannot be seen from outside.",
            f"# Joined now: {pairs}",
            "# Write the number of each server port (ports: {p0: 1}), port: instead of attached: for each drive, and",
            f"# {described}",
            "fabric: {driver: static}",
        ]

    def _server(self, found: FoundServer, ports: list[_Port]) -> list[str]:
        access = found.access
        numbers = {port.name: "" if port.number is None else str(port.number) for port in ports}
        is_numbered = all(numbers.values())
        names = _mapping(numbers) if is_numbered else "{" + ", ".join(numbers) + "}"
        paths = _mapping({port.name: _scalar(port.path) for port in ports})
        lines = [f"  {access.name}:"]
        if ports:
            lines += [f"    ports: {names}", f"    paths: {paths}"]
        else:
            lines += [f"    # {FILL_IN}: no drive is seen at any port, so they cannot be told", "    ports: {p0}"]
        reached = _reached(access) | ({} if access.jump is None else {"jump": access.jump.name})
        lines += [f"    {key}: {value}" for key, value in reached.items()]
        lines.append(
            f"    # bmc: {FILL_IN} as in {{driver: redfish, address: 'https://...', user: ..., password: {{env: ...}}}}"
        )
        for drive in found.inventory.drives:
            if drive.usage.is_boot_drive:
                lines.append(f"    # left out: {drive.device} ({drive}) is its boot drive")
            elif not any(drive in port.drives for port in ports):
                lines.append(f"    # {FILL_IN}: {drive.device} ({drive}) is at no port that its by-path names tell")
        for node, reason in found.inventory.unreadable.items():
            lines.append(f"    # {FILL_IN}: {node} cannot be read: {reason.splitlines()[0]}")
        return lines

    def _jump_hosts(self) -> list[str]:
        """The machines that servers were reached from."""
        jumps = {found.access.jump.name: found.access.jump for found in self.servers if found.access.jump is not None}
        lines = [f"  {name}: {_mapping(_reached(jump))}" for name, jump in jumps.items()]
        return ["", "jump_hosts:", *lines] if lines else []

    def _ports(self, found: FoundServer) -> list[_Port]:
        """The ports of a server with what is at each: those that are known, else those where something is seen."""
        drives = [drive for drive in found.inventory.drives if not drive.usage.is_boot_drive]
        known = self.known.servers.get(found.access.name) if self.known else None
        if known is not None and known.paths.keys() >= known.ports.keys():
            paths = known.paths
            # Without the numbers of all, the draft's fabric is one that has none.
            numbers = known.ports if self._knows_switch_ports() else dict.fromkeys(known.ports)
            return [
                _Port(name, paths[name], number, tuple(drive for drive in drives if drive.is_at(paths[name])))
                for name, number in numbers.items()
            ]
        at: dict[str, list[SeenDrive]] = {}
        for drive in drives:
            if path := _port_path(drive):
                at.setdefault(path, []).append(drive)
        return [_Port(f"p{number}", path, drives=tuple(at[path])) for number, path in enumerate(sorted(at))]

    def _plugged(self, server: str, port: _Port, written: _Written, *, is_switched: bool) -> str | None:
        """Write down what is plugged in at a port; returns its name, None where its wiring is unknown."""
        far = self.switch.live.peer_of(port.number) if self.switch and is_switched and port.number is not None else None
        if is_switched and far is None:
            what = f"at {server}.{port.name}, which the switch says is joined to nothing"
            written.drives += [f"  # {FILL_IN}: {drive} is seen {what}" for drive in port.drives]
            return None
        place = {"attached": f"{server}/{port.name}"} if far is None else {"port": str(far)}
        if port.is_expander:
            return self._expander(port, place, written)
        first, *rest = port.drives
        name = self._drive_name(first)
        written.drives += self._drive(name, first, place)
        written.drives += [
            f"  # {FILL_IN}: {drive} ({drive.device} of {server}) is at {port.name} too" for drive in rest
        ]
        return name

    def _expander(self, port: _Port, place: Mapping[str, str], written: _Written) -> str:
        name = self._expander_name(place)
        slots = {drive.device: drive.identity.identifiers.get("slot", "") for drive in port.drives}
        highest = max((int(slot) for slot in slots.values() if slot.isdecimal()), default=0)
        if self.known is not None and name in self.known.expanders:
            number = self.known.expanders[name].slots
        else:
            written.expanders.append(f"  # {FILL_IN} how many slots it has: the highest with a drive is {highest}")
            number = highest + 1
        written.expanders.append(f"  {name}: {_mapping({**place, 'slots': str(number)})}")
        for drive in port.drives:
            if (slot := slots[drive.device]).isdecimal():
                written.drives += self._drive(self._drive_name(drive), drive, {"expander": name, "slot": slot})
            else:
                written.drives.append(f"  # {FILL_IN}: {drive} is in {name}, in a slot that nothing numbers")
        return name

    def _drive(self, name: str, seen: SeenDrive, place: Mapping[str, str]) -> list[str]:
        identity = seen.identity
        fields = {
            "profile": _profile(seen),
            "model": _scalar(identity.model),
            "firmware": _scalar(identity.firmware),
            "serial": _scalar(identity.serial),
            **{
                kind: _scalar(identity.identifiers[kind])
                for kind in ("wwn", "eui64", "nguid")
                if kind in identity.identifiers
            },
            "size": _size(identity.size_bytes),
            **place,
            "scratch": "false",
        }
        # Behind a switch such a name is the port's: whichever drive is mapped there has it.
        is_named = any(kind in fields for kind in ("wwn", "eui64", "nguid", "port"))
        if not is_named and seen.by_paths:
            fields["by_path"] = _scalar(seen.by_paths[0])
        return [*(f"  # in use: {claim}" for claim in seen.usage.claims), f"  {name}: {_mapping(fields)}"]

    def _drive_name(self, seen: SeenDrive) -> str:
        if self.known is not None:
            serial = normal_text(seen.identity.serial)
            for name, drive in self.known.drives.items():
                if normal_text(drive.serial) == serial:
                    return name
        taken = self.known.drives if self.known else {}
        return next(name for number in self._drive_names if (name := f"d{number:02}") not in taken)

    def _expander_name(self, place: Mapping[str, str]) -> str:
        known = self.known.expanders if self.known else {}
        same = (
            name
            for name, expander in known.items()
            if place in ({"port": str(expander.port)}, {"attached": "/".join(expander.attached or ())})
        )
        fresh = (name for number in self._expander_names if (name := f"exp{number}") not in known)
        return next(same, None) or next(fresh)


def _reached(access: SshAccess) -> dict[str, str]:
    """The keys by which a description says how a machine is logged in to, with their values."""
    keys = {"ssh": access.address, "user": access.user, "known_hosts": str(access.known_hosts)}
    keys |= {} if access.key_file is None else {"key_file": str(access.key_file)}
    reached = {key: _scalar(value) for key, value in keys.items()}
    return reached if access.password is None else reached | {"password": _secret(access.password)}


def _secret(secret: Secret) -> str:
    """The place where a secret is kept."""
    match secret:
        case EnvironmentSecret(name):
            return _mapping({"env": name})
        case FileSecret(path):
            return _mapping({"file": _scalar(str(path))})
        case VaultSecret(path, key):
            return _mapping({"vault": _mapping({"file": _scalar(str(path)), "key": _scalar(key)})})
        case _:
            raise NotSupported(f"{secret!r} is a secret that a description has no words for")


def _port_path(seen: SeenDrive) -> str | None:
    """The part of a by-path name that says at which port the drive is, None where no name tells."""
    for name in seen.by_paths:
        for pattern in _PORT_OF:
            if found := pattern.fullmatch(name):
                return found[1]
    return None


def _profile(seen: SeenDrive) -> str:
    """The profile of the drive's model, else that of a drive of its protocol and medium."""
    model = normal_text(seen.identity.model)
    for name in profile_names():
        profile = load_profile(name)
        if normal_text(profile.model) == model and profile.protocol == seen.identity.protocol:
            return name
    if seen.identity.protocol == "nvme":
        return "nvme-ssd"
    transport = "sata" if seen.identity.protocol == "sata" else "sas"
    return f"{transport}-{'hdd' if seen.is_rotational else 'ssd'}"


def _size(size_bytes: int) -> str:
    """The size in the largest unit that says it exactly."""
    for unit in _SIZES:
        whole, rest = divmod(size_bytes, parse_size(f"1 {unit}"))
        if whole and not rest:
            return f"{whole} {unit}"
    return f"{size_bytes} B"


def _scalar(text: str) -> str:
    """A text as YAML takes it, in quotes where it needs them."""
    if not text.isprintable():
        return json.dumps(text)
    return text if _PLAIN.fullmatch(text) and text == text.strip() else "'" + text.replace("'", "''") + "'"


def _one_line(text: str) -> str:
    """A line that stays one, whatever a drive or a server said of itself."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def _mapping(fields: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{key}: {value}" for key, value in fields.items()) + "}"
