"""A rack that is open: every ability on everything in it, for all three kinds of lab."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, suppress
from typing import Protocol

from rackloop.abilities import BlockDevice, Console, Drive, DriveIdentity, Fabric, Host, SystemEventLog
from rackloop.clock import Clock, Deadline
from rackloop.errors import BadInput, LabError, NotSupported
from rackloop.lab import Lab
from rackloop.names import guess
from rackloop.safety.undo import Equipment
from rackloop_drivers.block import NbdExport
from rackloop_drivers.drive import RackdDrive
from rackloop_drivers.host import SshHost, complaints
from rackloop_drivers.rackd import RecordedIo
from rackloop_labs.attach_log import AttachLog

_RELEASE_S = 2.0


class Bench(Protocol):
    """The interface of an open lab. Close it when done; the lab stays up.

    ``drive`` is the drive a server port sees now, ``device`` how I/O reaches it from the server; ``host`` is the server
    by SSH, where commands for it run, connected when first used. ``event_logs`` are those of the servers whose
    management controller keeps one, ``consoles`` the serial consoles of the servers that have one, and ``secrets`` what
    must not stand in a log of them. ``survey`` finds every drive of the rack, mapped or not; servers that are
    ``spared`` are asked too, and may be silent. ``attach_log`` follows drives coming to its servers, or to those named,
    and going; ``announce`` tells servers that the drives behind these switch ports are about to change.
    ``recording_io`` has every request that reaches a drive recorded while it is open; what it gives returns them.
    ``lateness_s`` is how late a simulated rack has been at most since it came up, None for one of equipment. Each
    raises NotSupported where this kind of lab, or this rack, has no such thing. ``is_new`` says that the rack was
    brought up for this bench, so that no earlier run can have left anything on its servers.
    """

    @property
    def lab(self) -> Lab: ...  # noqa: D102
    @property
    def clock(self) -> Clock: ...  # noqa: D102
    @property
    def is_new(self) -> bool: ...  # noqa: D102
    @property
    def equipment(self) -> Equipment: ...  # noqa: D102
    def drive(self, server: str, port: str) -> Drive: ...  # noqa: D102
    def device(self, server: str, port: str) -> BlockDevice: ...  # noqa: D102
    def survey(self, spared: Collection[str] = ()) -> list[DriveIdentity]: ...  # noqa: D102
    def host(self, server: str) -> Host: ...  # noqa: D102
    @property
    def event_logs(self) -> Mapping[str, SystemEventLog]: ...  # noqa: D102
    @property
    def consoles(self) -> Mapping[str, Console]: ...  # noqa: D102
    def secrets(self) -> tuple[str, ...]: ...  # noqa: D102
    def attach_log(self, servers: Collection[str] | None = None) -> AbstractContextManager[AttachLog]: ...  # noqa: D102
    def announce(self, switch_ports: Collection[int]) -> None: ...  # noqa: D102
    def recording_io(self, drive: str) -> AbstractContextManager[Callable[[], RecordedIo]]: ...  # noqa: D102
    def lateness_s(self) -> float | None: ...  # noqa: D102
    def close(self) -> None: ...  # noqa: D102


def named_host(hosts: Mapping[str, SshHost], server: str) -> SshHost:
    """The server of this name. Raises BadInput where there is none."""
    try:
        return hosts[server]
    except KeyError:
        raise BadInput(f"no server is named {server!r}; {guess(server, hosts)}") from None


def close_hosts(hosts: Collection[SshHost]) -> None:
    """Close all of them at once: one that does not answer takes seconds.

    Raises LabError, when all are closed, with what each said that could not end a command.
    """
    with ThreadPoolExecutor(len(hosts) or 1) as closing:
        closed = [closing.submit(host.close) for host in hosts]
    if stuck := complaints(each.result for each in closed):
        raise LabError("\n".join(stuck))


def close_bench(hosts: Collection[SshHost], *rest: Callable[[], object]) -> None:
    """Close the servers, and then call all of ``rest`` in their order, whatever the servers and those before say.

    Raises what :func:`close_hosts` raises after all else, unless one of ``rest`` raises.
    """
    with ExitStack() as ends:
        for end in reversed(rest):
            ends.callback(end)
        close_hosts(hosts)


def release_lock(fabric: Fabric, token: int | None, clock: Clock) -> None:
    """Let go of the control lock, if there is a token; a switch that is gone or taken over has let go by itself."""
    if token is not None:
        with suppress(LabError, NotSupported):
            fabric.release_lock(token, Deadline.after(clock, _RELEASE_S))


def drive_in_slot(bench: Bench, server: str, port: str, slot: int) -> tuple[RackdDrive, NbdExport]:
    """The drive in a slot of the expander that is mapped to a server port now, and how I/O reaches it.

    Raises NotSupported where the rack is no mock rack: there a drive is a device of its server.
    """
    drive, device = bench.drive(server, port), bench.device(server, port)
    if not isinstance(drive, RackdDrive) or not isinstance(device, NbdExport):
        raise NotSupported(f"slots are reached by themselves on mock racks only; lab {bench.lab.name} is none")
    return drive.in_slot(slot), device.in_slot(slot)
