"""A drive of a server, asked through the tools of that server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rackloop.abilities import DriveIdentity, Executor, SanitizeMethod
from rackloop.clock import Deadline
from rackloop.drive_identifiers import normal_text
from rackloop.errors import DeadlineExceeded, GuardRefused, LabError, NotSupported
from rackloop_drivers.host_tools import identify_drive, identify_drives, name_of, read_drive

if TYPE_CHECKING:
    from rackloop.abilities import WritableDrive
    from rackloop.abilities.inventory import SeenDrive
    from rackloop_drivers.drive.host_drive._erasing import Erasure, ErasureSeen, Progress

_EVERY_S = 0.25


class HostDrive:
    """A Drive behind a node of the server where ``executor`` runs commands, and its Sanitizer.

    ``device`` is the node, a link to it, or the path of a port (``pci-0000:10:00.0``), looked up each time. ATA and
    SAS drives are asked by smartctl, NVMe drives by nvme-cli, and told to erase themselves by hdparm, sg3_utils and
    nvme-cli; all need root there.
    """

    def __init__(self, executor: Executor, device: str) -> None:
        self.executor = executor
        self.device = device

    @property
    def location(self) -> str:
        """The server and the node, as given: ``srv1:/dev/sda``."""
        return f"{name_of(self.executor)}:{self.device}"

    def identify(self, deadline: Deadline) -> DriveIdentity:
        """The identity that the drive reports, with every identifier, and its by-path name and slot where known.

        Raises LabError where no drive is there or it cannot be asked, ToolError where a tool is missing,
        UnknownFormat, with the raw text, where a tool's output is of a version that is not known here.
        """
        return identify_drive(self.executor, self.device, deadline).identity

    @staticmethod
    def identify_together(drives: Sequence[HostDrive], deadline: Deadline) -> list[DriveIdentity]:
        """The identities of drives of one server, given by the paths of their ports, by one command.

        Raises as :meth:`identify` does, for the first drive that is not there.
        """
        devices = [drive.device for drive in drives]
        return [seen.identity for seen in identify_drives(drives[0].executor, devices, deadline)]

    def health(self, deadline: Deadline) -> dict[str, int]:
        """The drive's counters by the names of :mod:`rackloop.inspection.health`; raises as :meth:`identify` does."""
        return dict(read_drive(self.executor, self.device, deadline).counters)

    def methods(self, deadline: Deadline) -> tuple[SanitizeMethod, ...]:
        """The methods by which the drive says it erases itself, the one to prefer first; raises as above."""
        seen = identify_drive(self.executor, self.device, deadline)
        return self._erasure(seen.identity.protocol, seen.device).methods(deadline)

    def seen(self, deadline: Deadline) -> SeenDrive:
        """The drive with all that the server's tools tell of it; raises as :meth:`identify` does."""
        return read_drive(self.executor, self.device, deadline)

    def require_erasable(self, seen: SeenDrive, deadline: Deadline) -> tuple[SanitizeMethod, ...]:
        """The methods, where the drive that was ``seen`` could begin by the first of them now; it is told nothing.

        Raises NotSupported where it has none, or would erase more than itself, LabError where it is frozen or locked.
        """
        erasure = self._erasure(seen.identity.protocol, seen.device)
        if not (methods := erasure.methods(deadline)):
            raise NotSupported(f"the drive at {self.location} has no means to erase itself; it can be trimmed at most")
        erasure.require(methods[0], deadline)
        return methods

    def require_markable(self, seen: SeenDrive, deadline: Deadline) -> str:
        """The tool by which the drive that was ``seen`` could make sectors of its own unreadable; it is told nothing.

        Raises NotSupported with what the drive lacks where it cannot.
        """
        from rackloop_drivers.drive.host_drive._marks import marks_by

        marks = marks_by(self.executor, seen.identity.protocol, seen.device)
        marks.require(deadline)
        return marks.tool

    def erasing(self, drive: WritableDrive, method: SanitizeMethod, deadline: Deadline) -> dict[str, str]:
        """The fault of :class:`InterruptedErasure` for an erasure to come; raises as above.

        Noted beforehand, it is found by heal where the harness died before its end.
        """
        from rackloop_drivers.drive.host_drive._interrupted import ERASING

        protocol = identify_drive(self.executor, self.device, deadline).identity.protocol
        return {"kind": ERASING, "method": str(method), "node": drive.device.probe_target(), "protocol": protocol}

    def sanitize(
        self,
        drive: WritableDrive,
        method: SanitizeMethod,
        deadline: Deadline,
        *,
        progress: Progress = lambda _fraction, _said: None,
    ) -> None:
        """Have the drive erase itself, and return when it is done; ``progress`` is told how far it is.

        Raises GuardRefused where ``drive`` is the permission to write another drive, NotSupported where the drive does
        not offer ``method`` or would erase more than itself, DeadlineExceeded where it goes on after the deadline,
        LabError where the permission was given back, or the drive is frozen, locked or fails to erase itself.
        """
        from rackloop_drivers.drive.host_drive._erasing import ErasureState

        seen = identify_drive(self.executor, self.device, deadline)
        # The holder compares the drive with the permission anew, on the descriptor that it has open.
        device = drive.device
        there = getattr(device, "location", "")
        if normal_text(seen.identity.serial) != drive.serial or there != self.location:
            reason = f"at {self.location} is the drive {seen.identity.serial}, the permission is for {drive.serial}"
            raise GuardRefused(drive.drive_id, [f"{reason} at {there or device.probe_target()}"])
        # By a name that leads to this drive, and to no other.
        erasure = self._erasure(seen.identity.protocol, device.probe_target())
        if method not in (offered := erasure.methods(deadline)):
            raise NotSupported(f"the drive at {self.location} offers {', '.join(offered) or 'no method'}, not {method}")
        erasure.begin(method, deadline, progress)

        def look() -> ErasureSeen:
            now = erasure.seen(deadline)
            if now.state is ErasureState.UNDER_WAY:
                progress(now.fraction, now.said)
            return now

        last = deadline.poll(look, lambda now: now.state is not ErasureState.UNDER_WAY, every_s=_EVERY_S)
        if last.state is ErasureState.UNDER_WAY:
            raise DeadlineExceeded(f"the drive at {self.location} still erases itself, {last.said}; it goes on")
        if last.state is not ErasureState.OVER:
            raise LabError(f"the drive at {self.location} did not erase itself by {method}: it is {last.state} now")
        progress(1.0, "done")

    def _erasure(self, protocol: str, node: str) -> Erasure:
        # Most runs erase nothing.
        from rackloop_drivers.drive.host_drive._erasure_of import erasure_by

        return erasure_by(self.executor, protocol, node)
