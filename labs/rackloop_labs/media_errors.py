"""The drives of a physical rack whose sectors can be made unreadable, wherever the switch has them now."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from rackloop.errors import LabError
from rackloop.lab import Lab, Part
from rackloop.safety import Guard
from rackloop_drivers.block import SharedPath
from rackloop_drivers.drive import MEDIA_ERROR, HostDrive, MediaErrors, ReachedDrive
from rackloop_drivers.host_tools import HostFaults, NoDriveThere
from rackloop_drivers.open_blocks import open_blocks
from rackloop_labs.live_places import live_place
from rackloop_labs.media_places import can_have, fixed_places, name_by_wwn

if TYPE_CHECKING:
    from rackloop.abilities import DriveIdentity, WritableDrive
    from rackloop.clock import Clock, Deadline
    from rackloop.portmap import PortMap
    from rackloop.safety.leases import HeldLease
    from rackloop_drivers.host import SshHost


class MediaErrorsOfDrive:
    """A :class:`~rackloop.abilities.Breakable` of one drive, noted by the server that has it when it is broken.

    ``noting`` are the drive's faults by the servers that may have it; ``server_now`` says which has it.
    """

    kinds = frozenset({MEDIA_ERROR})

    def __init__(self, noting: Mapping[str, HostFaults], server_now: Callable[[Deadline], str]) -> None:
        self._noting = noting
        self._server_now = server_now
        self._noted_at: dict[str, str] = {}

    def break_as(self, key: str, fault: Mapping[str, Any], deadline: Deadline) -> None:
        """Make sectors unreadable under ``key``; raises as :class:`~rackloop_drivers.host_tools.HostFaults` does."""
        server = self._server_now(deadline)
        self._noted_at[key] = server
        self._noting[server].break_as(key, fault, deadline)

    def mend(self, key: str, deadline: Deadline) -> None:
        """Give the sectors of ``key`` back what they held, as far as they are still unreadable.

        Which server has the note is known to the object that broke them; another asks one after another for it. Raises
        LabError where none has it and one did not answer.
        """
        noted_at = self._noted_at.get(key)
        asked = list(self._noting) if noted_at is None else [noted_at]
        silent: list[LabError] = []
        # One that cannot be reached leaves the others their part of the time.
        for server, ask_by in deadline.in_turn(asked):
            try:
                had_note = self._noting[server].mend_noted(key, deadline, ask_by=ask_by)
            except LabError as error:
                silent.append(error)
                continue
            if had_note:
                silent.clear()
                break
        if silent:
            raise silent[0]
        self._noted_at.pop(key, None)

    def standing(self, deadline: Deadline) -> dict[str, Mapping[str, Any]]:
        """The faults that any server has a note of, and the drive confirms, by key.

        A server that does not say keeps nothing from being told of the others: it is told as a fault of the kind
        ``unreadable``, with ``why``, under ``#`` and its name, and under each key that this object had noted there.
        Raises LabError where none says.
        """
        standing: dict[str, Mapping[str, Any]] = {}
        silent: dict[str, LabError] = {}
        for (server, faults), ask_by in deadline.in_turn(self._noting.items()):
            try:
                standing |= faults.standing(ask_by)
            except LabError as error:
                silent[server] = error
        if len(silent) == len(self._noting):
            raise next(iter(silent.values()))
        for server, silence in silent.items():
            noted = [key for key, noted_at in self._noted_at.items() if noted_at == server]
            standing |= {key: {"kind": "unreadable", "why": str(silence)} for key in (f"#{server}", *noted)}
        return standing


class RackMediaErrors:
    """The drives of ``lab`` that can have media errors, by part, under ``lease``.

    ``on_server`` has those of each server that a register finds there. On a rack with a switch ``live`` says its map
    now. ``seen`` gives every drive that each of the servers sees: one that two of them see is refused, as another may
    use it. It is asked before sectors are made unreadable, and not where they are mended, whichever server is silent.
    """

    def __init__(
        self,
        lab: Lab,
        hosts: Mapping[str, SshHost],
        clock: Clock,
        lease: HeldLease | None,
        live: Callable[[Deadline], PortMap] | None,
        seen: Callable[[], Sequence[DriveIdentity]],
    ) -> None:
        self._lab = lab
        self._hosts = hosts
        self._clock = clock
        self._lease = lease
        self._seen = seen
        self._live = live
        self.on_server: dict[str, dict[str, HostFaults]] = {server: {} for server in hosts}
        self.breakable = {str(Part.drive(drive)): self._of(drive) for drive in lab.drives if can_have(lab, drive)}

    def _of(self, drive: str) -> MediaErrorsOfDrive:
        name, sector_bytes = str(Part.drive(drive)), self._lab.drives[drive].traits.sector_bytes
        errors = MediaErrors(drive, sector_bytes, partial(self._reached, drive))
        servers = self._hosts if self._live is not None else [server for server, _ in fixed_places(self._lab, drive)]
        noting = {server: HostFaults(self._hosts[server], name, errors, add_up=errors.kinds) for server in servers}
        for server, faults in noting.items():
            self.on_server[server][name] = faults
        return MediaErrorsOfDrive(noting, lambda deadline: self._place(drive, deadline)[0])

    def _reached(self, drive: str, deadline: Deadline) -> ReachedDrive:
        server, device = self._place(drive, deadline)
        host = self._hosts[server]
        path = SharedPath(host, device, self._clock, within_s=self._lab.time_s("tools"))

        def permit(deadline: Deadline, *, is_first: bool = False) -> WritableDrive:
            guard = Guard(self._lab, self._lease, seen=self._seen() if is_first else ())
            return guard.writable(drive, HostDrive(host, device), path, deadline)

        return ReachedDrive(host, device, path, permit, partial(open_blocks, clock=self._clock))

    def _place(self, drive: str, deadline: Deadline) -> tuple[str, str]:
        """The server that has a drive now, and where. Raises NoDriveThere where none has."""
        places = fixed_places(self._lab, drive)
        if self._live is not None:
            at = live_place(self._lab, self._live(deadline), drive)
            places = [] if at is None else [(at[0], self._device(drive, *at))]
        if not places:
            raise NoDriveThere(f"the switch joins {drive} to no server now")
        return places[0]

    def _device(self, drive: str, server: str, port: str) -> str:
        if self._lab.drives[drive].expander is not None:
            return name_by_wwn(self._lab, drive) or ""
        try:
            return self._lab.servers[server].paths[port]
        except KeyError:
            raise NoDriveThere(f"{server}.{port}: add paths: to {server}, so that what is there can be told") from None
