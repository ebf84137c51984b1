"""Consistency of a lab description's parts: one plug a port, one drive an identifier, no dead ends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pydantic_core import PydanticCustomError

from rackloop.drive_identifiers import IDENTIFIERS, UNIQUE_IDENTIFIERS, is_on_path
from rackloop.errors import BadInput
from rackloop.lab._driver import Driven
from rackloop.lab._hardware import Drive, Expander, Fabric, Server
from rackloop.lab._profiles import Profile
from rackloop.lab._rack import Lab, LabKind
from rackloop.lab.yaml import Examined, KeyPath
from rackloop.names import guess, quoted

# What exports of simulated racks and the targets of faults are called besides the parts of a lab.
_RESERVED = frozenset({"drive", "drives", "ports", "servers", "switch"})
_OF_SERVERS = {
    "ssh": "where the server's SSH answers, such as srv1.lab.example",
    "known_hosts": "the file with the server's SSH key, by ssh-keyscan; compare the key on the console",
}


class _Taken:
    """Things that may be used once; remembers who was first."""

    def __init__(self, examined: Examined[Lab], message: str) -> None:
        self._examined = examined
        self._message = message
        self._first: dict[object, KeyPath] = {}

    def take(self, thing: object, path: KeyPath) -> None:
        first = self._first.setdefault(thing, path)
        if first is not path:
            self._examined.report(path, self._message.format(thing=thing, by=self._examined.where(first)))


def check_wiring(examined: Examined[Lab]) -> None:
    """Report every contradiction between the sound parts of a lab description."""
    lab = examined.value
    if lab is None:
        return
    if examined.is_sound("fabric", "driver") and examined.is_sound("fabric", "ports"):
        _check_fabric(examined, lab)
        _check_attachment(examined, lab)
    _check_names(examined, lab)
    _check_quarantine(examined, lab)
    _check_drives(examined, lab)
    _check_expanders(examined, lab)
    _check_power(examined, lab)
    _check_consoles(examined, lab)
    _check_jumps(examined, lab)
    _check_baseline(examined, lab)
    _check_paths(examined, lab)
    if examined.is_sound("kind"):
        _check_boxes(examined, lab)
        if lab.kind is LabKind.PHYSICAL:
            _check_endpoints(examined, lab)


def _plugged(lab: Lab) -> Iterator[tuple[str, str, Drive | Expander]]:
    yield from (("drives", name, drive) for name, drive in lab.drives.items())
    yield from (("expanders", name, expander) for name, expander in lab.expanders.items())


def _wired(lab: Lab) -> Iterator[tuple[KeyPath, int | None]]:
    """Every place in the file that may name a switch port."""
    for name, server in lab.servers.items():
        yield from ((("servers", name, "ports", port), number) for port, number in server.ports.items())
    yield from (((section, name, "port"), thing.port) for section, name, thing in _plugged(lab))


def _check_fabric(examined: Examined[Lab], lab: Lab) -> None:
    wired = [(path, number) for path, number in _wired(lab) if number is not None]
    if not lab.has_switch:
        for key in sorted(lab.fabric.model_fields_set & {"ports", "outlet"}):
            examined.report(("fabric", key), "a static fabric has no switch; delete the key", key=True)
        for path, _ in wired:
            examined.report(path, "a static fabric has no switch ports; delete the number and attach drives to servers")
        return
    taken = _Taken(examined, "switch port {thing} is already used by {by}; one plug fits in a port")
    for path, number in wired:
        if number > lab.fabric.ports:
            examined.report(path, f"the switch has ports 1 to {lab.fabric.ports}, found {number}")
        taken.take(number, path)
    if len(wired) > lab.fabric.ports:
        message = f"{len(wired)} server ports, drives and expanders are wired to a switch of {lab.fabric.ports} ports"
        examined.report(("fabric", "ports"), message)
    for name, server in lab.servers.items():
        for port in (port for port, number in server.ports.items() if number is None):
            message = f"give the number of the switch port it is wired to, as in {{{port}: 1}}"
            examined.report(("servers", name, "ports", port), message, key=True)


def _check_attachment(examined: Examined[Lab], lab: Lab) -> None:
    """Every drive and expander is plugged in somewhere, and at one place."""
    place = "port: with its switch port" if lab.has_switch else "attached: with its server port, such as srv1/p0"
    taken = _Taken(examined, "{thing} is already used by {by}; put several drives behind an expander")
    for section, name, thing in _plugged(lab):
        path = (section, name)
        keys = ("port", "expander", "attached") if isinstance(thing, Drive) else ("port", "attached")
        given = [key for key in keys if getattr(thing, key) is not None]
        if not given and all(examined.is_sound(*path, key) for key in keys):
            examined.report(path, f"is plugged in nowhere; add {place}", key=True)
        for key in given[1:]:
            examined.report((*path, key), f"one plug is one place, and {given[0]} is given too; delete one", key=True)
        if thing.attached is None:
            continue
        server, port = thing.attached
        if lab.has_switch:
            examined.report((*path, "attached"), "is for racks without a switch; give port: instead", key=True)
        elif _knows(examined, (*path, "attached"), "server", server, "servers"):
            _knows(examined, (*path, "attached"), f"port of {server}", port, "servers", server, "ports")
            taken.take(f"{server}/{port}", (*path, "attached"))


def _check_names(examined: Examined[Lab], lab: Lab) -> None:
    """A part goes by its name alone, wherever one is named: no two have the same, and none that of something else."""
    parts = {"servers": lab.servers, "drives": lab.drives, "expanders": lab.expanders}
    taken = _Taken(examined, "the name {thing} is already given at {by}; rename one of them")
    for section, named in parts.items():
        for name in named:
            taken.take(name, (section, name))
            if name in _RESERVED:
                examined.report((section, name), f"{name!r} means something else here; take another name", key=True)


def _check_quarantine(examined: Examined[Lab], lab: Lab) -> None:
    wanted = lab.quarantine
    if wanted.failures > wanted.tests:
        message = f"{wanted.failures} failures among {wanted.tests} tests never happen; raise tests, or lower failures"
        examined.report(("quarantine", "failures"), message)


def _check_drives(examined: Examined[Lab], lab: Lab) -> None:
    taken = {
        identifier: _Taken(examined, f"the {identifier} {{thing}} is already given at {{by}}; no two drives share one")
        for identifier in UNIQUE_IDENTIFIERS
    }
    for name, drive in lab.drives.items():
        path = ("drives", name)
        if drive.size % (sector := drive.traits.sector_bytes):
            message = f"{drive.size} B is no whole number of sectors of {sector} B; give the exact size"
            examined.report((*path, "size"), message)
        if not isinstance(drive.timing, str) and examined.is_sound(*path, "profile"):
            _check_parameters(examined, (*path, "timing"), drive.traits, drive.timing)
        usual = drive.traits.identifiers if examined.is_sound(*path, "profile") else ("wwn",)
        if usual and not drive.identifiers and all(examined.is_sound(*path, each) for each in IDENTIFIERS):
            examined.report(
                path, f"has no identifier besides its serial; add {usual[0]}: as the drive reports it", key=True
            )
        for identifier, tracker in taken.items():
            if (value := getattr(drive, identifier)) is not None and examined.is_sound(*path, identifier):
                tracker.take(value, (*path, identifier))


def _check_parameters(examined: Examined[Lab], path: KeyPath, profile: Profile, given: Mapping[str, object]) -> None:
    for name, value in given.items():
        try:
            profile.with_parameters({name: value})
        except (BadInput, PydanticCustomError) as error:
            examined.report((*path, name), str(error), key=name not in profile.timing)


def _check_expanders(examined: Examined[Lab], lab: Lab) -> None:
    taken = _Taken(examined, "{thing} is already used by {by}")
    for name, drive in lab.drives.items():
        path = ("drives", name)
        if drive.expander is None or not _knows(examined, (*path, "expander"), "expander", drive.expander, "expanders"):
            continue
        if drive.traits.protocol == "nvme" and examined.is_sound(*path, "profile"):
            examined.report((*path, "expander"), "an NVMe drive does not fit behind a SAS expander; give port: instead")
        expander = lab.expanders.get(drive.expander)
        if drive.slot is None:
            if examined.is_sound(*path, "slot"):
                examined.report(path, f"is in the expander {drive.expander} without a slot; add slot:", key=True)
        elif not drive.slot.isdecimal() or (expander and int(drive.slot) >= expander.slots):
            last = f" to {expander.slots - 1}" if expander else " upwards"
            examined.report(
                (*path, "slot"), f"the slots of {drive.expander} are numbered from 0{last}, found {quoted(drive.slot)}"
            )
        else:
            taken.take(f"slot {int(drive.slot)} of {drive.expander}", (*path, "slot"))


def _check_power(examined: Examined[Lab], lab: Lab) -> None:
    taken = _Taken(examined, "the outlet {thing} already feeds {by}; one server to an outlet")
    fed: dict[KeyPath, Server | Fabric] = {("servers", name, "outlet"): server for name, server in lab.servers.items()}
    for path, box in (fed | {("fabric", "outlet"): lab.fabric}).items():
        if box.outlet is None:
            continue
        unit, number = box.outlet
        if not _knows(examined, path, "PDU", unit, "pdus"):
            continue
        if (pdu := lab.pdus.get(unit)) and not 1 <= number <= pdu.outlets:
            examined.report(path, f"{unit} has outlets 1 to {pdu.outlets}, found {number}")
        taken.take(f"{unit}/{number}", path)


def _check_consoles(examined: Examined[Lab], lab: Lab) -> None:
    """A console that is the controller's has a controller that its driver can work with."""
    for name, server in lab.servers.items():
        path: KeyPath = ("servers", name)
        if server.console is None or not server.console.by_bmc or not examined.is_sound(*path, "bmc"):
            continue
        if server.bmc is None or server.bmc.driver not in server.console.by_bmc:
            has = "none" if server.bmc is None else f"one with driver {server.bmc.driver}"
            needs = " or ".join(sorted(server.console.by_bmc))
            examined.report((*path, "console"), f"is that of a bmc with driver {needs}, and {name} has {has}", key=True)


def _check_jumps(examined: Examined[Lab], lab: Lab) -> None:
    for name, server in lab.servers.items():
        if server.jump is not None:
            _knows(examined, ("servers", name, "jump"), "jump host", server.jump, "jump_hosts")
            if server.clock is not None:
                told = "is reached from here, and the server from a jump host; delete the key"
                examined.report(("servers", name, "clock"), told, key=True)


def _check_baseline(examined: Examined[Lab], lab: Lab) -> None:
    taken = _Taken(examined, "{thing} is already joined to {by}; a drive is mapped to one server port at a time")
    if not lab.has_switch and lab.baseline:
        examined.report(("baseline",), "a rack without a switch has no port map; delete baseline", key=True)
        return
    known = examined.written_keys("drives") | examined.written_keys("expanders")
    for server, joined in lab.baseline.items():
        if not _knows(examined, ("baseline", server), "server", server, "servers", key=True):
            continue
        for port, far in joined.items():
            path: KeyPath = ("baseline", server, port)
            _knows(examined, path, f"port of {server}", port, "servers", server, "ports", key=True)
            if far not in known:
                examined.report(path, f"no drive or expander is named {far!r}; {guess(far, known)}")
            elif (drive := lab.drives.get(far)) and drive.expander:
                examined.report(
                    path, f"{far} is behind the expander {drive.expander}; join the port to {drive.expander}"
                )
            else:
                taken.take(far, path)


def _check_paths(examined: Examined[Lab], lab: Lab) -> None:
    """Each path is of a port that is there, and leads to no other port of the server."""
    for name, server in lab.servers.items():
        for port, path in server.paths.items():
            where: KeyPath = ("servers", name, "paths", port)
            _knows(examined, where, f"port of {name}", port, "servers", name, "ports", key=True)
            if path.startswith("/"):
                examined.report(where, f"expected the beginning of names in /dev/disk/by-path, found {quoted(path)}")
            longer = (other for other, theirs in server.paths.items() if other != port and is_on_path(theirs, path))
            # Of two that are the same, the second is the one to change.
            other = next((other for other in longer if server.paths[other] != path or other < port), None)
            if other is not None:
                examined.report(where, f"{path} is also the beginning of the path of {other}; each port has its own")


def _check_endpoints(examined: Examined[Lab], lab: Lab) -> None:
    """A physical rack is reached at places only its owner knows."""
    if len(lab.controllers) > 1 and lab.store == "sqlite" and examined.is_sound("store"):
        examined.report(
            ("store",),
            f"sqlite serves one machine, and {len(lab.controllers)} control this rack; name a store they share, such "
            "as postgresql://rackloop@db.lab.example/rackloop",
        )
    taken = _Taken(examined, "{thing[1]} is already the SSH of {by}; each server has its own")
    for name, server in lab.servers.items():
        for key, what in _OF_SERVERS.items():
            if getattr(server, key) is None and examined.is_sound("servers", name, key):
                examined.report(("servers", name, key), f"is missing: {what}")
        if server.ssh is not None and examined.is_sound("servers", name, "ssh"):
            taken.take((server.jump, server.ssh.lower().removesuffix(":22")), ("servers", name, "ssh"))
    for name, drive in lab.drives.items():
        if "model" not in drive.model_fields_set and examined.is_sound("drives", name, "model"):
            message = "is missing: the model as the drive reports it, or the drive could not be told from another"
            examined.report(("drives", name, "model"), message)


def _check_boxes(examined: Examined[Lab], lab: Lab) -> None:
    """Report boxes that are not simulated and have no address of their own, in the words of their drivers."""
    taken = _Taken(examined, "{thing} is already the address of {by}; each box has its own")
    boxes: dict[KeyPath, Driven | None] = {("fabric",): lab.fabric, ("phy",): lab.phy}
    boxes |= {("pdus", name): pdu for name, pdu in lab.pdus.items()}
    boxes |= {("servers", name, key): getattr(s, key) for name, s in lab.servers.items() for key in ("bmc", "console")}
    is_real = lab.kind is LabKind.PHYSICAL
    for path, box in boxes.items():
        if box is None or (box.is_simulated and not is_real) or not examined.is_sound(*path, "driver"):
            continue
        if lab.kind is LabKind.MOCK and isinstance(box, Fabric):
            message = f"{box.driver} simulates no switch, which a mock lab needs; use it in a lab of kind physical"
            examined.report((*path, "driver"), message)
            continue
        for key, message in box.lacking():
            where = (*path, *key.split("."))
            if examined.is_sound(*where):
                examined.report(where, message)
        if (own := box.own_address()) and examined.is_sound(*(at := (*path, *own[0].split(".")))):
            taken.take(own[1], at)


def _knows(examined: Examined[Lab], path: KeyPath, what: str, name: str, *where: str, key: bool = False) -> bool:
    """Whether the file names ``name`` at ``where``; reports it where not."""
    known = examined.written_keys(*where)
    if name not in known:
        examined.report(path, f"no {what} is named {name!r}; {guess(name, known)}", key=key)
    return name in known
