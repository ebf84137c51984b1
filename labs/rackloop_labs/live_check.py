"""A check of a rack by using all of it once, without changing anything: switch, power, servers, tools, every port."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from rackloop.abilities import BlockDevice, Host
from rackloop.abilities.inventory import SeenDrive
from rackloop.clock import Deadline
from rackloop.errors import LabError, NotConnected, NotSupported, RackloopError
from rackloop.lab import Lab
from rackloop_drivers.block import HostPath
from rackloop_drivers.clock_access import ClockAccess
from rackloop_drivers.drive import HostDrive
from rackloop_drivers.hang import HostHang
from rackloop_drivers.host import run_on_all
from rackloop_drivers.host_tools import read_health, require_tool
from rackloop_drivers.phy import HostPhy, list_phys, require_switchable
from rackloop_drivers.workload import Expected, Fio, RackProbe, ShowsClock, find_mkfs, require_mountable
from rackloop_labs._fixed_cabling import sas_ports
from rackloop_labs.bench import Bench, drive_in_slot
from rackloop_labs.host_breakables import runs_kernels
from rackloop_labs.lacking import refusal

# The tools that each way takes by which a server breaks its own network, links and slots, or makes an array.
_TOOLS: Mapping[str, Sequence[str]] = {
    "link_disabled": ["setpci"],
    "device_off": ["sg_ses"],
    "partition": ["nft"],
    "md_array": ["mdadm", "losetup"],
}
# What the sector holds does not matter.
_ANYTHING = Expected("nobody")
_MOUNTS = "remap.mount"
_NOT_TRIED = "not tried: its server does not answer"


@dataclass(frozen=True)
class Attempt:
    """One use of a part of a rack: ``did`` says of ``part`` what, ``problem`` why it failed, None where it did not."""

    part: str
    did: str
    problem: str | None = None

    def __str__(self) -> str:
        return f"{self.part}: {self.did}: {self.problem or 'ok'}"


def live_check(bench: Bench, deadline: Deadline) -> list[Attempt]:
    """Every use that was made of the rack of ``bench``, in the order of its description.

    Each port's first sector is read by its server, each tool that tests need runs once there, and the switch, what
    switches power and the controllers are asked. Nothing is written or switched.
    """
    return [*_here(bench), *_boxes(bench, deadline), *_servers(bench, deadline)]


def live_check_s(lab: Lab) -> float:
    """The longest that a live check may take: the time of a server's tools for its survey and for each of its ports."""
    return lab.time_s("tools") * (1 + max(len(server.ports) for server in lab.servers.values()))


def _here(bench: Bench) -> Iterator[Attempt]:
    """The tools of the machine that tests run on."""
    if refusal(bench.lab, _MOUNTS) is None:
        yield _tried("this machine", f"has mkfs.ext4 for {_MOUNTS}", find_mkfs)


def _boxes(bench: Bench, deadline: Deadline) -> Iterator[Attempt]:
    """The boxes that stand beside the servers."""
    equipment = bench.equipment
    if bench.lab.has_switch:
        yield _tried("switch", "says its map", lambda: equipment.fabric.live_map(deadline))
    for name, port in equipment.power.items():
        yield _tried(name, "says whether its power is on", partial(port.is_on, deadline))
    for server, log in bench.event_logs.items():
        yield _tried(f"bmc:{server}", "shows its event log", partial(log.events, deadline))


def _servers(bench: Bench, deadline: Deadline, on_all: Callable[..., object] = run_on_all) -> Iterator[Attempt]:
    """All servers at the same time, by ``on_all``; of one that overstays its deadline what it did until then."""
    hosts = [bench.host(server) for server in bench.lab.servers]
    tried: dict[str, list[Attempt]] = {host.name: [] for host in hosts}

    def use(host: Host, deadline: Deadline) -> None:
        its = tried[host.name]
        try:
            for attempt in _server(bench, host, deadline):
                its.append(attempt)
        except RackloopError as error:
            its.append(Attempt(host.name, "is checked to the end", str(error)))

    late: Mapping[str, Exception] = {}
    try:
        on_all(hosts, use, deadline)
    except NotConnected as error:
        late = error.children
    for host in hosts:
        yield from tuple(tried[host.name])
        if host.name in late:
            yield Attempt(host.name, "answers in time", str(late[host.name]))


def _server(bench: Bench, host: Host, deadline: Deadline) -> Iterator[Attempt]:
    name, lab = host.name, bench.lab
    login = _tried(name, "logs in and runs a command", lambda: _require_runs(host, deadline))
    yield login
    ports = lab.joined(name)
    if login.problem is not None:
        yield from (Attempt(f"{name}.{port}", "reads a sector", _NOT_TRIED) for port in ports)
        return
    yield from _tools(bench, host, deadline)
    # rackprobe is brought there with the first.
    probe = RackProbe(host, bench.clock)
    if isinstance(host, ShowsClock) and host.clock_access is not None:
        yield _tried(name, "shows its clock by TCP", partial(_require_clock, probe, host.clock_access, deadline))
    for port in ports:
        yield _tried(f"{name}.{port}", "reads a sector", partial(_require_read, bench, probe, name, port, deadline))
        described = lab.drives.get(ports[port])
        if described is not None and described.scratch:
            yield from _able(bench, name, port, deadline)


def _tools(bench: Bench, host: Host, deadline: Deadline) -> Iterator[Attempt]:
    """Each tool of a server, once."""
    name = host.name
    try:
        health = read_health(host, None, deadline)
    except RackloopError as error:
        yield Attempt(name, "surveys its drives (lsblk, smartctl, nvme)", str(error))
    else:
        yield Attempt(name, "surveys its drives (lsblk, smartctl, nvme)")
        unreadable = health.inventory.unreadable
        yield from (Attempt(f"{name}:{node}", "says what it is", why) for node, why in unreadable.items())
        yield Attempt(name, "shows its kernel's messages (dmesg)", health.log_unreadable)
    yield _tried(name, "runs fio", lambda: Fio(host, bench.clock).version(deadline))
    breakable = bench.equipment.breakable.items()
    kinds = {kind for part, its in breakable for kind in its.kinds if part.partition(":")[2].split("/")[0] == name}
    yield from _means(bench.lab, host, kinds, deadline)


def _means(lab: Lab, host: Host, kinds: Collection[str], deadline: Deadline) -> Iterator[Attempt]:
    """Each tool, and each part of its kernel, by which a server does what the description of its rack offers.

    ``kinds`` are the ways in which its parts can be broken.
    """
    name = host.name
    for kind, tools in _TOOLS.items():
        yield from (_tried(name, f"has {tool}", partial(require_tool, host, tool)) for tool in tools if kind in kinds)
    if "disabled" in kinds:
        does = "can switch its SAS PHYs off, by its kernel or smp_phy_control"
        yield _tried(name, does, partial(require_switchable, host, deadline))
        yield from _phys(lab, host, deadline)
    if runs_kernels(lab) and HostHang.kinds.issubset(kinds):
        does = "can have its programs held for server_hang, by control groups of version 2"
        yield _tried(name, does, partial(HostHang(host).prepare, {"kind": "hang"}, deadline))
    if refusal(lab, _MOUNTS) is None:
        yield _tried(name, f"mounts ext4 for {_MOUNTS}", partial(require_mountable, host, deadline))


def _phys(lab: Lab, host: Host, deadline: Deadline) -> Iterator[Attempt]:
    """The SAS PHYs by which each port could lose its signal; it is no problem to have none."""
    paths = {f"{server}.{port}": path for (server, port), path in sas_ports(lab).items() if server == host.name}
    if not paths:
        return
    try:
        phys = list_phys(host, deadline)
    except RackloopError as error:
        yield Attempt(host.name, "lists its SAS PHYs", str(error))
        return
    for part, path in paths.items():
        try:
            found = ", ".join(phy.name for phy in HostPhy(host, path).among(phys))
            yield Attempt(part, f"could lose its signal by {found}")
        except NotSupported as error:
            yield Attempt(part, f"cannot lose its signal ({error})")
        except RackloopError as error:
            yield Attempt(part, "could lose its signal", str(error))


def _able(bench: Bench, server: str, port: str, deadline: Deadline) -> Iterator[Attempt]:
    """The acts that a drive which may be erased could be told to do on itself; none of a simulated one."""
    part = f"{server}.{port}"
    try:
        drive = bench.drive(server, port)
        if not isinstance(drive, HostDrive):
            return
        seen = drive.seen(deadline)
    except RackloopError as error:
        yield Attempt(part, "says what it is", str(error))
        return
    yield _erasable(part, drive, seen, deadline)
    yield _markable(part, drive, seen, deadline)


def _erasable(part: str, drive: HostDrive, seen: SeenDrive, deadline: Deadline) -> Attempt:
    """The ways of a drive that may be erased to do so itself; it is no problem to have none."""
    try:
        return Attempt(part, f"could erase itself by {', '.join(drive.require_erasable(seen, deadline))}")
    except NotSupported as error:
        return Attempt(part, f"cannot erase itself ({error})")
    except RackloopError as error:
        return Attempt(part, "could erase itself", str(error))


def _markable(part: str, drive: HostDrive, seen: SeenDrive, deadline: Deadline) -> Attempt:
    """The tool by which such a drive could have media errors; it is no problem to have none."""
    try:
        return Attempt(part, f"could have a media_error by {drive.require_markable(seen, deadline)}")
    except NotSupported as error:
        return Attempt(part, f"cannot have a media_error ({error})")
    except RackloopError as error:
        return Attempt(part, "could have a media_error", str(error))


def _require_runs(host: Host, deadline: Deadline) -> None:
    done = host.run(["id", "-u"], deadline)
    if done.status:
        raise LabError(f"id -u ended with status {done.status}: {done.stderr.strip()}")


def _require_clock(probe: RackProbe, access: ClockAccess, deadline: Deadline) -> None:
    with probe.device_events(_passed_over, _passed_over, deadline) as session:
        if session.is_clock_shown or session.host_clock.is_own:
            return
        port, otherwise = f"its TCP port {access.listens_at}", "or take clock out of the description"
        if session.clock_refusal:
            raise LabError(f"rackprobe cannot have {port} ({session.clock_refusal}): free it, {otherwise}")
        where = f"{access.host}:{access.port}"
        raise LabError(f"{port} is not reached at {where}: let it through the firewall, {otherwise}")


def _passed_over(_: object) -> None:
    """Nothing is done with what a session says besides."""


def _require_read(bench: Bench, probe: RackProbe, server: str, port: str, deadline: Deadline) -> None:
    """Return where the server reads the first sector of what is at a port, whatever it holds."""
    device = _device(bench, server, port)
    seen = probe.verify(device, _ANYTHING, deadline)
    if seen.unreadable_sectors:
        why = "; ".join(str(one) for one in seen.unreadable)
        raise LabError(f"{device.probe_target()}: the first sector cannot be read: {why}")


def _device(bench: Bench, server: str, port: str) -> BlockDevice:
    """The device that is read through a port: behind an expander the first drive in it."""
    lab = bench.lab
    plugged = lab.joined(server)[port]
    if plugged not in lab.expanders:
        return bench.device(server, port)
    first = min(_in_expander(lab, plugged), key=lambda drive: lab.drives[drive].slot or 0, default=None)
    if first is None:
        raise LabError(f"expander {plugged} has no drive by its description")
    described = lab.drives[first]
    if not runs_kernels(lab):
        return drive_in_slot(bench, server, port, described.expander_slot or 0)[1]
    if described.wwn is None:
        raise LabError(f"drive {first} has no wwn: in its description, by which it would be found")
    node, within_s = f"/dev/disk/by-id/wwn-0x{described.wwn}", lab.time_s("tools")
    return HostPath(bench.host(server), node, bench.clock, within_s=within_s)


def _in_expander(lab: Lab, expander: str) -> Iterable[str]:
    return (name for name, drive in lab.drives.items() if drive.expander == expander)


def _tried(part: str, did: str, use: Callable[[], object]) -> Attempt:
    try:
        use()
    except RackloopError as error:
        return Attempt(part, did, str(error))
    return Attempt(part, did)
