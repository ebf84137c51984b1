"""The attach log of servers: what their kernels and udev tell of drives that come and go."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from threading import Condition
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self, TypeAlias

from rackloop.abilities import Applied
from rackloop.clock import Deadline
from rackloop.drive_identifiers import PCI_ADDRESS, is_on_path
from rackloop.errors import LabError, RackloopError
from rackloop.lab import Lab
from rackloop.record import Stage
from rackloop_labs.port_paths import port_path

if TYPE_CHECKING:
    from rackloop_drivers.host_clock import Moment
    from rackloop_drivers.workload import DeviceEvent

SUBSYSTEMS = ("block", "nvme", "pci", "sas_end_device", "sas_port", "scsi")
"""The subsystems whose events say where a drive is, from its controller's side to its node."""

KERNEL = "kernel"
"""The clock of the stages: a server's, related to the run's."""

_BY_PATH = "/dev/disk/by-path/"
_KEPT = 65_536
# A drive that has answered already has had its events told, but udev's rules are through later than the kernel.
_LEAST_TOLD_S = 2.0
_CONTROLLERS = frozenset({"nvme", "scsi"})
_OF_A_SUBSYSTEM = "/virtual/nvme-subsystem/"
_FUNCTION = re.compile(PCI_ADDRESS)


class Following(Protocol):
    """The device events of one server, as they come."""

    def moment(self, event: DeviceEvent) -> Moment:
        """The moment of an event on the run's clock. Raises ClockUnknown where it is not known."""
        ...

    def close(self) -> None:
        """Follow them no more."""
        ...


Follow: TypeAlias = "Callable[[str, Callable[[DeviceEvent], None], Callable[[str], None]], Following]"
"""Begins to follow a server's events: its name, what is called with each, and with the reason where they end."""


class UeventLog:
    """The :class:`~rackloop_labs.attach_log.AttachLog` of the servers' own device events. A context manager.

    A port is told by its path in the description, which udev's names of a drive begin with. The stages are ``link``,
    the first device of the drive's that the kernel has: a PCI function, an end device, a target; ``device``, the SCSI
    device or NVMe controller; ``online``, its disk, of which there is a node then; and ``named``, when udev has given
    it its names. A stage of which no event was seen is absent. Each is the latest moment that it can have been, and its
    error is what is not known of the server's clock, with the probe's own wait for a core. What the switch does no
    server sees.
    """

    def __init__(self, lab: Lab, servers: Collection[str], follow: Follow) -> None:
        self._lab = lab
        self._told_s = lab.time_s("answer", at_least=_LEAST_TOLD_S)
        self._servers = [
            name for name in servers if any(port_path(lab, name, port) for port in lab.servers[name].ports)
        ]
        self._follow = follow
        self._changed = Condition()
        self._events: dict[str, deque[DeviceEvent]] = {name: deque(maxlen=_KEPT) for name in self._servers}
        self._following: dict[str, Following] = {}
        self._ended: dict[str, str] = {}
        self._open = ExitStack()

    def __enter__(self) -> Self:
        if self._servers:
            with ThreadPoolExecutor(len(self._servers), thread_name_prefix="attach log") as pool:
                list(pool.map(self._begin, self._servers))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for following in self._following.values():
            self._open.callback(following.close)
        self._open.close()

    def stages(self, applied: Applied, switch_port: int, deadline: Deadline, *, until: str = "online") -> list[Stage]:
        """See :class:`~rackloop_labs.attach_log.AttachLog`.

        Raises LabError where the server's events could not be followed, ClockUnknown where its clock is not known.
        """
        place = self._place(switch_port)
        if place is None:
            return []
        server, path = place
        patience = deadline if until == "online" else deadline.sooner(self._told_s)

        def arrival() -> tuple[DeviceEvent, ...]:
            return self._arrival(server, path, applied.commanded_ns)

        with self._changed:
            self._changed.wait_for(lambda: server in self._ended or arrival(), timeout=patience.remaining_s())
            came = arrival()
            if not came and (why := self._ended.get(server)) is not None:
                raise LabError(f"the device events of {server} are not known: {why}")
        return self._stages(server, came)

    def first_loss(
        self,
        events: Collection[str],
        places: Collection[tuple[str, str]],
        drives: Collection[str],  # noqa: ARG002 - a kernel's event is of a place
        since_ns: int,
    ) -> Stage | None:
        """See :class:`~rackloop_labs.attach_log.AttachLog`; it knows of ``offline``: the kernel has a disk no more."""
        if "offline" not in events:
            return None
        paths = [(server, port_path(self._lab, server, port)) for server, port in places]
        with self._changed:
            lost = [
                Stage("offline", latest_ns, KERNEL, error_ns)
                for server, path in paths
                if path is not None
                for event in self._of_disks(server, path, "remove")
                for latest_ns, error_ns in [self._latest(server, event)]
                if latest_ns >= since_ns
            ]
        return min(lost, key=lambda stage: stage.at_ns, default=None)

    def _begin(self, server: str) -> None:
        def take(event: DeviceEvent) -> None:
            with self._changed:
                self._events[server].append(event)
                self._changed.notify_all()

        def ended(why: str) -> None:
            with self._changed:
                self._ended.setdefault(server, why)
                self._changed.notify_all()

        try:
            self._following[server] = self._follow(server, take, ended)
        except RackloopError as error:
            # Others may be all that is asked for.
            ended(str(error))

    def _place(self, switch_port: int) -> tuple[str, str] | None:
        """The server of a port, and the port's path there; None where the description has none."""
        for name in self._servers:
            described = self._lab.servers[name]
            for port, number in described.ports.items():
                if number == switch_port and port in described.paths:
                    return name, described.paths[port]
        return None

    def _of_disks(self, server: str, path: str, action: str) -> Iterator[DeviceEvent]:
        """The kernel's own events of disks that udev knows to be at a path."""
        events = self._events.get(server, ())
        told = {
            event.seqnum
            for event in events
            if event.source == "udev" and event.action == action and _is_disk_at(event, path)
        }
        for event in events:
            if event.source == "kernel" and event.action == action and event.seqnum in told:
                yield event

    def _arrival(self, server: str, path: str, since_ns: int) -> tuple[DeviceEvent, ...]:
        """The events of the first disk that came to a path since then, its disk's and its names' the last two."""
        events = list(self._events.get(server, ()))
        disk = next(
            (disk for disk in self._of_disks(server, path, "add") if self._latest(server, disk)[0] >= since_ns), None
        )
        if disk is None:
            return ()
        named = next(event for event in events if event.source == "udev" and event.seqnum == disk.seqnum)
        before = [event for event in events[: events.index(disk)] if (event.source, event.action) == ("kernel", "add")]
        below = _controller_of(named, before) if _OF_A_SUBSYSTEM in disk.devpath else disk.devpath
        parents = [
            event
            for event in before
            if below.startswith(f"{event.devpath}/") and self._latest(server, event)[0] >= since_ns
        ]
        return (*parents, disk, named)

    def _stages(self, server: str, came: Sequence[DeviceEvent]) -> list[Stage]:
        if not came:
            return []
        *parents, disk, named = came
        found: dict[str, DeviceEvent] = {"link": parents[0]} if parents else {}
        controllers = [event for event in parents[1:] if event.subsystem in _CONTROLLERS]
        found |= {"device": controllers[-1]} if controllers else {}
        found |= {"online": disk, "named": named}
        return [Stage(name, *self._stamp(server, event)) for name, event in found.items()]

    def _stamp(self, server: str, event: DeviceEvent) -> tuple[int, str, int]:
        latest_ns, error_ns = self._latest(server, event)
        return latest_ns, KERNEL, error_ns

    def _latest(self, server: str, event: DeviceEvent) -> tuple[int, int]:
        """The latest moment that an event can have been, and by how much it may have been earlier."""
        moment = self._following[server].moment(event)
        return moment.at_ns + moment.error_ns, 2 * moment.error_ns + (event.waited_ns or 0)


def _controller_of(named: DeviceEvent, came: Sequence[DeviceEvent]) -> str:
    """The folder of the controller of an NVMe disk by native multipath, with a slash; empty where none came.

    The disk is below its subsystem. The kernel tells nothing of its hidden paths, which are below the controllers, but
    udev names the disk by the PCI function of the one whose number it has.
    """
    functions = {function for name in _by_paths(named) for function in _FUNCTION.findall(name)[-1:]}
    controllers = (event.devpath for event in reversed(came) if event.subsystem == "nvme")
    return next((f"{folder}/" for folder in controllers if functions & {*_FUNCTION.findall(folder)[-1:]}), "")


def _is_disk_at(event: DeviceEvent, path: str) -> bool:
    """Whether an event of udev's is of a whole disk that has a name which begins with the path."""
    wanted = path.removeprefix(_BY_PATH)
    return event.devtype == "disk" and any(is_on_path(name, wanted) for name in _by_paths(event))


def _by_paths(event: DeviceEvent) -> list[str]:
    return [link.removeprefix(_BY_PATH) for link in event.devlinks if link.startswith(_BY_PATH)]
